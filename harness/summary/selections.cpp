#include "harness/summary/selections.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "harness/core/text.h"
#include "harness/summary/session_findings.h"
#include "harness/summary/table_makers.h"

namespace launchgap {
namespace {

/// An algorithm that takes longer by less is as good.
constexpr double kWorthKeeping = 1.05;

/// What one process selected: at least one.
using OfProcess = std::vector<const Choice*>;

const Choice& most_frequent(const OfProcess& process) {
  return **std::ranges::max_element(process, {}, [](const Choice* choice) {
    return std::pair(*choice->times, -choice->candidate);
  });
}

/// Their time in the same process, or any process where this one has not selected it.
class Medians {
 public:
  explicit Medians(const std::map<int, OfProcess>& processes) : processes_(processes) {}

  std::optional<double> of(const std::string& algorithm, int process) const {
    if (const auto own = find(processes_.at(process), algorithm)) return own;
    for (const auto& [other, choices] : processes_) {
      if (const auto median = find(choices, algorithm)) return median;
    }
    return std::nullopt;
  }

 private:
  static std::optional<double> find(const OfProcess& process, const std::string& algorithm) {
    const auto found = std::ranges::find(process, algorithm, &Choice::algorithm);
    return found == process.end() ? std::nullopt : (*found)->median_ns;
  }

