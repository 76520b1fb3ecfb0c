#include "harness/recording/event_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <concepts>
#include <fcntl.h>
#include <limits>
#include <span>
#include <string_view>
#include <type_traits>
#include <unistd.h>
#include <utility>
#include <zlib.h>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/core/stop.h"
#include "harness/record/schema.h"
#include "harness/recording/compressed_text.h"

namespace launchgap::recording {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPerBlock = 8192;

/// A file of gzip members.
class MemberFile {
 public:
  explicit MemberFile(const fs::path& path)
      : path_(path),
        descriptor_(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644)) {
    if (descriptor_ < 0) throw WriteError(path_);
  }
  ~MemberFile() { close(descriptor_); }
  MemberFile(const MemberFile&) = delete;
  MemberFile& operator=(const MemberFile&) = delete;

  void write(std::string_view text) {
    z_stream stream{};
    // 15 bits of window, and 16 for gzip's header.
    if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
      throw std::bad_alloc();
    compressed_.resize(deflateBound(&stream, text.size()));
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    stream.avail_in = static_cast<uInt>(text.size());
    stream.next_out = reinterpret_cast<Bytef*>(compressed_.data());
    stream.avail_out = static_cast<uInt>(compressed_.size());
    deflate(&stream, Z_FINISH);
    const std::size_t size = compressed_.size() - stream.avail_out;
    deflateEnd(&stream);
    const char* at = compressed_.data();
    for (std::size_t left = size; left > 0;) {
      const ssize_t written = ::write(descriptor_, at, left);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) throw WriteError(path_);
      at += written;
      left -= static_cast<std::size_t>(written);
    }
  }

 private:
  fs::path path_;
  int descriptor_;
  std::string compressed_;
};

// --- one description of each kind of event, for writer and reader ---

/// A column: how its value is written down and read back.
template <class Event>
struct EventColumn {
  const char* key;
  void (*write)(const Event&, std::string&);
  bool (*read)(Event&, const Json&);  // false for one that is no such value
};

/// Enumerators are their numbers; true and false are 1 and 0.
template <class Value>
void write_value(Value value, std::string& text) {
  const auto out = std::back_inserter(text);
  if constexpr (std::is_signed_v<Value>) {
    fmt::format_to(out, "{}", static_cast<std::int64_t>(value));
  } else {
    fmt::format_to(out, "{}", static_cast<std::uint64_t>(value));
  }
}

template <class Value>
bool read_value(const Json& json, Value& value) {
  const auto take = [&]<class Integer>(auto number) {
    if (!std::in_range<Integer>(number)) return false;
    value = static_cast<Value>(number);
    return static_cast<decltype(number)>(value) == number;  // 2 is no bool
  };
  const auto take_any = [&](auto number) {
    if constexpr (std::is_enum_v<Value>) {
      return take.template operator()<std::underlying_type_t<Value>>(number);
    } else if constexpr (std::same_as<Value, bool>) {
      return take.template operator()<std::uint8_t>(number);
    } else {
      return take.template operator()<Value>(number);
    }
  };
  if (json.is_number_unsigned()) return take_any(json.get<std::uint64_t>());
  return json.is_number_integer() && take_any(json.get<std::int64_t>());
}

template <class Event, auto member>
constexpr EventColumn<Event> column(const char* key) {
  return {key,
          [](const Event& event, std::string& text) { write_value(event.*member, text); },
          [](Event& event, const Json& json) { return read_value(json, event.*member); }};
}

template <auto extents, int axis>
constexpr EventColumn<activity::KernelRun> extent(const char* key) {
  using activity::KernelRun;
  return {key,
          [](const KernelRun& kernel, std::string& text) {
            write_value((kernel.*extents)[axis], text);
          },
          [](KernelRun& kernel, const Json& json) {
            return read_value(json, (kernel.*extents)[axis]);
          }};
}

template <class Event>
struct Kind;  // name, columns, list(process)

template <>
struct Kind<activity::Call> {
  using Event = activity::Call;
  static constexpr const char* name = "call";
  static constexpr auto columns =
      std::to_array<EventColumn<Event>>({column<Event, &Event::begin_ns>("begin_ns"),
                                         column<Event, &Event::end_ns>("end_ns"),
                                         column<Event, &Event::correlation>("correlation"),
                                         column<Event, &Event::thread>("thread"),
                                         column<Event, &Event::id>("name"),
                                         column<Event, &Event::domain>("domain"),
                                         column<Event, &Event::purpose>("purpose")});
  static auto& list(auto& process) { return process.trace.calls; }
};

