// XPlanes: XSpace, the protobuf that the profilers of TensorFlow and JAX write. The numbers of its
// fields are those of tsl/profiler/protobuf/xplane.proto, which never change.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/core/stop.h"
#include "harness/import/compressed_text.h"
#include "harness/import/profiled_events.h"
#include "harness/import/protobuf.h"
#include "harness/import/readers.h"

namespace launchgap::recording {
namespace {

constexpr std::string_view kTaskEnvironment = "Task Environment";

/// The planes of a file, one at a time: names of events come after the events, so a plane is read
/// as a whole.
class Planes {
 public:
  explicit Planes(const std::filesystem::path& file) : text_(file), buffer_(1 << 18, '\0') {
    text_.limit_unpacking(kMostUnpacking);
    std::error_code unknown;
    size_ = std::filesystem::file_size(file, unknown);
  }

  /// False at the end.
  bool next() {
    constexpr std::uint64_t kPlanes = 1;
    std::uint64_t tag = 0;
    while (take_number(tag)) {
      const std::uint64_t tag_at = at();
      const ProtobufWire wire = wire_of(tag, tag_at);
      std::uint64_t length = wire == ProtobufWire::fixed64 ? 8 : 4;
      if (wire == ProtobufWire::number || wire == ProtobufWire::bytes) {
        if (!take_number(length)) cut_off();
        if (wire == ProtobufWire::number) continue;
      }
      const bool is_plane = wire == ProtobufWire::bytes && tag >> 3 == kPlanes;
      take_bytes(length, is_plane);
      if (is_plane) return true;
    }
    return false;
  }
  std::string_view bytes() const { return plane_; }
  std::uint64_t begin_at() const { return plane_at_; }
  bool is_compressed() const { return text_.is_compressed(); }

 private:
  std::uint64_t at() const { return before_ + next_; }
  bool fill() {
    before_ += filled_;
    next_ = 0;
    filled_ = text_.read(buffer_.data(), buffer_.size());
    return filled_ > 0;
  }
  [[noreturn]] void cut_off() const {
    throw Error("it is cut off or damaged: it ends at byte {}, in the middle of a field", at());
  }

  /// False where the file ends before it.
  bool take_number(std::uint64_t& number) {
    ProtobufNumber own;
    for (bool first = true;; first = false) {
      if (next_ == filled_ && !fill()) {
        if (first) return false;
        cut_off();
      }
      const std::uint64_t at_byte = at();
      if (own.add(static_cast<std::uint8_t>(buffer_[next_++]), at_byte)) break;
    }
    number = own.value();
    return true;
  }

  /// A length is believed only as far as there are bytes.
  void take_bytes(std::uint64_t length, bool keep) {
    constexpr std::uint64_t kMost = std::uint64_t{1} << 30;
    if (keep) {
      if (length > kMost)
        throw Error(
            "its plane at byte {} has {} bytes, and launchgap reads up to 1 GiB: profile "
            "fewer steps",
            at(),
            length);
      plane_.clear();
      plane_at_ = at();
      if (!text_.is_compressed()) plane_.reserve(std::min(length, size_));
    }
    while (length > 0) {
      if (next_ == filled_ && !fill()) cut_off();
      const std::size_t own = std::min<std::uint64_t>(length, filled_ - next_);
      if (keep) plane_.append(buffer_, next_, own);
      next_ += own;
      length -= own;
    }
  }

  CompressedText text_;
  std::string buffer_, plane_;
  std::size_t next_ = 0, filled_ = 0;
  std::uint64_t before_ = 0;  // bytes in front of the buffer
  std::uint64_t plane_at_ = 0, size_ = 0;
};

/// An entry of a map from numbers to metadata, of which the name is wanted.
struct Name {
  std::uint64_t id = 0;
  std::string_view text;
  EventStat stat = EventStat::other;  // of names of stats
};
Name name_in(ProtobufFields entry) {
  Name name;
  while (entry.next()) {
    if (entry.is_number(1)) name.id = entry.number();
    if (!entry.is_bytes(2)) continue;
    ProtobufFields metadata = entry.message();
    while (metadata.next()) {
      if (metadata.is_bytes(2)) name.text = metadata.bytes();
    }
  }
  return name;
}

/// Sorted, and not hashed: who writes a file chooses the numbers.
class Names {
 public:
  void clear() { names_.clear(); }
  void add(const Name& name) {
    constexpr std::size_t kMost = std::size_t{4} << 20;
    if (names_.size() == kMost) throw Error("it has more than {} names in one plane", kMost);
    names_.push_back(name);
  }
  void sort() { std::ranges::stable_sort(names_, {}, &Name::id); }
  /// The last of the number; null for none.
  const Name* find(std::uint64_t id) const {
    const auto after = std::ranges::upper_bound(names_, id, {}, &Name::id);
    return after != names_.begin() && std::prev(after)->id == id ? &*std::prev(after) : nullptr;
  }

