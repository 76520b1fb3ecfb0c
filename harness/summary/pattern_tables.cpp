#include <algorithm>
#include <cmath>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/core/text.h"
#include "harness/summary/adviser.h"
#include "harness/summary/replayed_steps.h"
#include "harness/summary/table_makers.h"

namespace launchgap {
namespace {

/// A replay that is further from its recording is not the recorded step.
constexpr double kAgrees = 1.10;

class PatternAnswer {
 public:
  PatternAnswer(const SessionData& session, const PatternRow& row, std::vector<Finding>& findings)
      : row_(row), findings_(findings), device_(session.device(row.key.device)) {}

  void say_what_binds() {
    if (const std::string why = why_not_told(*row_.pattern); !why.empty()) {
      return add("pattern-bound",
                 Severity::open,
                 fmt::format("What binds the step {} cannot be told: {}.", name(), why),
                 {});
    }
    if (!row_.savings) {
      return add("pattern-bound",
                 Severity::open,
                 fmt::format("What binds the step {} cannot be told here: its {} streams need as "
                             "many units that work at once, and the device has fewer.",
                             name(),
                             totals_of(*row_.pattern).streams),
                 {});
    }
    const PatternRow::Savings& savings = *row_.savings;
    const auto other_calls_ns = static_cast<double>(row_.pattern->origin.other_calls_ns);
    const std::vector<Evidence> evidence = {
        {"without what launching costs, less", savings.launches_ns, "ns"},
        {"without the program's own time, less", savings.program_ns, "ns"},
        {"without the device's work, less", savings.work_ns, "ns"},
        {"without allocations, less", savings.allocations_ns, "ns"},
        {"its calls that are not done again", other_calls_ns, "ns"},
        counted(row_.runs, "run")};
    const auto say = [&](Severity severity, std::string_view verdict) {
      add("pattern-bound",
          severity,
          fmt::format("{} Of its {}, launching costs {}; without the program's own time between "
                      "its calls it would take {} less, and without the device's work {} less.",
                      fmt::format(fmt::runtime(verdict), name()),
                      quantity(savings.total_ns, "ns"),
                      quantity(std::max(0.0, savings.launches_ns), "ns"),
                      quantity(savings.program_ns, "ns"),
                      quantity(savings.work_ns, "ns")),
          evidence,
          std::clamp(savings.launches_ns / std::max(1.0, savings.total_ns), 0.0, 1.0));
    };
    switch (row_.certain_bound()) {
      case BoundBy::launches:
        return say(Severity::act,
                   "Launches bind the step {} here: fewer and larger operations or graphs help, a "
                   "faster device does not.");
      case BoundBy::program:
        // Calls that are no operations, such as allocations whose size is not recorded.
        return say(Severity::note,
                   2 * other_calls_ns > savings.program_ns
                       ? "Calls of CUDA that are not done again bind the step {} here, and not its "
                         "launches."
                       : "The program itself binds the step {} here, and not its launches.");
      case BoundBy::allocations:
        return say(Severity::act,
                   "Allocations bind the step {} here: take memory from a pool, or keep it.");
      case BoundBy::work:
        return say(Severity::fine,
                   "The device's work binds the step {} here, and not its launches.");
      case BoundBy::several:
        return say(Severity::fine, "Nothing alone binds the step {} here.");
      case BoundBy::unknown:
        break;
    }
    add("pattern-bound",
        Severity::open,
        fmt::format("These runs do not tell what binds the step {}: {}.",
                    name(),
                    row_.runs < kRunsForAClaim
                        ? fmt::format("it takes {} of them", kRunsForAClaim)
                        : std::string("they disagree, or the replay took less than its work and "
                                      "the program's time")),
        evidence);
  }

