#include "harness/gap/shared_cases.h"

#include <algorithm>
#include <array>
#include <map>

#include "harness/core/errors.h"
#include "harness/core/metric.h"
#include "harness/core/plan.h"
#include "harness/device/shape_text.h"
#include "harness/summary/ceiling.h"

namespace launchgap::gap {
namespace {

/// What an empty launch takes; not what it takes to load, make or upload something before it, nor
/// the work of kernels that are not empty.
bool is_launch_time(const CaseName& name, std::string_view metric) {
  constexpr std::array<std::string_view, 4> kEmpty = {
      "launch/null", "launch/flag", "launch/cscs", "launch/superbench"};
  constexpr std::array<std::string_view, 7> kTimes = {"api_ns",
                                                      "roundtrip_ns",
                                                      "per_launch_ns",
                                                      "wall_per_launch_ns",
                                                      "event_per_launch_ns",
                                                      "launch_ns",
                                                      "flag_ns"};
  return std::ranges::find(kEmpty, name.benchmark) != kEmpty.end() &&
         std::ranges::find(kTimes, metric) != kTimes.end();
}

Work work_of(const CaseName& name, std::string_view metric) {
  static const std::map<std::string, Work> works = {{"launch", Work::launch},
                                                    {"matmul", Work::product},
                                                    {"convolution", Work::convolution},
                                                    {"ceiling", Work::other},
                                                    {"allocation", Work::allocation}};
  if (name.benchmark == "ceiling/copy") return Work::copy;
  if (is_rung(name)) return Work::other;
  if (name.family() == "launch" && !is_launch_time(name, metric)) return Work::other;
  const auto found = works.find(name.family());
  return found == works.end() ? Work::other : found->second;
}

/// A rate of work, or a time that is not what a rate is computed from.
bool is_judged(const Metric& metric, bool has_rate) {
  if (metric.direction == Direction::higher_is_better)
    return metric.unit == "TFLOP/s" || metric.unit == "GB/s";
  if (metric.unit != "ns" || !metric.function_of.empty()) return false;
  return !(has_rate && metric.key == "device_ns");
}

/// The values by which cases are judged, in order.
std::vector<const CaseValue*> judged_values(const GpuColumn& column) {
  std::vector<const CaseValue*> judged;
  for (auto begin = column.values.begin(); begin != column.values.end();) {
    const auto end = std::find_if(begin, column.values.end(), [&](const CaseValue& value) {
      return value.family != begin->family || *value.name != *begin->name;
    });
    const bool has_rate = std::any_of(begin, end, [](const CaseValue& value) {
      return value.metric->key == "tflops" || value.metric->key == "copy_gbs";
    });
    for (; begin != end; ++begin) {
      if (is_judged(*begin->metric, has_rate)) judged.push_back(&*begin);
    }
  }
  return judged;
}

/// How a case was timed; empty where that is not known.
std::string_view manner_of(const SummaryRow& row) {
  if (row.key.arm == kPublished) return "";
  std::string_view method = row.method;
  if (row.key.name.family() == "matmul" || row.key.name.family() == "convolution")
    return method.find("without a gate") == method.npos ? "behind a gate" : "without a gate";
  for (const std::string_view form : {"native kernel", "portable kernel"}) {
    if (method.starts_with(form)) method.remove_prefix(form.size());
  }
  return method;
}

std::span<const double> run_medians(const CaseValue& value) {
  return value.row ? std::span<const double>(value.row->run_medians) : std::span<const double>();
}

std::optional<double> divided(double times,
                              std::optional<double> older,
                              std::optional<double> newer) {
  if (!older || !newer || !(*older > 0) || !(*newer > 0)) return std::nullopt;
  return times / (*newer / *older);
}

/// Where a name leaves a doubt, nothing is divided by it.
std::optional<double> certain(const std::optional<SheetRange>& range) {
  return range && range->one() ? std::optional(range->low) : std::nullopt;
}

std::optional<double> promised(const std::optional<SheetRange>& older,
                               const std::optional<SheetRange>& newer) {
  if (!older || !newer || !(older->high > 0)) return std::nullopt;
  return newer->low / older->high;
}

std::optional<double> power_of(const GpuColumn& column, const CaseName& name) {
  if (column.power_w.empty()) return std::nullopt;
  const auto found = column.power_w.find(name.text());
  return found == column.power_w.end() ? std::nullopt : std::optional(found->second);
}

/// What is known of a GPU, looked up once for all cases of a pair.
struct DataSheet {
  explicit DataSheet(const DeviceFacts& gpu)
      : gpu(gpu), bandwidth(sheet_bandwidths(gpu)), multiprocessors(multiprocessors_of(gpu)) {}

  const std::optional<SheetRange>& rate(const std::string& type) {
    const auto known = rates.find(type);
    return known != rates.end() ? known->second
                                : rates.emplace(type, sheet_rates(gpu, type)).first->second;
  }

