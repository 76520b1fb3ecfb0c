#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/core/printable.h"
#include "harness/core/text.h"
#include "harness/import/pickle.h"
#include "harness/import/readers.h"

namespace launchgap::recording {
namespace {

using Kind = Pickle::Kind;
using Value = Pickle::Value;

/// What an entry of a trace says was done.
enum class Entry : std::uint8_t { alloc, free_requested, free_completed, oom, take, give, other };

Entry entry_named(std::string_view action) {
  struct Named {
    std::string_view name;
    Entry entry;
  };
  static constexpr auto kNames = std::to_array<Named>({{"alloc", Entry::alloc},
                                                       {"free_requested", Entry::free_requested},
                                                       {"free_completed", Entry::free_completed},
                                                       {"oom", Entry::oom},
                                                       {"segment_alloc", Entry::take},
                                                       {"segment_map", Entry::take},
                                                       {"segment_free", Entry::give},
                                                       {"segment_unmap", Entry::give}});
  for (const Named& one : kNames) {
    if (one.name == action) return one.entry;
  }
  return Entry::other;
}

AllocationAction action_of(Entry entry) {
  if (entry == Entry::alloc) return AllocationAction::allocate;
  if (entry == Entry::free_requested) return AllocationAction::give_back;
  return entry == Entry::oom ? AllocationAction::fail : AllocationAction::release;
}

class Snapshot {
 public:
  Snapshot(const Pickle& pickle, Recording& recording)
      : pickle_(pickle), recording_(recording), process_(recording.processes.emplace_back()) {}

  void take() {
    process_.thread("not recorded");
    const Value root = pickle_.root();
    const bool is_list = root.kind() == Kind::list;
    const auto segments = is_list ? root : pickle_.find(root, "segments");
    const auto traces = pickle_.find(root, "device_traces");
    if (!segments || segments->kind() != Kind::list)
      throw Error(
          "it is a pickle, and no memory snapshot of PyTorch: it has no list \"segments\". "
          "torch.cuda.memory._dump_snapshot(FILE) writes one");
    if (traces) take_traces(*traces);
    take_segments(*segments);
    if (process_.events() == 0) {
      take_live(is_list);
    } else {
      remark_on_earlier();
    }
    std::ranges::stable_sort(process_.allocations, {}, &Allocation::at_ns);
    std::ranges::stable_sort(process_.trace.memory, {}, &activity::Memory::at_ns);
  }

 private:
  /// A block that is in use at the end.
  struct Block {
    std::uint64_t gpu = 0, address = 0, bytes = 0, stream = 0;
  };

  /// Lists stand in a snapshot once. Where one stands again and again, a small file could be worth
  /// any number of events.
  std::span<const Value> only_once(Value list, const std::string& what) {
    if (list.kind() != Kind::list && list.kind() != Kind::tuple) throw Error("{} is no list", what);
    if (!pickle_.items(list).empty() && !seen_.insert(pickle_.items(list).data()).second)
      throw Error("{} is a list that stands elsewhere too", what);
    return pickle_.items(list);
  }

  void take_traces(Value traces) {
    std::uint64_t gpu = 0;
    for (const Value trace : only_once(traces, "device_traces")) {
      const std::string what = fmt::format("device_traces[{}]", gpu);
      if (gpu > kMostGpu) throw Error(what + " is of a GPU that cannot be");
      last_ns_ = 0;
      std::size_t number = 0;
      for (const Value entry : only_once(trace, what)) take_entry(entry, gpu, what, number++);
      ++gpu;
    }
    if (without_time_ > 0)
      recording_.remarks.push_back(
          fmt::format("{} events have no time: they are put 1 ns behind the one before, in whose "
                      "order they are",
                      without_time_));
    if (went_back_ > 0)
      recording_.remarks.push_back(
          fmt::format("the times of {} events go back: they are put at that of the one before, in "
                      "whose order they are",
                      went_back_));
  }