  void say_how_well_it_agrees() {
    if (!row_.agreement) return;
    const rules::PooledRatio& agreement = *row_.agreement;
    const double recorded = static_cast<double>(*row_.pattern->origin.recorded_ns);
    std::vector<Evidence> evidence = {{"recorded", recorded, "ns"}, {"here", row_.p50_ns, "ns"}};
    evidence.emplace_back(
        "its calls, recorded", static_cast<double>(recorded_calls_ns(*row_.pattern)), "ns");
    if (row_.calls_ns) evidence.emplace_back("its calls, here", *row_.calls_ns, "ns");
    const bool agrees = std::abs(std::log(agreement.value)) <= std::log(kAgrees);
    add("pattern-agreement",
        agrees ? Severity::note : Severity::open,
        fmt::format("The replay of {} takes {:.2f} times as long as the recorded step{}: {}.",
                    name(),
                    agreement.value,
                    interval_of(agreement.interval),
                    agrees ? "what is concluded from it is not more exact than that"
                    : why_not_told(*row_.pattern).empty()
                        ? "this machine, its copies or its launches differ too much from the "
                          "recorded one's to conclude from it what the recorded job does"
                        : "something of the step is not in the pattern"),
        evidence);
  }

  void say_what_graphs_gain() {
    if (!row_.by_eager || !row_.by_eager->value || !why_not_told(*row_.pattern).empty()) return;
    const Ratio& ratio = *row_.by_eager;
    std::vector<Evidence> evidence = {
        {"by launches one by one", *ratio.value, std::string(kTimes)}};
    evidence.emplace_back(fmt::format("{} and {} runs", ratio.runs, ratio.reference_runs));
    const std::string times = fmt::format("{:.2f} times the time of its launches one by one{}",
                                          *ratio.value,
                                          interval_of(ratio.interval));
    switch (ratio.verdict) {
      case RatioVerdict::less:
        return add("pattern-graph",
                   Severity::act,
                   fmt::format("As graphs the step {} takes {}. What the program does between the "
                               "launches of a graph is no part of that.",
                               name(),
                               times),
                   evidence,
                   1 - *ratio.value);
      case RatioVerdict::more:
        return add("pattern-graph",
                   Severity::note,
                   fmt::format("As graphs the step {} takes longer, {}.", name(), times),
                   evidence);
      case RatioVerdict::same:
        return add("pattern-graph",
                   Severity::fine,
                   fmt::format("Graphs gain nothing for the step {}: it takes {}.", name(), times),
                   evidence);
      default:
        return add("pattern-graph",
                   Severity::open,
                   fmt::format("These runs do not tell what graphs gain for the step {}.", name()),
                   evidence);
    }
  }

 private:
  const std::string& name() const { return row_.pattern->origin.name; }

  static std::string interval_of(const std::optional<stats::Interval>& interval) {
    return interval ? fmt::format(" (95 % {:.2f} to {:.2f})", interval->low, interval->high)
                    : std::string();
  }

  void add(std::string_view code,
           Severity severity,
           std::string sentence,
           std::vector<Evidence> evidence,
           std::optional<double> share = {}) {
    Finding finding = new_finding(FindingSource::advice,
                                  code,
                                  severity,
                                  device_ ? device_->name : row_.key.device,
                                  row_.key.device);
    finding.sentence = std::move(sentence);
    finding.evidence = std::move(evidence);
    finding.share = share;
    finding.cases = row_.key.name.text();
    findings_.push_back(std::move(finding));
  }