 private:
  std::vector<Name> names_;
};

/// A value that a plane or an event has.
struct Stat {
  std::uint64_t id = 0;
  std::optional<std::uint64_t> number;
  std::optional<std::string_view> text;
};

class XSpace {
 public:
  XSpace(Recording& recording, Process& process)
      : recording_(recording), process_(process), events_(recording, process) {}

  void take_plane(std::string_view bytes, std::uint64_t at) {
    const ProtobufFields plane(bytes, at);
    const std::string_view name = learn_names(plane);
    if (name == kTaskEnvironment) return take_environment(plane);
    saw_tpu_ = saw_tpu_ || name.starts_with("/device:TPU:");
    if (const auto row = gpu_row(name)) {
      gpu_ = row->gpu;
      take_gpu(plane);
      for_lines(plane, &XSpace::take_line_of_gpu);
    } else if (name == "/host:CPU" || name == "/host:CUPTI") {
      for_lines(plane, &XSpace::take_line_of_host);
    }
  }

  void finish() {
    events_.finish();
    // Times of a normalised file count from when the profile began.
    constexpr std::uint64_t kMostTime = std::numeric_limits<std::int64_t>::max();
    if (is_absolute_) {
      recording_.clock = "Unix time";
    } else if (profile_began_ns_ > 0 && profile_began_ns_ <= kMostTime) {
      move_times(process_, static_cast<std::int64_t>(profile_began_ns_));
      recording_.clock = "Unix time";
    } else {
      recording_.clock = "from when the profile began";
    }
  }
  bool saw_tpu() const { return saw_tpu_; }

 private:
  /// The name of the plane, and those that its events and stats have.
  std::string_view learn_names(ProtobufFields plane) {
    std::string_view name;
    event_names_.clear();
    stats_.clear();
    while (plane.next()) {
      if (plane.is_bytes(2)) name = plane.bytes();
      if (plane.is_bytes(4)) event_names_.add(name_in(plane.message()));
      if (!plane.is_bytes(5)) continue;
      Name stat = name_in(plane.message());
      stat.stat = stat_named(stat.text);
      stats_.add(stat);
    }
    event_names_.sort();
    stats_.sort();
    return name;
  }

  Stat stat_in(ProtobufFields fields) const {
    Stat stat;
    while (fields.next()) {
      if (fields.is_number(1)) stat.id = fields.number();
      if (fields.is_number(3) || fields.is_number(4)) stat.number = fields.number();
      if (fields.is_bytes(5) || fields.is_bytes(6)) stat.text = fields.bytes();
      if (fields.is_number(7)) {
        if (const Name* const named = stats_.find(fields.number())) stat.text = named->text;
      }
    }
    return stat;
  }

  template <class See>
  void for_stats(ProtobufFields plane, See&& see) const {
    constexpr std::uint32_t kStats = 6;
    while (plane.next()) {
      if (!plane.is_bytes(kStats)) continue;
      const Stat stat = stat_in(plane.message());
      if (const Name* const known = stats_.find(stat.id)) see(known->text, stat);
    }
  }

  void take_environment(const ProtobufFields& plane) {
    for_stats(plane, [&](std::string_view name, const Stat& stat) {
      if (name == "profile_start_time") profile_began_ns_ = stat.number.value_or(0);
    });
  }

  void take_gpu(const ProtobufFields& plane) {
    Gpu gpu;
    gpu.number = gpu_;
    std::optional<std::uint64_t> major, minor;
    for_stats(plane, [&](std::string_view name, const Stat& stat) {
      if (name == "device_vendor" && stat.text == "AMD")
        throw Error(
            "it is of a GPU of AMD (device_vendor of /device:GPU:{}): launchgap reads those of "
            "NVIDIA's",
            gpu_);
      if (name == "memory_size") gpu.memory_bytes = stat.number;
      if (name == "compute_cap_major") major = stat.number;
      if (name == "compute_cap_minor") minor = stat.number;
      if (name == "gpu_device_name" && stat.text) gpu.name = *stat.text;
    });
    if (major && minor) gpu.compute_capability = fmt::format("{}.{}", *major, *minor);
    const auto known = std::ranges::find(recording_.gpus, gpu_, &Gpu::number);
    if (known == recording_.gpus.end()) recording_.gpus.push_back(std::move(gpu));
  }

  using TakeLine = void (XSpace::*)(ProtobufFields);
  void for_lines(ProtobufFields plane, TakeLine take) {
    constexpr std::uint32_t kLines = 3;
    while (plane.next()) {
      if (!plane.is_bytes(kLines)) continue;
      line_id_ = 0;
      line_name_ = {};
      line_ns_ = 0;
      ProtobufFields head = plane.message();
      while (head.next()) {
        if (head.is_number(1)) line_id_ = head.number();
        if (head.is_bytes(2)) line_name_ = head.bytes();
        if (head.is_number(3)) line_ns_ = static_cast<std::int64_t>(head.number());
      }
      (this->*take)(plane.message());
    }
  }

  void take_line_of_gpu(ProtobufFields line) {
    const auto stream = stream_of_line(line_name_);
    if (!stream) return;
    for_events(line,
               [&](const ProfiledEvent& event) { events_.take_of_gpu(gpu_, *stream, event); });
  }