  const std::map<int, OfProcess>& processes_;
};

SelectionCounts counts_of(const std::map<int, OfProcess>& processes) {
  SelectionCounts counts;
  std::map<std::string, int> times;
  for (const auto& [replicate, process] : processes) {
    const Choice& most = most_frequent(process);
    for (const Choice* const choice : process) {
      times[choice->algorithm] += *choice->times;
      counts.selections += *choice->times;
      if (choice != &most) counts.others_within += *choice->times;
    }
  }
  counts.processes = static_cast<int>(processes.size());
  using Times = std::pair<const std::string, int>;
  counts.algorithm = std::ranges::max_element(times, {}, &Times::second)->first;
  counts.others = counts.selections - times.at(counts.algorithm);
  for (const auto& [replicate, process] : processes) {
    const auto its = std::ranges::find(process, counts.algorithm, &Choice::algorithm);
    if (its == process.end()) continue;
    counts.engine = (*its)->engine;
    counts.notes = (*its)->notes;
    counts.workspace_bytes = (*its)->workspace_bytes;
    break;
  }
  const Medians medians(processes);
  double sum = 0;
  bool all_known = true;
  for (const auto& [replicate, process] : processes) {
    if (most_frequent(process).algorithm != counts.algorithm) ++counts.other_processes;
    const std::optional<double> usual = medians.of(counts.algorithm, replicate);
    for (const Choice* const choice : process) {
      if (choice->algorithm == counts.algorithm) continue;
      if (usual && *usual > 0 && choice->median_ns) {
        sum += *choice->times * *choice->median_ns / *usual;
      } else {
        all_known = false;
      }
    }
  }
  if (counts.others > 0 && all_known) counts.others_times = sum / counts.others;
  return counts;
}

/// Those of one device and call, of which some differ.
Finding finding_of(const std::vector<const SelectionCounts*>& cases, const std::string& device) {
  int selections = 0, others = 0;
  double sum = 0;
  bool all_known = true;
  for (const SelectionCounts* const counts : cases) {
    selections += counts->selections;
    others += counts->others;
    all_known = all_known && (counts->others == 0 || counts->others_times);
    sum += counts->others * counts->others_times.value_or(0);
  }
  const double times = all_known ? sum / others : 0;  // 0: unknown
  Finding finding = new_finding(FindingSource::session,
                                "selection-differs",
                                times >= kWorthKeeping ? Severity::act : Severity::note,
                                device,
                                cases.front()->device);
  finding.sentence = fmt::format(
      "{} does not always select the same algorithm for a convolution: {} of {} times it was "
      "another than the usual one{}. So convolutions differ between runs.",
      cases.front()->by,
      others,
      selections,
      times > 0 ? fmt::format(", and took {} times as long", times_text(times)) : "");
  for (const SelectionCounts* const counts : cases) {
    if (counts->others == 0) continue;
    finding.evidence.emplace_back(
        fmt::format(
            "{}: {} of {} selections in {} are not {}",
            counts->case_name,
            counts->others,
            counts->selections,
            counts->processes == 1 ? "one process" : fmt::format("{} processes", counts->processes),
            counts->algorithm),
        counts->flip_rate(),
        std::string(kShareUnit));
    finding.cases += (finding.cases.empty() ? "" : " ") + counts->case_name;
  }
  finding.remedy = times > 0 && times < 1
                       ? "Select once, keep the algorithm with its kind of math, and not the usual "
                         "one: it takes longer."
                       : "Select once, and keep the algorithm with its kind of math.";
  if (times > 1) {
    const double excess = others * (times - 1);
    finding.share = excess / (selections + excess);
  }
  return finding;
}

}  // namespace

std::vector<SelectionCounts> selection_counts(const SessionData& session) {
  std::map<std::tuple<std::string, std::string, std::string>, std::map<int, OfProcess>> groups;
  for (const ChoiceInfo& info : session.choices) {
    const Choice& choice = info.record;
    if (choice.outcome == "selected" && choice.times.value_or(0) > 0)
      groups[{info.device, choice.case_name, choice.by}][info.replicate].push_back(&choice);
  }
  std::vector<SelectionCounts> all;
  for (const auto& [key, processes] : groups) {
    SelectionCounts counts = counts_of(processes);
    std::tie(counts.device, counts.case_name, counts.by) = key;
    all.push_back(std::move(counts));
  }
  return all;
}

std::vector<Finding> selection_findings(const SessionData& session) {
  const DeviceLabels labels(session);
  const std::vector<SelectionCounts> all = selection_counts(session);
  std::map<std::pair<std::string, std::string>, std::vector<const SelectionCounts*>> groups;
  for (const SelectionCounts& counts : all) groups[{counts.device, counts.by}].push_back(&counts);
  std::vector<Finding> findings;
  for (const auto& [key, cases] : groups) {
    if (std::ranges::any_of(cases, [](const SelectionCounts* c) { return c->others > 0; }))
      findings.push_back(finding_of(cases, labels.of(key.first)));
  }
  return findings;
}

Table selections_table() {
  using Row = const SelectionCounts&;
  return make_table<SelectionCounts>(
      "selections.csv",
      "device, case and call by which a library selects an algorithm",
      TableUse::session,
      [](const TableInputs& from) { return selection_counts(from.session); },
      {{"device_id", &SelectionCounts::device},
       {"case", &SelectionCounts::case_name},
       {"by", "The library's call that selects.", &SelectionCounts::by},
       {"selections", "How often it was called, in all processes.", &SelectionCounts::selections},
       {"processes", "In how many processes.", &SelectionCounts::processes},
       {"algorithm",
        "The one that most selections have first: the library's number and name.",
        &SelectionCounts::algorithm},
       {"engine",
        "The library's number of its engine, of all that it has; empty where it has none.",
        &SelectionCounts::engine},
       {"notes", "What the library says of the engine, in words.", &SelectionCounts::notes},
       {"workspace_bytes",
        "Memory that it wants beside operands and result.",
        &SelectionCounts::workspace_bytes},
       {"flip_rate",
        "The share of selections that have another one first.",
        [](Row row) { return row.flip_rate(); },
        kShare},
       {"flip_rate_within",
        "The share of selections that have another one first than most of their own process.",
        [](Row row) { return row.flip_rate_within(); },
        kShare},
       {"other_processes",
        "Processes of which most selections have another one first.",
        &SelectionCounts::other_processes},
       {"others_times",
        "How many times as long those others take, on average; empty where there are none.",
        &SelectionCounts::others_times}});
}

}  // namespace launchgap
