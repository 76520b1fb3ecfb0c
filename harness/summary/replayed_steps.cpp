#include "harness/summary/replayed_steps.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include "harness/core/csv_table.h"
#include "harness/core/text.h"
#include "harness/device/backend.h"
#include "harness/stats/stats.h"
#include "harness/summary/ceiling.h"
#include "harness/summary/generations.h"
#include "harness/summary/published.h"

namespace launchgap {
namespace {

constexpr std::string_view kPatternBenchmark = "launch/pattern";

/// Of a step that takes so long with these lengths of kernels, copies and allocations.
PatternRow::Savings savings_of(const Pattern& pattern,
                               double total_ns,
                               const LaunchCosts& lengths) {
  const auto with_lengths = [&](LaunchCosts costs) {
    costs.kernel_factor = lengths.kernel_factor;
    costs.kernel_excess_ns = lengths.kernel_excess_ns;
    costs.copy_factor = lengths.copy_factor;
    return costs;
  };
  LaunchCosts allocating = with_lengths(free_launches());
  allocating.allocation_ns = lengths.allocation_ns;
  const double alone = modelled_ns(pattern, with_lengths(work_alone()));
  const double free = modelled_ns(pattern, with_lengths(free_launches()));
  const double with_allocations = modelled_ns(pattern, allocating);
  const auto program = static_cast<double>(totals_of(pattern).gaps_ns);
  return {total_ns,
          alone,
          free - std::min(free, program),
          free - alone,
          total_ns - with_allocations,
          with_allocations - free};
}

const Pattern* pattern_of(const SessionData& session, const CaseName& name) {
  const std::string* const wanted = name.find("pattern");
  if (!wanted) return nullptr;
  const auto found = std::ranges::find(
      session.patterns, *wanted, [](const Pattern& pattern) -> const std::string& {
        return pattern.origin.name;
      });
  return found == session.patterns.end() ? nullptr : &*found;
}

/// The rows of a session's patterns, by case.
class Rows {
 public:
  explicit Rows(const std::vector<SummaryRow>& rows) {
    for (const SummaryRow& row : rows) {
      if (row.key.name.benchmark == kPatternBenchmark && row.p50)
        by_metric_[row.metric][row.key] = &row;
    }
  }
  const std::map<CaseKey, const SummaryRow*>& of(const std::string& metric) {
    return by_metric_[metric];
  }
  const SummaryRow* find(const std::string& metric, const CaseKey& key) {
    const auto& rows = of(metric);
    const auto found = rows.find(key);
    return found == rows.end() ? nullptr : found->second;
  }
  std::optional<double> median(const std::string& metric, const CaseKey& key) {
    const SummaryRow* const row = find(metric, key);
    return row ? row->p50 : std::nullopt;
  }