  const DeviceFacts& gpu;
  std::optional<SheetRange> bandwidth;
  std::optional<double> multiprocessors;
  std::map<std::string, std::optional<SheetRange>> rates;  // by type, once they were asked for
};

void add_normalised(SharedCase& shared, const GpuPair& pair, DataSheet& older, DataSheet& newer) {
  if (shared.work == Work::allocation || shared.work == Work::launch) return;
  GapCaseRow& row = shared.row;
  const CaseName& name = *shared.older->name;
  const bool of_memory = shared.work == Work::copy;
  // What crosses the link to the host is not bound by the memory.
  if (of_memory && !name.has("direction:device_to_device")) return;
  if (shared.work != Work::other) {
    const auto &from = of_memory ? older.bandwidth : older.rate(row.type),
               &to = of_memory ? newer.bandwidth : newer.rate(row.type);
    shared.promise = promised(from, to);
    row.per_ceiling = divided(row.times, certain(from), certain(to));
    row.per_power = divided(row.times, power_of(*pair.older, name), power_of(*pair.newer, name));
  }
  row.per_bandwidth = divided(row.times, certain(older.bandwidth), certain(newer.bandwidth));
  row.per_multiprocessor = divided(row.times, older.multiprocessors, newer.multiprocessors);
}

}  // namespace

std::string_view name_of(Work work) {
  constexpr std::array<std::string_view, 6> kNames = {
      "launch", "product", "convolution", "copy", "allocation", "other"};
  return kNames.at(static_cast<std::size_t>(work));
}

std::string shape_class_of(const CaseName& name) {
  constexpr int kSkinny = 8, kLarge = 1024;
  if (name.family() == "convolution") return "convolution";
  if (name.family() != "matmul") return "";
  std::array<long long, 3> sides{};
  try {
    if (const std::string* const shape = name.find("shape")) {
      const MatmulShape read = matmul_shape(*shape);
      if (read.batch > 1) return "batched";
      sides = {read.m, read.n, read.k};
    } else if (name.find("size")) {
      sides.fill(name.number("size"));
    } else {
      return "";
    }
  } catch (const Error&) {  // a shape that others write otherwise
    return "";
  }
  std::ranges::sort(sides);
  if (sides.front() * kSkinny <= sides.back()) return "skinny";
  return sides.front() >= kLarge ? "large" : "small";
}

bool timed_alike(const SummaryRow& a, const SummaryRow& b) {
  const std::string_view one = manner_of(a), other = manner_of(b);
  return one.empty() || other.empty() || one == other;
}

double times_as_fast(const Metric& metric, double newer, double older) {
  return metric.direction == Direction::higher_is_better ? newer / older : older / newer;
}

rules::Speedup speedup_of(const Metric& metric,
                          double times,
                          std::span<const double> newer,
                          std::span<const double> older,
                          std::size_t comparisons) {
  return metric.direction == Direction::higher_is_better
             ? rules::speedup(times, newer, older, comparisons)
             : rules::speedup(times, older, newer, comparisons);
}

bool is_rung(const CaseName& name) {
  const std::string* const rung = name.find("rung");
  return name.benchmark.ends_with("/ladder") && rung && *rung != "library";
}

bool is_complex(const CaseName& name) {
  return name.family() == "matmul" && name.find("call");
}

GpuPair compare_pair(const GpuColumn& older, const GpuColumn& newer) {
  GpuPair pair{&older, &newer, {}, 0};
  if ((older.origin == Origin::simulated) != (newer.origin == Origin::simulated)) return pair;
  DataSheet older_sheet(*older.device), newer_sheet(*newer.device);
  const std::vector<const CaseValue*> from = judged_values(older), to = judged_values(newer);
  for (auto one = from.begin(), other = to.begin(); one != from.end() && other != to.end();) {
    const auto order = **one <=> **other;
    if (order < 0) {
      ++one;
      continue;
    }
    if (order > 0) {
      ++other;
      continue;
    }
    const CaseValue &before = **one++, &after = **other++;
    const CaseName& name = *before.name;
    SharedCase shared{&before, &after, work_of(name, before.metric->key), {}, {}, {}};
    if (before.row && after.row && !timed_alike(*before.row, *after.row)) {
      ++pair.timed_otherwise;
      continue;
    }
    GapCaseRow& out = shared.row;
    out.older = older.title;
    out.newer = newer.title;
    out.case_name = name.text();
    out.metric = before.metric->key;
    out.unit = before.metric->unit;
    out.work = name_of(shared.work);
    if (const std::string* const type = name.find("type")) out.type = *type;
    out.shape_class = shape_class_of(name);
    out.older_value = before.value;
    out.newer_value = after.value;
    out.times = times_as_fast(*before.metric, after.value, before.value);
    add_normalised(shared, pair, older_sheet, newer_sheet);
    pair.cases.push_back(std::move(shared));
  }
  for (SharedCase& shared : pair.cases) {
    shared.speedup = speedup_of(*shared.older->metric,
                                shared.row.times,
                                run_medians(*shared.newer),
                                run_medians(*shared.older),
                                pair.cases.size());
    if (const auto& interval = shared.speedup.interval) {
      shared.row.times_lower = interval->low;
      shared.row.times_upper = interval->high;
    }
    shared.row.verdict = name_of(shared.speedup.verdict());
  }
  return pair;
}

}  // namespace launchgap::gap