  const PatternRow& row_;
  std::vector<Finding>& findings_;
  const DeviceFacts* device_;
};

}  // namespace

std::vector<Finding> pattern_findings(const SessionData& session,
                                      const std::vector<PatternRow>& rows) {
  std::vector<Finding> findings;
  for (const PatternRow& row : rows) {
    if (row.key.arm != name_of(Arm::plain)) continue;
    PatternAnswer answer(session, row, findings);
    const std::string& mode = row.key.name.at("mode");
    if (mode == "eager") {
      answer.say_what_binds();
      answer.say_how_well_it_agrees();
    } else if (mode == "graph") {
      answer.say_what_graphs_gain();
    }
  }
  return findings;
}

Table patterns_table() {
  using Row = const PatternRow&;
  return make_table<PatternRow>(
      "patterns.csv",
      "pattern, device, arm and mode",
      TableUse::session,
      [](const TableInputs& from) { return pattern_rows(from.session, from.rows); },
      {{"pattern", "The recorded step.", [](Row row) { return row.pattern->origin.name; }},
       {"source", "Where it is from.", [](Row row) { return row.pattern->origin.source; }},
       {"gpu",
        "That it was recorded on; empty where that is not known.",
        [](Row row) { return row.pattern->origin.gpu; }},
       {"device_id", [](Row row) { return row.key.device; }},
       {"arm", [](Row row) { return row.key.arm; }},
       {"mode",
        "eager: each call as it was made; pool: with memory from the device's pool; graph: what is "
        "between two waits as one graph; graph_update: the same, updated each time.",
        [](Row row) { return row.key.name.at("mode"); }},
       {"kernel_factor",
        "Its kernels last so many times as long as they did.",
        [](Row row) { return row.pattern->origin.kernel_factor; },
        "1"},
       {"operations", "Of the pattern.", [](Row row) { return row.pattern->operations.size(); }},
       {"launches",
        "Calls among them that launch.",
        [](Row row) { return totals_of(*row.pattern).launches; }},
       {"kernels", "That these start.", [](Row row) { return totals_of(*row.pattern).kernels; }},
       {"streams", "That it uses.", [](Row row) { return totals_of(*row.pattern).streams; }},
       {"runs", "Processes.", &PatternRow::runs},
       {"n", "Replays.", &PatternRow::samples},
       {"p50_ns",
        "Median of the replays' times, from the first call to the end of all work.",
        &PatternRow::p50_ns},
       {"calls_ns", "Median of the time in calls that do not wait.", &PatternRow::calls_ns},
       {"waits_ns", "Median of the time in waits.", &PatternRow::waits_ns},
       {"allocations_ns",
        "Median of the time in calls that take memory or give it back.",
        &PatternRow::allocations_ns},
       {"kernel_excess_ns",
        "By how much each kernel lasts longer here than it should.",
        &PatternRow::kernel_excess_ns},
       {"copy_factor",
        "How many times as long its copies and fills take here as they did.",
        &PatternRow::copy_factor,
        "1"},
       {"recorded_ns",
        "What the recorded step took.",
        [](Row row) { return row.pattern->origin.recorded_ns; }},
       {"recorded_calls_ns",
        "What its calls took that do not wait: beside calls_ns it says how much launching differs.",
        [](Row row) { return recorded_calls_ns(*row.pattern); }},
       {"agreement",
        "The replay's time by the recorded one, of the mode eager, by the geometric mean of the "
        "runs' medians: how far it is from 1 is the error of all that is concluded from the "
        "pattern, as far as the machines are alike. Empty where kernels last another time.",
        if_any(&PatternRow::agreement, &rules::PooledRatio::value),
        "1"},
       {"agreement_lo",
        "Lower end of its 95 % interval; empty below three runs.",
        if_any(&PatternRow::agreement,
               if_any(&rules::PooledRatio::interval, &stats::Interval::low)),
        "1"},
       {"agreement_hi",
        "Upper end.",
        if_any(&PatternRow::agreement,
               if_any(&rules::PooledRatio::interval, &stats::Interval::high)),
        "1"},
       {"work_alone_ns",
        "What the device's work takes alone, in the order that streams, events and waits give it, "
        "with kernel_excess_ns and copy_factor; of the mode eager.",
        if_any(&PatternRow::savings, &PatternRow::Savings::work_alone_ns)},
       {"without_work_ns",
        "By how much shorter the step would be if the device's work took no time.",
        if_any(&PatternRow::savings, &PatternRow::Savings::work_ns)},
       {"without_program_ns",
        "The same if the program's own time between its calls were none.",
        if_any(&PatternRow::savings, &PatternRow::Savings::program_ns)},
       {"without_launches_ns",
        "The same if calls, starts of work and returns from waits took no time. Below zero where "
        "the replay took less than its work and the program's time.",
        if_any(&PatternRow::savings, &PatternRow::Savings::launches_ns)},
       {"without_allocations_ns",
        "The same if calls that take memory or give it back took no time.",
        if_any(&PatternRow::savings, &PatternRow::Savings::allocations_ns)},
       {"bound_by",
        "The largest of the four: work, program, launches, allocations; several where that is less "
        "than 5 % of the step; unknown where without_launches_ns is more than 5 % below zero, "
        "where "
        "the device cannot do the work of all streams at once, where something of the step is not "
        "known, and in other modes.",
        [](Row row) { return name_of(row.bound_by); }},
       {"by_eager",
        "The time in this mode by that in eager, by geometric means of run medians.",
        if_any(&PatternRow::by_eager, &rules::Ratio::value),
        "1"},
       {"by_eager_lo",
        "Lower end of its 95 % interval.",
        if_any(&PatternRow::by_eager, if_any(&rules::Ratio::interval, &stats::Interval::low)),
        "1"},
       {"by_eager_hi",
        "Upper end.",
        if_any(&PatternRow::by_eager, if_any(&rules::Ratio::interval, &stats::Interval::high)),
        "1"},
       {"by_eager_verdict",
        "slower, faster: the interval excludes 1, by three runs and 5 % at least; same; "
        "cannot-tell.",
        [](Row row) {
          return row.by_eager ? name_of(rules::time_verdict(row.by_eager->verdict))
                              : std::string_view();
        }},
       {"remarks", "What the recording does not tell, and what is replayed instead.", [](Row row) {
          return fmt::format("{}", fmt::join(row.pattern->origin.remarks, "; "));
        }}});
}

Table predicted_patterns_table() {
  using Row = const PredictedPattern&;
  return make_table<PredictedPattern>(
      "predicted_patterns.csv",
      "pattern and model of GPU",
      TableUse::session,
      [](const TableInputs& from) { return predicted_patterns(from.session); },
      {{"pattern", "The recorded step.", [](Row row) { return row.pattern->origin.name; }},
       {"recorded_on", "Its GPU.", [](Row row) { return row.pattern->origin.gpu; }},
       {"gpu",
        "The model whose launches and kernels are assumed.",
        [](Row row) { return row.costs->gpu; }},
       {"launch_call_ns",
        "What each call that brings work takes there.",
        [](Row row) { return row.costs->call_ns; }},
       {"launch_roundtrip_ns",
        "What an empty launch and the wait for it take there; of recordings, from the call to the "
        "kernel.",
        [](Row row) { return row.costs->roundtrip_ns; }},
       {"costs_from",
        "published: medians of data/launch_anchors.csv; recorded: the fastest recording of "
        "data/recorded_launches.csv, with what its recorder costs.",
        [](Row row) { return std::string(row.costs->published ? "published" : "recorded"); }},
       {"kernel_factor_lo",
        "Kernels last so many times as long as they did: by the ratio of memory bandwidths or of "
        "FP32 rates, whichever is less.",
        &PredictedPattern::kernel_factor_lo,
        "1"},
       {"kernel_factor_hi", "The greater.", &PredictedPattern::kernel_factor_hi, "1"},
       {"predicted_lo_ns",
        "What the step would take with kernel_factor_lo, the host's own time as it was recorded.",
        &PredictedPattern::lo_ns},
       {"predicted_hi_ns", "With kernel_factor_hi.", &PredictedPattern::hi_ns},
       {"recorded_ns",
        "What the recorded step took.",
        [](Row row) { return row.pattern->origin.recorded_ns; }},
       {"model_agreement",
        "The same walk with calls as they were recorded, by the recorded time: how far it is from "
        "1 is its own error.",
        &PredictedPattern::model_agreement,
        "1"},
       {"bound_by_lo",
        "What predicted_lo_ns is bound by: work, program, launches or several.",
        [](Row row) { return name_of(row.bound_lo); }},
       {"bound_by_hi", "The same of predicted_hi_ns.", [](Row row) {
          return name_of(row.bound_hi);
        }}});
}

}  // namespace launchgap