  /// An event or a block that stands again and again by memo takes two bytes, and else more than
  /// thirty.
  void count(const auto& what) {
    constexpr std::uint64_t kLeastBytes = 16;
    if (++entries_ > pickle_.bytes() / kLeastBytes)
      throw Error(what() + " is more than the bytes of the file have room for");
  }

  void take_entry(Value entry, std::uint64_t gpu, const std::string& list, std::size_t number) {
    const auto what = [&] { return fmt::format("{}[{}]", list, number); };
    count(what);
    if (entry.kind() != Kind::dict) throw Error(what() + " is no dict");
    const auto action = pickle_.find(entry, "action");
    if (!action || action->kind() != Kind::text) throw Error(what() + " has no action");
    const Entry kind = entry_named(pickle_.text(*action));
    const std::int64_t at_ns = time_of(entry, what);
    if (kind == Entry::other) {
      if (pickle_.text(*action) != "snapshot")
        recording_.leave_out(fmt::format("events \"{}\"", printable(pickle_.text(*action), 40)));
      return;
    }
    const std::uint64_t bytes = size_of(entry, "size", what);
    if (bytes == 0) return recording_.leave_out("events of no bytes");
    std::uint64_t address = 0;
    if (kind != Entry::oom) {
      const auto known = natural(entry, "addr");
      if (!known) return recording_.leave_out("events without an address that can be");
      address = *known;
    }
    if (kind == Entry::take || kind == Entry::give) {
      activity::Memory memory;
      memory.at_ns = at_ns;
      memory.address = address;
      memory.bytes = bytes;
      memory.kind = activity::kDeviceMemory;
      memory.gpu = static_cast<std::uint32_t>(gpu);
      memory.release = kind == Entry::give;
      process_.trace.memory.push_back(memory);
      return;
    }
    process_.allocations.push_back(
        {at_ns, address, bytes, gpu, stream_of(entry), 0, action_of(kind)});
  }

  /// The order of a trace is that in which things happened, and its times go with it.
  std::int64_t time_of(Value entry, const auto& what) {
    const auto time = pickle_.find(entry, "time_us");
    std::int64_t at_ns = 0;
    if (!time) {
      ++without_time_;
      at_ns = last_ns_ + 1;
    } else {
      const auto microseconds = pickle_.integer(*time);
      if (!microseconds || *microseconds < 0 ||
          __builtin_mul_overflow(*microseconds, std::int64_t{1000}, &at_ns))
        throw Error(what() + " has a time_us that cannot be");
      has_times_ = true;
      if (at_ns < last_ns_) ++went_back_;
    }
    last_ns_ = std::max({at_ns, last_ns_, std::int64_t{1}});
    return last_ns_;
  }

  std::uint64_t size_of(Value entry, std::string_view key, const auto& what) {
    const auto bytes = natural(entry, key);
    if (!bytes || *bytes > kMostAllocationBytes)
      throw Error("{} has a {} that cannot be", what(), key);
    return *bytes;
  }

  std::optional<std::uint64_t> natural(Value dict, std::string_view key) const {
    const auto value = pickle_.find(dict, key);
    return value ? pickle_.natural(*value) : std::nullopt;
  }

  /// Pointers, some with their highest bit; none is the default stream.
  std::uint64_t stream_of(Value dict) const {
    const auto stream = pickle_.find(dict, "stream");
    if (!stream) return 0;
    if (const auto number = pickle_.natural(*stream)) return *number;
    return static_cast<std::uint64_t>(pickle_.integer(*stream).value_or(0));
  }

  void take_segments(Value segments) {
    std::size_t number = 0;
    for (const Value segment : only_once(segments, "segments"))
      take_segment(segment, fmt::format("segments[{}]", number++));
  }

