#include "harness/summary/replay_answers.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "harness/core/text.h"

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

}  // namespace launchgap
