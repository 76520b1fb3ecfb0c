#include "harness/summary/replay_answers.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "harness/core/text.h"
#include "harness/summary/table_makers.h"

namespace launchgap {
namespace {

struct Meaning {
  std::string_view key, text;
};

constexpr Meaning kCures[] = {
    {"stream_wait", "waiting for its stream cured it: what had been freed was still in use"},
    {"device_wait",
     "waiting for the device cured it: what another stream had freed was still in use"},
    {"trim", "giving back what was only kept cured it"},
    {"destroy", "what is live lies in the way: an empty allocator has room for it"},
    {"none", "it is more than the limit leaves beside what is live, however that lies"},
    {"rounding",
     "each block is rounded up to pages, and so it is more than the limit leaves beside what is "
     "live, however that lies"},
    {"taken",
     "the device has too little free: another process has it, or the driver needs more than was "
     "asked for"},
};

constexpr Meaning kCreeps[] = {
    {"leak", "the program holds more and more memory: a leak"},
    {"fragmentation", "the allocator takes more and more memory, while the program holds no more"},
    {"context_growth", "less and less of the device is free, and the allocator does not take it"},
    {"cache_plateau", "the allocator took more memory at first, and none since"},
};

std::string_view meaning(std::span<const Meaning> meanings, const std::string& key) {
  const auto found = std::ranges::find(meanings, key, &Meaning::key);
  return found == meanings.end() ? std::string_view(key) : found->text;
}

void say_least(const ReplayRecord& record, std::vector<std::string>& lines) {
  std::vector<const AllocatorRecord*> known;
  for (const AllocatorRecord& one : record.allocators) {
    if (one.c_min_bytes) known.push_back(&one);
  }
  if (known.size() < 2) return;
  const auto needs = [](const AllocatorRecord* one) { return *one->c_min_bytes; };
  const AllocatorRecord* const least = *std::ranges::min_element(known, {}, needs);
  const AllocatorRecord* const most = *std::ranges::max_element(known, {}, needs);
  std::string line =
      fmt::format("{} needs least: {}", least->name, memory_text(*least->c_min_bytes));
  if (least->c_min_over_peak)
    line += *least->c_min_over_peak < 1.0005 ? ", no more than the peak in use"
                                             : fmt::format(", {:.1f} % more than the peak in use",
                                                           100 * (*least->c_min_over_peak - 1));
  const double more = static_cast<double>(*most->c_min_bytes) /
                          static_cast<double>(std::max<std::uint64_t>(1, *least->c_min_bytes)) -
                      1;
  lines.push_back(*most->c_min_bytes == *least->c_min_bytes
                      ? fmt::format("All need the same: {}.", memory_text(*least->c_min_bytes))
                      : fmt::format("{}. {} needs {} more.", line, most->name, percent_text(more)));
}

/// Whether regions that grow make a trace need less than one region does: a claim that is often
/// made.
void say_growth(const ReplayRecord& record, std::vector<std::string>& lines) {
  const auto needs = [&](std::string_view name) -> std::optional<double> {
    const auto found = std::ranges::find(record.allocators, name, &AllocatorRecord::name);
    if (found == record.allocators.end() || !found->c_min_bytes) return std::nullopt;
    return static_cast<double>(*found->c_min_bytes);
  };
  const auto whole = needs("bfc"), grown = needs("bfc_growth");
  if (!whole || !grown || *whole <= 0) return;
  const double change = *grown / *whole - 1;
  if (std::abs(change) < 0.001) {
    lines.push_back("Memory growth makes no difference here: bfc_growth needs as much as bfc.");
    return;
  }
  const bool helps = change < 0;
  lines.push_back(fmt::format("Memory growth {} here: bfc_growth needs {} {} than bfc.",
                              helps ? "helps" : "does not help",
                              percent_text(std::abs(change)),
                              helps ? "less" : "more"));
}

/// Why it failed. How memory lies is only told of allocators that tell what they hold.
std::string cure_text(const AllocationFailure& failure) {
  if (failure.cured_by == "destroy" && !failure.then.granted_bytes)
    return "only an empty allocator has room for it; it does not tell what is in the way";
  return std::string(meaning(kCures, failure.cured_by));
}

/// Of allocators for which an allocation failed at first and was had by what the ladder tried.
void say_recoveries(const ReplayRecord& record, std::vector<std::string>& lines) {
  for (const AllocatorRecord& one : record.allocators) {
    if (one.recoveries < 2) continue;  // the first is told with what cured it
    lines.push_back(fmt::format(
        "{} of {} allocations of {} failed at first; the time of an allocation has what cured it.",
        one.recoveries,
        one.allocate.n + (one.completed ? 0 : 1),
        one.name));
  }
}

void say_failures(const ReplayRecord& record, std::vector<std::string>& lines) {
  std::vector<std::pair<std::string, std::vector<std::string>>> failures;  // what, and of whom
  for (const AllocatorRecord& one : record.allocators) {
    if (!one.failure) continue;
    const MemoryMoment& then = one.failure->then;
    // A device's own allocators do not tell what they hold.
    const std::string state = then.reserved_bytes && then.free_bytes && then.largest_free_bytes
                                  ? fmt::format("with {} of {} free and {} the largest block",
                                                memory_text(*then.free_bytes),
                                                memory_text(*then.reserved_bytes),
                                                memory_text(*then.largest_free_bytes))
                              : then.granted_bytes.value_or(0) > then.live_bytes
                                  ? fmt::format("with {} live that take {}",
                                                memory_text(then.live_bytes),
                                                memory_text(*then.granted_bytes))
                                  : fmt::format("with {} live", memory_text(then.live_bytes));
    const std::string what = fmt::format("at event {}, which asks for {}, {}; {}.",
                                         one.failure->event,
                                         memory_text(one.failure->bytes),
                                         state,
                                         cure_text(*one.failure));
    const auto same =
        std::ranges::find(failures, what, &std::pair<std::string, std::vector<std::string>>::first);
    if (same == failures.end()) {
      failures.push_back({what, {one.name}});
    } else {
      same->second.push_back(one.name);
    }
  }
  for (const auto& [what, names] : failures)
    lines.push_back(
        fmt::format("{} {} {}", list_text(names), names.size() == 1 ? "fails" : "fail", what));
}

void say_kept(const ReplayRecord& record, std::vector<std::string>& lines) {
  for (const AllocatorRecord& one : record.allocators) {
    if (one.memory_kept_bytes.value_or(0) <= 0) continue;
    lines.push_back(
        fmt::format("After {} the GPU has {} less than before: the driver keeps it, or "
                    "it was not given back, or another process took it.",
                    one.name,
                    memory_text(static_cast<std::uint64_t>(*one.memory_kept_bytes))));
  }
}

/// What so few epochs cannot tell from memory that stands still.
void say_rare_creep(const ReplayRecord& record, std::vector<std::string>& lines) {
  constexpr std::size_t kBurnIn = 5;
  std::optional<std::uint64_t> rarest;
  std::size_t epochs = 0;
  for (const AllocatorRecord& one : record.allocators) {
    if (!one.creep || (one.creep->kind != "none" && one.creep->kind != "cache_plateau")) continue;
    const std::vector<EpochRecord>& all = one.creep->epochs;
    if (all.size() <= kBurnIn || !one.creep->rarest_step_epochs) continue;
    rarest = one.creep->rarest_step_epochs;
    epochs = all.size();
    const std::uint64_t first = all[kBurnIn].live_bytes, last = all.back().live_bytes;
    if (last > first) {
      lines.push_back(
          fmt::format("{}: at the end the program holds {} more than after the first {} epochs; "
                      "so few steps may be a leak or none.",
                      one.name,
                      memory_text(last - first),
                      kBurnIn));
    }
  }
  if (rarest) {
    lines.push_back(
        fmt::format("{} epochs show only what grows at least once in {}: a rarer leak looks like "
                    "none, or like memory that was taken at first. Play more with --epochs.",
                    epochs,
                    counted(*rarest, "epoch")));
  }
}

void say_creep(const ReplayRecord& record, std::vector<std::string>& lines) {
  std::vector<std::string> steady;
  for (const AllocatorRecord& one : record.allocators) {
    if (!one.creep) continue;
    if (one.creep->kind == "none") {
      steady.push_back(one.name);
      continue;
    }
    std::string line = fmt::format("{}: {}", one.name, meaning(kCreeps, one.creep->kind));
    if (one.creep->bytes_per_epoch > 0)
      line += fmt::format(", {} in each epoch",
                          memory_text(static_cast<std::uint64_t>(one.creep->bytes_per_epoch)));
    lines.push_back(line + ".");
  }
  say_rare_creep(record, lines);
  if (!steady.empty())
    lines.push_back(fmt::format("Memory does not creep with {}.", list_text(steady)));
  const bool any = std::ranges::any_of(
      record.allocators, [](const AllocatorRecord& one) { return one.creep.has_value(); });
  if (any && record.trace.live_bytes_at_end > 0 && !record.injected)
    lines.push_back(
        fmt::format("The trace leaves {} live, which each epoch gave back: whether the recorded "
                    "program leaks is not seen here.",
                    memory_text(record.trace.live_bytes_at_end)));
}

}  // namespace

std::string memory_text(std::uint64_t bytes) {
  static constexpr std::string_view kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  return fmt::format("{:.4g} {}", value, kUnits[unit]);
}

std::vector<std::string> replay_answers(const ReplayRecord& record) {
  std::vector<std::string> lines;
  say_least(record, lines);
  say_growth(record, lines);
  say_failures(record, lines);
  say_recoveries(record, lines);
  say_creep(record, lines);
  say_kept(record, lines);
  return lines;
}

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