template <>
struct Kind<activity::KernelRun> {
  using Event = activity::KernelRun;
  static constexpr const char* name = "kernel";
  static constexpr auto columns =
      std::to_array<EventColumn<Event>>({column<Event, &Event::begin_ns>("begin_ns"),
                                         column<Event, &Event::end_ns>("end_ns"),
                                         column<Event, &Event::correlation>("correlation"),
                                         column<Event, &Event::stream>("stream"),
                                         column<Event, &Event::name>("name"),
                                         extent<&Event::grid, 0>("grid_x"),
                                         extent<&Event::grid, 1>("grid_y"),
                                         extent<&Event::grid, 2>("grid_z"),
                                         extent<&Event::block, 0>("block_x"),
                                         extent<&Event::block, 1>("block_y"),
                                         extent<&Event::block, 2>("block_z")});
  static auto& list(auto& process) { return process.trace.kernels; }
};

template <>
struct Kind<activity::Transfer> {
  using Event = activity::Transfer;
  static constexpr const char* name = "transfer";
  static constexpr auto columns =
      std::to_array<EventColumn<Event>>({column<Event, &Event::begin_ns>("begin_ns"),
                                         column<Event, &Event::end_ns>("end_ns"),
                                         column<Event, &Event::correlation>("correlation"),
                                         column<Event, &Event::stream>("stream"),
                                         column<Event, &Event::bytes>("bytes"),
                                         column<Event, &Event::fill>("fill")});
  static auto& list(auto& process) { return process.trace.transfers; }
};

template <>
struct Kind<activity::Graph> {
  using Event = activity::Graph;
  static constexpr const char* name = "graph";
  static constexpr auto columns =
      std::to_array<EventColumn<Event>>({column<Event, &Event::begin_ns>("begin_ns"),
                                         column<Event, &Event::end_ns>("end_ns"),
                                         column<Event, &Event::correlation>("correlation"),
                                         column<Event, &Event::stream>("stream"),
                                         column<Event, &Event::graph>("graph")});
  static auto& list(auto& process) { return process.trace.graphs; }
};

template <>
struct Kind<activity::Overhead> {
  using Event = activity::Overhead;
  static constexpr const char* name = "overhead";
  static constexpr auto columns =
      std::to_array<EventColumn<Event>>({column<Event, &Event::begin_ns>("begin_ns"),
                                         column<Event, &Event::end_ns>("end_ns"),
                                         column<Event, &Event::correlation>("correlation"),
                                         column<Event, &Event::kind>("overhead")});
  static auto& list(auto& process) { return process.trace.overheads; }
};

template <>
struct Kind<activity::Wait> {
  using Event = activity::Wait;
  static constexpr const char* name = "wait";
  static constexpr auto columns =
      std::to_array<EventColumn<Event>>({column<Event, &Event::begin_ns>("begin_ns"),
                                         column<Event, &Event::end_ns>("end_ns"),
                                         column<Event, &Event::correlation>("correlation"),
                                         column<Event, &Event::type>("type")});
  static auto& list(auto& process) { return process.trace.waits; }
};

template <>
struct Kind<activity::Memory> {
  using Event = activity::Memory;
  static constexpr const char* name = "memory";
  static constexpr auto columns =
      std::to_array<EventColumn<Event>>({column<Event, &Event::at_ns>("begin_ns"),
                                         column<Event, &Event::address>("address"),
                                         column<Event, &Event::bytes>("bytes"),
                                         column<Event, &Event::pool>("pool"),
                                         column<Event, &Event::correlation>("correlation"),
                                         column<Event, &Event::kind>("memory"),
                                         column<Event, &Event::release>("release")});
  static auto& list(auto& process) { return process.trace.memory; }
};

template <>
struct Kind<Range> {
  using Event = Range;
  static constexpr const char* name = "range";
  static constexpr auto columns =
      std::to_array<EventColumn<Event>>({column<Event, &Event::begin_ns>("begin_ns"),
                                         column<Event, &Event::end_ns>("end_ns"),
                                         column<Event, &Event::thread>("thread"),
                                         column<Event, &Event::name>("name")});
  static auto& list(auto& process) { return process.ranges; }
};