  void take_line_of_host(ProtobufFields line) {
    // "python3" may be several, and "tf_Compute/1105654971" has its number already.
    const std::string thread = line_name_.find('/') == std::string_view::npos
                                   ? fmt::format("{}/{}", line_name_, line_id_)
                                   : std::string(line_name_);
    for_events(line, [&](const ProfiledEvent& event) { events_.take_of_host(thread, event); });
  }

  template <class Take>
  void for_events(ProtobufFields line, Take&& take) {
    constexpr std::uint32_t kEvents = 4;
    while (line.next()) {
      if (line.is_bytes(kEvents)) take_event(line.message(), take);
      stop_if_asked();  // a plane may be of millions
    }
  }

  template <class Take>
  void take_event(ProtobufFields fields, Take&& take) {
    ProfiledEvent event;
    std::int64_t offset_ps = 0, duration_ps = 0;
    bool is_sum = false;
    while (fields.next()) {
      if (fields.is_number(1)) {
        if (const Name* const named = event_names_.find(fields.number())) event.name = named->text;
      }
      if (fields.is_number(2)) offset_ps = static_cast<std::int64_t>(fields.number());
      if (fields.is_number(3)) duration_ps = static_cast<std::int64_t>(fields.number());
      if (fields.is_number(5)) is_sum = true;  // of so many events, that have no times
      if (!fields.is_bytes(4)) continue;
      const Stat stat = stat_in(fields.message());
      const Name* const known = stats_.find(stat.id);
      if (!known || known->stat == EventStat::other) continue;
      if (stat.number) event.set(known->stat, *stat.number);
      if (stat.text) event.set(known->stat, *stat.text);
    }
    if (is_sum) return;
    set_times(offset_ps, duration_ps, event);
    is_absolute_ = is_absolute_ || event.begin_ns >= kUnixTime;
    take(event);
  }

  /// Lines of the host and of a GPU count from times of their own. Leaves 0 for what cannot be.
  void set_times(std::int64_t offset_ps, std::int64_t duration_ps, ProfiledEvent& event) const {
    constexpr std::int64_t kPicoseconds = 1000;
    const auto rounded = [](std::int64_t ps) {
      return ps / kPicoseconds + (ps % kPicoseconds >= kPicoseconds / 2 ? 1 : 0);
    };
    std::int64_t end_ps = 0;
    if (offset_ps < 0 || duration_ps < 0 ||
        __builtin_add_overflow(offset_ps, duration_ps, &end_ps) ||
        __builtin_add_overflow(line_ns_, rounded(offset_ps), &event.begin_ns) ||
        __builtin_add_overflow(line_ns_, rounded(end_ps), &event.end_ns))
      event.begin_ns = event.end_ns = 0;
  }

  static constexpr std::int64_t kUnixTime = 1'000'000'000LL * 1'000'000'000;  // 2001

  Recording& recording_;
  Process& process_;
  ProfiledEvents events_;
  // Of the plane, the line, that is being read.
  Names event_names_, stats_;
  std::uint64_t gpu_ = 0, line_id_ = 0;
  std::string_view line_name_;
  std::int64_t line_ns_ = 0;
  std::uint64_t profile_began_ns_ = 0;
  bool is_absolute_ = false, saw_tpu_ = false;
};

}  // namespace

bool is_xplane(std::string_view begin) {
  constexpr char kPlane = 0x0A, kId = 0x08, kName = 0x12;
  const auto skip_number = [&] {
    while (!begin.empty() && (begin.front() & '\x80') != 0) begin.remove_prefix(1);
    if (!begin.empty()) begin.remove_prefix(1);
  };
  if (!begin.starts_with(kPlane)) return false;
  begin.remove_prefix(1);
  skip_number();
  if (begin.starts_with(kId)) {
    begin.remove_prefix(1);
    skip_number();
  }
  if (!begin.starts_with(kName)) return false;
  begin.remove_prefix(1);
  skip_number();
  constexpr std::string_view kNames[] = {
      "/host:", "/device:", kTaskEnvironment, "Host CPUs", "Syscalls", "#Chip"};
  return std::ranges::any_of(kNames,
                             [&](std::string_view name) { return begin.starts_with(name); });
}

Recording read_xplane(const std::filesystem::path& file) {
  Recording recording;
  recording.file = file;
  recording.recorder = kProfiler;
  Process& process = recording.processes.emplace_back();
  XSpace space(recording, process);
  Planes planes(file);
  while (planes.next()) space.take_plane(planes.bytes(), planes.begin_at());
  space.finish();
  recording.form = fmt::format("XPlane{}", planes.is_compressed() ? ", compressed" : "");
  if (process.events() > 0 || !recording.gpus.empty()) return recording;
  throw Error(space.saw_tpu()
                  ? "it is an XPlane of a TPU: launchgap reads those of NVIDIA's GPUs"
                  : "it is an XPlane of the host alone, and no GPU is in it: profile a program "
                    "that runs on one");
}

}  // namespace launchgap::recording