 private:
  std::map<std::string, std::map<CaseKey, const SummaryRow*>> by_metric_;
};

CaseKey with_mode(CaseKey key, std::string_view mode) {
  for (auto& [axis, value] : key.name.params) {
    if (axis == "mode") value = mode;
  }
  return key;
}

PatternRow row_of(const Pattern& pattern,
                  const DeviceFacts* device,
                  const SummaryRow& time,
                  Rows& rows) {
  PatternRow row;
  row.key = time.key;
  row.pattern = &pattern;
  row.runs = time.runs;
  row.samples = time.n;
  row.p50_ns = *time.p50;
  row.calls_ns = rows.median("pattern_calls_ns", time.key);
  row.waits_ns = rows.median("pattern_waits_ns", time.key);
  row.allocations_ns = rows.median("pattern_allocations_ns", time.key);
  row.kernel_excess_ns = rows.median("kernel_excess_ns", time.key);
  row.copy_factor = rows.median("copy_factor", time.key);
  const bool eager = time.key.name.at("mode") == "eager";
  if (eager) {
    if (device && runs_streams_at_once(pattern, *device) && why_not_told(pattern).empty()) {
      LaunchCosts lengths;
      lengths.kernel_excess_ns = std::max(0.0, row.kernel_excess_ns.value_or(0));
      lengths.copy_factor = row.copy_factor.value_or(1);
      // Of each call: as many give blocks back as take them, sooner or later.
      const auto calls = static_cast<double>(
          std::ranges::count_if(pattern.operations, [](const PatternOperation& one) {
            return is_allocation(one.action) || one.action == PatternAction::release;
          }));
      lengths.allocation_ns = calls > 0 ? row.allocations_ns.value_or(0) / calls : 0;
      row.savings = savings_of(pattern, row.p50_ns, lengths);
      row.bound_by = bound_of(*row.savings);
      for (const double median : time.run_medians) {
        // The walks are the same: only what launching takes is another.
        PatternRow::Savings own = *row.savings;
        own.launches_ns += median - own.total_ns;
        own.total_ns = median;
        row.bound_in_runs.push_back(bound_of(own));
      }
    }
    const PatternOrigin& origin = pattern.origin;
    if (origin.recorded_ns && *origin.recorded_ns > 0 && origin.kernel_factor == 1) {
      const std::array recorded = {static_cast<double>(*origin.recorded_ns)};
      row.agreement = rules::pooled_ratio(time.run_medians, recorded);
    }
  } else if (const SummaryRow* const reference =
                 rows.find("pattern_ns", with_mode(time.key, "eager"))) {
    row.by_eager = rules::ratio_of(time.run_medians, reference->run_medians);
  }
  return row;
}

// --- Another generation ---

struct Board : Generation {
  double tflops = 0;
};

/// Of data/generations.csv, with the rate of plain FP32 by data/unit_rates.csv.
const std::vector<Board>& boards() {
  static const std::vector<Board> all = [] {
    std::map<std::string, double> per_clock;
    for (const UnitRate& rate : unit_rates()) {
      if (rate.type == "fp32") per_clock[rate.capability] = rate.flop_per_sm_clock;
    }
    std::vector<Board> known;
    for (const Generation& gpu : generations()) {
      const auto rate = per_clock.find(gpu.capability);
      constexpr double kTeraPerMega = 1e-6;
      if (rate != per_clock.end())
        known.push_back({gpu, gpu.multiprocessors * gpu.boost_mhz * rate->second * kTeraPerMega});
    }
    return known;
  }();
  return all;
}

const Board* board_named(const std::string& gpu) {
  const BoardName asked = parse_board_name(gpu);
  const Board* same_model = nullptr;
  for (const Board& board : boards()) {
    if (is_board(asked, board.board)) return &board;
    if (!same_model && !asked.model.empty() && asked.model == board.board.model)
      same_model = &board;
  }
  return same_model;
}

struct RecordedLaunches {
  double call_ns, call_to_kernel_ns;
};

/// Of the recordings of a model the one whose launches came to their kernels fastest: its recorder
/// cost the least.
std::optional<RecordedLaunches> recorded_launches(const Board& board) {
  const CsvTable table =
      CsvTable::parse(embedded_table("recorded_launches.csv"), "data/recorded_launches.csv");
  std::optional<RecordedLaunches> least;
  for (std::size_t i = 0; i < table.size(); ++i) {
    const bool known =
        !table.at(i, "call_p50_ns").empty() && !table.at(i, "call_to_kernel_p50_ns").empty();
    if (!known || parse_board_name(table.at(i, "gpu")).model != board.board.model) continue;
    const RecordedLaunches own{table.number(i, "call_p50_ns"),
                               table.number(i, "call_to_kernel_p50_ns")};
    if (!least || own.call_to_kernel_ns < least->call_to_kernel_ns) least = own;
  }
  return least;
}

/// The medians of what was published of launches on a model, or what was recorded.
std::optional<GenerationCosts> costs_of(const Board& board) {
  GenerationCosts costs;
  costs.gpu = board.gpu;
  costs.tflops = board.tflops;
  costs.bandwidth_gbs = board.bandwidth_gbs;
  std::vector<double> calls, roundtrips;
  for (const LaunchAnchor& anchor : launch_anchors()) {
    if (parse_board_name(anchor.gpu).model != board.board.model) continue;
    if (anchor.quantity == "launch_throughput") calls.push_back(anchor.ns);
    if (anchor.quantity == "launch_sync_roundtrip") roundtrips.push_back(anchor.ns);
  }
  costs.published = !calls.empty() && !roundtrips.empty();
  if (!costs.published) {
    const std::optional<RecordedLaunches> recorded = recorded_launches(board);
    if (!recorded) return std::nullopt;
    costs.call_ns = recorded->call_ns;
    // A kernel may begin before its call returns.
    costs.roundtrip_ns = std::max(recorded->call_ns, recorded->call_to_kernel_ns);
    return costs;
  }
  costs.call_ns = *stats::median(calls);
  costs.roundtrip_ns = *stats::median(roundtrips);
  return costs;
}

LaunchCosts launch_costs(const GenerationCosts& costs, double kernel_factor) {
  LaunchCosts result;
  result.call_ns = costs.call_ns;
  result.wake_ns = std::max(0.0, costs.roundtrip_ns - costs.call_ns);
  result.kernel_factor = kernel_factor;
  return result;
}

}  // namespace

std::string_view name_of(BoundBy bound) {
  constexpr std::array<std::string_view, 6> kNames = {
      "work", "program", "launches", "allocations", "several", "unknown"};
  return kNames.at(static_cast<std::size_t>(bound));
}

BoundBy bound_of(const PatternRow::Savings& savings) {
  if (savings.launches_ns < -kMostShort * savings.total_ns) return BoundBy::unknown;
  const double most =
      std::max({savings.work_ns, savings.program_ns, savings.launches_ns, savings.allocations_ns});
  if (most < kLeastSaving * savings.total_ns) return BoundBy::several;
  return most == savings.work_ns          ? BoundBy::work
         : most == savings.program_ns     ? BoundBy::program
         : most == savings.allocations_ns ? BoundBy::allocations
                                          : BoundBy::launches;
}

std::optional<double> model_agreement(const Pattern& pattern) {
  const PatternOrigin& origin = pattern.origin;
  if (origin.recorded_ns.value_or(0) <= 0 || origin.kernel_factor != 1) return std::nullopt;
  return modelled_ns(pattern, {}) / static_cast<double>(*origin.recorded_ns);
}

std::string why_not_told(const Pattern& pattern) {
  constexpr double kMostOff = 1.10;
  if (!pattern.origin.incomplete.empty()) return pattern.origin.incomplete;
  const auto agreement = model_agreement(pattern);
  if (!agreement || std::abs(std::log(*agreement)) <= std::log(kMostOff)) return {};
  const auto recorded = static_cast<double>(*pattern.origin.recorded_ns);
  return fmt::format("it took {} when it was recorded, and what is known of it takes {}",
                     quantity(recorded, "ns"),
                     quantity(recorded * *agreement, "ns"));
}

bool runs_streams_at_once(const Pattern& pattern, const DeviceFacts& device) {
  // On a CPU one core launches.
  const int cores = device.multiprocessors.value_or(0) - (is_gpu(device) ? 0 : 1);
  const std::uint32_t streams = totals_of(pattern).streams;
  return streams <= 1 || static_cast<int>(streams) <= cores;
}

std::int64_t recorded_calls_ns(const Pattern& pattern) {
  std::int64_t sum_ns = 0;
  for (const PatternOperation& one : pattern.operations) {
    const bool waits = one.action == PatternAction::wait || one.action == PatternAction::wait_all;
    const bool memory = is_allocation(one.action) || one.action == PatternAction::release;
    if (!waits && !memory && !one.blocks) sum_ns += one.call_ns;
  }
  return sum_ns;
}

BoundBy PatternRow::certain_bound() const {
  if (bound_in_runs.size() < rules::kRunsForAClaim) return BoundBy::unknown;
  const bool agree = std::ranges::all_of(
      bound_in_runs, [&](BoundBy bound) { return bound == bound_in_runs.front(); });
  return agree ? bound_in_runs.front() : BoundBy::unknown;
}

std::vector<PatternRow> pattern_rows(const SessionData& session,
                                     const std::vector<SummaryRow>& rows) {
  Rows own(rows);
  std::vector<PatternRow> result;
  for (const auto& [key, row] : own.of("pattern_ns")) {
    const Pattern* const pattern = pattern_of(session, key.name);
    if (pattern && key.name.find("mode"))
      result.push_back(row_of(*pattern, session.device(key.device), *row, own));
  }
  std::ranges::stable_sort(result, {}, &PatternRow::pattern);
  return result;
}

const std::vector<GenerationCosts>& generation_costs() {
  static const std::vector<GenerationCosts> all = [] {
    std::vector<GenerationCosts> known;
    std::set<std::string> models;
    for (const Board& board : boards()) {
      // Of a model the first board: others differ less than the two ends of a prediction.
      if (!models.insert(board.board.model).second) continue;
      if (auto costs = costs_of(board)) known.push_back(*std::move(costs));
    }
    return known;
  }();
  return all;
}

std::vector<PredictedPattern> predicted_patterns(const SessionData& session) {
  std::vector<PredictedPattern> predicted;
  for (const Pattern& pattern : session.patterns) {
    const Board* const from = board_named(pattern.origin.gpu);
    if (pattern.origin.gpu.empty() || !from || !why_not_told(pattern).empty()) continue;
    const std::optional<double> agreement = model_agreement(pattern);
    for (const GenerationCosts& costs : generation_costs()) {
      const double by_rate = from->tflops / costs.tflops;
      const double by_bandwidth = from->bandwidth_gbs / costs.bandwidth_gbs;
      const double least = std::min(by_rate, by_bandwidth);
      const double most = std::max(by_rate, by_bandwidth);
      PredictedPattern& own = predicted.emplace_back();
      own.pattern = &pattern;
      own.costs = &costs;
      own.model_agreement = agreement;
      own.kernel_factor_lo = least;
      own.kernel_factor_hi = most;
      const LaunchCosts low = launch_costs(costs, least), high = launch_costs(costs, most);
      own.lo_ns = modelled_ns(pattern, low);
      own.hi_ns = modelled_ns(pattern, high);
      own.bound_lo = bound_of(savings_of(pattern, own.lo_ns, low));
      own.bound_hi = bound_of(savings_of(pattern, own.hi_ns, high));
    }
  }
  return predicted;
}

}  // namespace launchgap
