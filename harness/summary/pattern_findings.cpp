#include <algorithm>
#include <cmath>
#include <string>

#include <fmt/format.h>

#include "harness/core/text.h"
#include "harness/summary/adviser.h"
#include "harness/summary/replayed_steps.h"

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

}  // namespace launchgap