/// Calls `what.template operator()<Event>()` for each kind.
template <class What>
void for_each_kind(What&& what) {
  what.template operator()<activity::Call>();
  what.template operator()<activity::KernelRun>();
  what.template operator()<activity::Transfer>();
  what.template operator()<activity::Graph>();
  what.template operator()<activity::Overhead>();
  what.template operator()<activity::Wait>();
  what.template operator()<activity::Memory>();
  what.template operator()<Range>();
}

// --- writing ---

template <class Event>
void write_block(MemberFile& file, std::span<const Event> events, std::string& line) {
  line.clear();
  const auto out = std::back_inserter(line);
  fmt::format_to(
      out, R"({{"schema":"{}","record":"events","kind":"{}")", kSchema, Kind<Event>::name);
  for (const EventColumn<Event>& column : Kind<Event>::columns) {
    fmt::format_to(out, R"(,"{}":[)", column.key);
    bool separate = false;
    for (const Event& event : events) {
      if (std::exchange(separate, true)) line += ',';
      column.write(event, line);
    }
    line += ']';
  }
  line += "}\n";
  file.write(line);
}

Json head_as_json(const EventsHead& head, const Process& process) {
  Json json = new_record("event_names");
  json["recorder"] = head.recorder;
  json["clock"] = head.clock;
  json["pid"] = head.pid;
  if (head.rank) json["rank"] = *head.rank;
  json["gpus"] = Json::array();
  for (const Gpu& gpu : head.gpus) {
    Json one = {{"number", gpu.number}, {"name", gpu.name}, {"uuid", gpu.uuid}};
    if (!gpu.compute_capability.empty()) one["compute_capability"] = gpu.compute_capability;
    if (gpu.memory_bytes) one["memory_bytes"] = *gpu.memory_bytes;
    json["gpus"].push_back(std::move(one));
  }
  json["threads"] = process.threads;
  json["streams"] = Json::array();
  for (const Stream& stream : process.streams)
    json["streams"].push_back({stream.gpu, stream.context, stream.number});
  json["names"] = process.trace.names();
  json["events"] = process.trace.size() + process.ranges.size();
  return json;
}

// --- reading ---

template <class Event>
void read_block(const Json& json, Process& process) {
  constexpr auto& kColumns = Kind<Event>::columns;
  auto& events = Kind<Event>::list(process);
  std::optional<std::size_t> n;
  for (const EventColumn<Event>& column : kColumns) {
    const Json& values = array_field(json, column.key);
    if (!n) events.resize(*(n = values.size()));
    if (values.size() != *n)
      throw Error(fmt::format(
          "\"{}\" has {} values, and \"{}\" {}", column.key, values.size(), kColumns[0].key, *n));
    for (std::size_t i = 0; i < *n; ++i) {
      if (!column.read(events[i], values[i])) {
        throw Error(fmt::format("\"{}\" has a value that cannot be: {}",
                                column.key,
                                values[i].is_number() ? values[i].dump() : kind_of(values[i])));
      }
    }
  }
}

/// Indices into names, threads and streams that do not exist are nobody's to use.
void check_indices(const Process& process) {
  const auto check = [](std::size_t index, std::size_t size, const char* what) {
    if (index >= size) throw Error(fmt::format("a {} has the number {} of {}", what, index, size));
  };
  const auto known = [](auto value, auto last, const char* what) {
    if (value > last) throw Error(fmt::format("a {} is of a later launchgap: use that one", what));
  };
  const std::size_t names = process.trace.names().size();
  for (const auto& overhead : process.trace.overheads)
    known(overhead.kind, activity::OverheadKind::buffer_request, "kind of overhead");
  for (const auto& call : process.trace.calls) {
    known(call.domain, activity::Domain::runtime, "domain of calls");
    known(call.purpose, activity::Purpose::wait, "purpose of calls");
    check(call.id, names, "name");
    check(call.thread, process.threads.size(), "thread");
  }
  for (const auto& kernel : process.trace.kernels) {
    check(kernel.name, names, "name");
    check(kernel.stream, process.streams.size(), "stream");
  }
  for (const auto& transfer : process.trace.transfers)
    check(transfer.stream, process.streams.size(), "stream");
  for (const auto& graph : process.trace.graphs)
    check(graph.stream, process.streams.size(), "stream");
  for (const auto& range : process.ranges) {
    check(range.name, names, "name");
    check(range.thread, process.threads.size(), "thread");
  }
}

/// Lines of a compressed text.
class Lines {
 public:
  explicit Lines(const fs::path& file) : text_(file) {}

