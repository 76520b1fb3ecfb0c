// The tables of replays of allocations.
#include "harness/summary/replay_answers.h"
#include "harness/summary/table_makers.h"

namespace launchgap {
namespace {

constexpr std::string_view kReplay = "The replay: its file in replays/.";
constexpr std::string_view kAllocator = "The allocator.";

/// An allocator of a replay.
struct AllocatorRow {
  const ReplayInfo& replay;
  const AllocatorRecord& allocator;
};

void for_each_allocator(const TableInputs& inputs, const auto& put) {
  for (const ReplayInfo& replay : inputs.session.replays) {
    for (const AllocatorRecord& allocator : replay.record.allocators) put(replay, allocator);
  }
}

auto of_allocator(auto AllocatorRecord::*member) {
  return [member](const AllocatorRow& row) { return row.allocator.*member; };
}
auto of_trace(auto TraceSummary::*member) {
  return [member](const AllocatorRow& row) { return row.replay.record.trace.*member; };
}
auto at_peak(auto MemoryMoment::*member) {
  return if_any(
      [](const AllocatorRow& row) -> const auto& { return row.allocator.at_peak; }, member);
}
auto of_failure(auto AllocationFailure::*member) {
  return if_any(
      [](const AllocatorRow& row) -> const auto& { return row.allocator.failure; }, member);
}
auto of_creep(auto CreepRecord::*member) {
  return if_any(
      [](const AllocatorRow& row) -> const auto& { return row.allocator.creep; }, member);
}

struct MomentRow {
  const ReplayInfo& replay;
  const AllocatorRecord& allocator;
  const MemoryMoment& moment;
};
auto of_moment(auto MemoryMoment::*member) {
  return [member](const MomentRow& row) { return row.moment.*member; };
}

struct AnswerRow {
  const ReplayInfo& replay;
  std::string answer;
};

struct EpochRow {
  const ReplayInfo& replay;
  const AllocatorRecord& allocator;
  std::size_t number;
  const EpochRecord& epoch;
};

}  // namespace

Table replays_table() {
  using Row = AllocatorRow;
  return make_table<Row>(
      "replays.csv",
      "replay of allocations and allocator",
      TableUse::details,
      [](const TableInputs& inputs, const auto& put) {
        for_each_allocator(inputs, [&](const ReplayInfo& replay, const AllocatorRecord& allocator) {
          put(Row{replay, allocator});
        });
      },
      {{"replay", kReplay, [](const Row& row) { return row.replay.file; }},
       {"trace", "What was played.", of_trace(&TraceSummary::name)},
       {"source", "Who recorded it.", of_trace(&TraceSummary::source)},
       {"sizes",
        "requested: what the program asked for; granted: what its allocator made of that.",
        of_trace(&TraceSummary::sizes)},
       {"over",
        "What gave memory: sim (addresses and a limit), host, or a device.",
        [](const Row& row) { return row.replay.record.over; }},
       {"simulated",
        "Whether that was of the fake CUDA libraries of the tests.",
        [](const Row& row) { return row.replay.record.simulated; }},
       {"injected",
        "What went wrong on purpose in each epoch.",
        [](const Row& row) { return row.replay.record.injected; }},
       {"allocator", kAllocator, of_allocator(&AllocatorRecord::name)},
       {"completed",
        "Whether every allocation was had.",
        of_allocator(&AllocatorRecord::completed)},
       {"limit_bytes", "The memory that there was.", of_allocator(&AllocatorRecord::limit_bytes)},
       {"peak_live_bytes",
        "The most that was live.",
        of_allocator(&AllocatorRecord::peak_live_bytes)},
       {"c_min_bytes",
        "The least limit with which the trace completes.",
        of_allocator(&AllocatorRecord::c_min_bytes)},
       {"c_min_over_peak",
        "As a multiple of the most that was live.",
        of_allocator(&AllocatorRecord::c_min_over_peak)},
       {"fails_again_at",
        "The largest of 64 limits up to twice that at which it fails again.",
        of_allocator(&AllocatorRecord::fails_again_at),
        "B"},
       {"reserved_peak_bytes",
        "The most that the allocator took.",
        of_allocator(&AllocatorRecord::reserved_peak_bytes)},
       {"largest_block_index",
        "1 - largest free block / free bytes, when most was live.",
        at_peak(&MemoryMoment::largest_block_index)},
       {"free_bytes", "Its denominator.", at_peak(&MemoryMoment::free_bytes)},
       {"internal_waste",
        "1 - live / granted then.",
        at_peak(&MemoryMoment::internal_waste),
        kShare},
       {"reserve_slack", "1 - live / taken then.", at_peak(&MemoryMoment::reserve_slack), kShare},
       {"failed_bytes",
        "Size of the first allocation that failed.",
        of_failure(&AllocationFailure::bytes)},
       {"failed_event", "Where in the trace.", of_failure(&AllocationFailure::event)},
       {"cured_by",
        "What cured it: stream_wait, device_wait, trim, destroy (what is live lay in the way), or "
        "none (with what is live it is more than the limit), rounding (it is, with each block "
        "rounded up to pages), taken (the device has too little free).",
        of_failure(&AllocationFailure::cured_by)},
       {"recoveries",
        "Allocations that failed at first; what cured them is in the time of the call.",
        [](const Row& row) { return row.allocator.recoveries; }},
       {"allocations",
        "Calls that allocated.",
        [](const Row& row) { return row.allocator.allocate.n; }},
       {"allocate_p50_ns",
        "Time of such a call, median.",
        [](const Row& row) { return row.allocator.allocate.p50_ns; }},
       {"allocate_p99_ns",
        "One in a hundred took longer.",
        [](const Row& row) { return row.allocator.allocate.p99_ns; }},
       {"release_p50_ns",
        "Time of a call that releases, median.",
        [](const Row& row) { return row.allocator.release.p50_ns; }},
       {"memory_kept_bytes",
        "How much less of a GPU was free when all was given back than before.",
        of_allocator(&AllocatorRecord::memory_kept_bytes)},
       {"creep",
        "Which kind, where the trace was played again and again.",
        of_creep(&CreepRecord::kind)},
       {"creep_bytes",
        "How much memory rises in each epoch.",
        of_creep(&CreepRecord::bytes_per_epoch)}});
}

Table replay_answers_table() {
  using Row = AnswerRow;
  return make_table<Row>("replay_answers.csv",
                         "replay and what it says",
                         TableUse::details,
                         [](const TableInputs& inputs, const auto& put) {
                           for (const ReplayInfo& replay : inputs.session.replays) {
                             for (std::string& line : replay_answers(replay.record))
                               put(Row{replay, std::move(line)});
                           }
                         },
                         {{"replay", kReplay, [](const Row& row) { return row.replay.file; }},
                          {"answer", "A sentence.", &Row::answer}});
}

Table replay_moments_table() {
  using Row = MomentRow;
  return make_table<Row>(
      "replay_moments.csv",
      "replay, allocator and moment",
      TableUse::details,
      [](const TableInputs& inputs, const auto& put) {
        for_each_allocator(inputs, [&](const ReplayInfo& replay, const AllocatorRecord& allocator) {
          for (const MemoryMoment& moment : allocator.moments) put(Row{replay, allocator, moment});
        });
      },
      {{"replay", kReplay, [](const Row& row) { return row.replay.file; }},
       {"allocator", kAllocator, [](const Row& row) { return row.allocator.name; }},
       {"event", "Of the trace, from 0.", of_moment(&MemoryMoment::event)},
       {"t_ns", "Its time since the trace's beginning.", of_moment(&MemoryMoment::t_ns)},
       {"live_bytes", "What the program held.", of_moment(&MemoryMoment::live_bytes)},
       {"granted_bytes", "What blocks in use came to.", of_moment(&MemoryMoment::granted_bytes)},
       {"reserved_bytes",
        "What the allocator had taken.",
        of_moment(&MemoryMoment::reserved_bytes)},
       {"largest_free_bytes",
        "The largest free block.",
        of_moment(&MemoryMoment::largest_free_bytes)},
       {"largest_block_index",
        "1 - largest free block / free bytes.",
        of_moment(&MemoryMoment::largest_block_index)},
       {"occupancy",
        "What was taken, as 100 letters: * used, x wasted by rounding, _ free; of some moments.",
        of_moment(&MemoryMoment::occupancy)}});
}

Table replay_epochs_table() {
  using Row = EpochRow;
  return make_table<Row>(
      "replay_epochs.csv",
      "replay, allocator and epoch",
      TableUse::details,
      [](const TableInputs& inputs, const auto& put) {
        for_each_allocator(inputs, [&](const ReplayInfo& replay, const AllocatorRecord& allocator) {
          if (!allocator.creep) return;
          for (std::size_t i = 0; i < allocator.creep->epochs.size(); ++i)
            put(Row{replay, allocator, i, allocator.creep->epochs[i]});
        });
      },
      {{"replay", kReplay, [](const Row& row) { return row.replay.file; }},
       {"allocator", kAllocator, [](const Row& row) { return row.allocator.name; }},
       {"epoch", "From 0.", [](const Row& row) { return row.number; }},
       {"live_bytes",
        "What the program held at its end.",
        [](const Row& row) { return row.epoch.live_bytes; }},
       {"reserved_bytes",
        "What the allocator had taken then.",
        [](const Row& row) { return row.epoch.reserved_bytes; }},
       {"used_bytes", "What of the memory was taken, by whomever.", [](const Row& row) {
          return row.epoch.used_bytes;
        }}});
}

}  // namespace launchgap