  void take_segment(Value segment, const std::string& what) {
    if (segment.kind() != Kind::dict) throw Error(what + " is no dict");
    const auto gpu = natural(segment, "device");
    const auto address = natural(segment, "address");
    const auto blocks = pickle_.find(segment, "blocks");
    if (!gpu || *gpu > kMostGpu || !address || !blocks)
      throw Error(what + " has no device, address or blocks that can be");
    std::uint64_t at = *address;
    std::size_t number = 0;
    for (const Value block : only_once(*blocks, what + ".blocks")) {
      const auto name = [&] { return fmt::format("{}.blocks[{}]", what, number); };
      count(name);
      if (block.kind() != Kind::dict) throw Error(name() + " is no dict");
      const std::uint64_t bytes = size_of(block, "size", name);
      at = natural(block, "address").value_or(at);
      const auto state = pickle_.find(block, "state");
      if (!state || state->kind() != Kind::text) throw Error(name() + " has no state");
      const bool requested = pickle_.find(block, "requested_size").has_value();
      if (pickle_.text(*state).starts_with("active") && bytes > 0)
        live_.push_back({*gpu,
                         at,
                         requested ? size_of(block, "requested_size", name) : bytes,
                         stream_of(segment)});
      at += bytes;
      ++number;
    }
  }

  /// Nothing tells when what is live was allocated.
  void take_live(bool is_list) {
    has_times_ = false;
    std::ranges::sort(
        live_, {}, [](const Block& block) { return std::pair(block.gpu, block.address); });
    std::int64_t at_ns = 0;
    for (const Block& block : live_) {
      if (block.bytes == 0) continue;
      process_.allocations.push_back({++at_ns,
                                      block.address,
                                      block.bytes,
                                      block.gpu,
                                      block.stream,
                                      0,
                                      AllocationAction::allocate});
    }
    if (live_.empty())
      throw Error(
          "it has no events, and nothing was live: "
          "torch.cuda.memory._record_memory_history() before the work records them");
    recording_.remarks.push_back(fmt::format(
        "{}, so there are no events in their order: what was live at its end stands here as "
        "allocations, by address. Call torch.cuda.memory._record_memory_history() before the work",
        is_list ? "it is a snapshot of before PyTorch 2.1, which has no device_traces"
                : "its device_traces are empty"));
  }

  /// The trace is a ring: what was allocated before its first event is live, and nothing says so.
  void remark_on_earlier() {
    std::set<std::pair<std::uint64_t, std::uint64_t>> known;
    for (const Allocation& one : process_.allocations) {
      if (one.action == AllocationAction::allocate) known.emplace(one.gpu, one.address);
      if (one.action == AllocationAction::release) known.erase({one.gpu, one.address});
    }
    std::uint64_t count = 0, bytes = 0;
    for (const Block& block : live_) {
      if (known.contains({block.gpu, block.address})) continue;
      ++count;
      bytes += block.bytes;
    }
    if (count == 0) return;
    recording_.remarks.push_back(
        fmt::format("{} of {} in all, live at the end, came before the first event: "
                    "allocations before it are not recorded",
                    counted(count, "block"),
                    bytes_text(static_cast<double>(bytes))));
  }

  const Pickle& pickle_;
  Recording& recording_;
  Process& process_;
  std::unordered_set<const Value*> seen_;
  std::vector<Block> live_;
  std::int64_t last_ns_ = 0;
  std::uint64_t entries_ = 0;
  std::uint64_t without_time_ = 0, went_back_ = 0;

 public:
  bool has_times_ = false;
};

}  // namespace

Recording read_torch_snapshot(const std::filesystem::path& file) {
  Recording recording;
  recording.file = file;
  recording.recorder = "PyTorch's memory snapshot";
  const Pickle pickle(file);
  recording.form = fmt::format(
      "pickle, protocol {}{}", pickle.protocol(), pickle.is_compressed() ? ", compressed" : "");
  Snapshot snapshot(pickle, recording);
  snapshot.take();
  recording.clock = snapshot.has_times_ ? "Unix time" : "none: events are numbered";
  return recording;
}

}  // namespace launchgap::recording