  bool next(std::string& line) {
    constexpr std::size_t kLongest = std::size_t{512} << 20;
    line.clear();
    for (;;) {
      const std::size_t end = buffer_.find('\n', at_);
      if (end != std::string::npos) {
        line.append(buffer_, at_, end - at_);
        at_ = end + 1;
        return true;
      }
      line.append(buffer_, at_);
      if (line.size() > kLongest) throw Error("it has a line that is too long");
      buffer_.resize(1 << 18);
      buffer_.resize(text_.read(buffer_.data(), buffer_.size()));
      at_ = 0;
      if (buffer_.empty()) {
        if (!line.empty()) throw Error("it ends in the middle of a block");
        return false;
      }
    }
  }

 private:
  CompressedText text_;
  std::string buffer_;
  std::size_t at_ = 0;
};

EventsHead read_head(const Json& json, Process& process) {
  EventsHead head;
  head.recorder = field<std::string>(json, "recorder", "");
  head.clock = field<std::string>(json, "clock", "");
  head.pid = process.pid = field<std::uint64_t>(json, "pid", 0);
  head.rank = process.rank = optional_field<std::int64_t>(json, "rank");
  for (const Json& one : array_field(json, "gpus")) {
    Gpu gpu;
    gpu.number = field<std::uint64_t>(one, "number", 0);
    gpu.name = field<std::string>(one, "name", "");
    gpu.uuid = field<std::string>(one, "uuid", "");
    gpu.compute_capability = field<std::string>(one, "compute_capability", "");
    gpu.memory_bytes = optional_field<std::uint64_t>(one, "memory_bytes");
    head.gpus.push_back(std::move(gpu));
  }
  for (const auto& thread : field<std::vector<std::string>>(json, "threads"))
    process.threads.push_back(thread);
  for (const Json& stream : array_field(json, "streams")) {
    if (!stream.is_array() || stream.size() != 3) throw Error("a stream has not three numbers");
    Stream one;
    std::size_t i = 0;
    for (std::uint64_t* part : {&one.gpu, &one.context, &one.number}) {
      if (!stream[i].is_number_unsigned()) throw Error("a stream has not three numbers");
      *part = stream[i++].get<std::uint64_t>();
    }
    process.streams.push_back(one);
  }
  process.trace.set_names(field<std::vector<std::string>>(json, "names"));
  return head;
}

}  // namespace

void write_events(const fs::path& file, const EventsHead& head, const Process& process) {
  MemberFile out(file);
  std::string line = to_line(head_as_json(head, process));
  out.write(line);
  for_each_kind([&]<class Event>() {
    const auto& events = Kind<Event>::list(process);
    for (std::size_t first = 0; first < events.size(); first += kPerBlock)
      write_block<Event>(
          out,
          std::span<const Event>(events).subspan(first, std::min(kPerBlock, events.size() - first)),
          line);
  });
}

void read_events(const fs::path& file,
                 const std::function<void(const EventsHead&)>& begin,
                 const std::function<void(const Process&)>& block) {
  try {
    Lines lines(file);
    std::string line;
    Process process;
    bool begun = false;
    std::uint64_t told = 0, seen = 0;
    while (lines.next(line)) {
      stop_if_asked();
      const Json json = parse_json(line);
      const auto kind = field<std::string>(json, "record");
      if (kind == "event_names") {
        if (begun) throw Error("it has its names twice");
        begun = true;
        told = field<std::uint64_t>(json, "events");
        begin(read_head(json, process));
      } else if (kind == "events") {
        if (!begun) throw Error("it does not begin with its names");
        process.trace.clear();
        process.ranges.clear();
        const auto of = field<std::string>(json, "kind");
        for_each_kind([&]<class Event>() {
          if (of == Kind<Event>::name) read_block<Event>(json, process);
        });
        check_indices(process);
        seen += process.trace.size() + process.ranges.size();
        block(process);
      }
    }
    if (!begun) throw Error("it is empty");
    // A member that is cut off at its first bytes is no error to gzip.
    if (seen != told) throw Error(fmt::format("it has {} of its {} events", seen, told));
  } catch (const WriteError&) {
    throw;  // of what is made of the events
  } catch (const Stopped&) {
    throw;
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", file.string(), error.what()));
  }
}

fs::path events_of(const fs::path& records_file) {
  return records_file.parent_path().parent_path() / "events" /
         (records_file.filename().string() + ".gz");
}

}  // namespace launchgap::recording
