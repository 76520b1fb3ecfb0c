#include "harness/summary/selections.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/core/text.h"
#include "harness/core/trace_state.h"
#include "harness/measure/benchmark.h"
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

std::optional<double> median_of(const std::string& algorithm, const OfProcess& process) {
  const auto found = std::ranges::find(process, algorithm, &Choice::algorithm);
  return found == process.end() ? std::nullopt : (*found)->median_ns;
}

/// Its time in this process, or in any where this one has not selected it.
std::optional<double> median_of(const std::string& algorithm,
                                const OfProcess& process,
                                const std::map<int, OfProcess>& all) {
  std::optional<double> median = median_of(algorithm, process);
  for (const auto& [replicate, other] : all) {
    if (!median) median = median_of(algorithm, other);
  }
  return median;
}

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
  double sum = 0;
  bool all_known = true;
  for (const auto& [replicate, process] : processes) {
    if (most_frequent(process).algorithm != counts.algorithm) ++counts.other_processes;
    const std::optional<double> usual = median_of(counts.algorithm, process, processes);
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

Table choices_table() {
  const auto of_choice = [](auto Choice::*field) {
    return [field](const ChoiceInfo& info) { return info.record.*field; };
  };
  return make_table<ChoiceInfo>(
      "choices.csv",
      "way in which a library could compute a case, and run",
      TableUse::session,
      [](const TableInputs& from, const auto& put) {
        for (const ChoiceInfo& info : from.session.choices) put(info);
      },
      {{"device_id", &ChoiceInfo::device},
       {"arm", &ChoiceInfo::arm},
       {"process_config", [](const ChoiceInfo& info) { return info.process_config.text(); }},
       {"replicate", &ChoiceInfo::replicate},
       {"case", of_choice(&Choice::case_name)},
       {"by", "Who offers or selects it.", of_choice(&Choice::by)},
       {"candidate", "Its place among what is offered, from 0.", of_choice(&Choice::candidate)},
       {"algorithm", "The library's number or name of it.", of_choice(&Choice::algorithm)},
       {"engine",
        "The library's number of its engine, of all that it has; empty where it has none.",
        of_choice(&Choice::engine)},
       {"notes",
        "What the library says of the engine, in words: what it does to numbers, and else.",
        of_choice(&Choice::notes)},
       {"tile", "The library's number of its tile.", of_choice(&Choice::tile)},
       {"stages",
        "The library's number of its stages in shared memory.",
        of_choice(&Choice::stages)},
       {"split",
        "Into how many parts the sums are split, each for blocks of its own.",
        of_choice(&Choice::split)},
       {"waves",
        "Waves of blocks that it takes on the device, as the library says.",
        of_choice(&Choice::waves)},
       {"workspace_bytes",
        "Memory that it wants beside operands and result.",
        of_choice(&Choice::workspace_bytes)},
       {"median_ns", "Its time, by samples of its own.", of_choice(&Choice::median_ns)},
       {"times", "How many of the process's selections had it first.", of_choice(&Choice::times)},
       {"outcome",
        "chosen, slower, wrong (its result; it is never chosen) or failed; selected: by the "
        "library.",
        of_choice(&Choice::outcome)},
       {"reason", "Why it is wrong or failed.", of_choice(&Choice::reason)}});
}

namespace {

/// More of one process than a product has, and names that fill a line: what is kept of them.
constexpr std::size_t kMostListed = 4, kLongestName = 200;

/// Launched by a library, with nothing else between them but the gate.
bool is_work_of_library(const CaseName& name) {
  for (const Benchmark& known : all_benchmarks()) {
    if (known.name != name.benchmark) continue;
    const TracedAs as = known.traced_as(name);
    return as == TracedAs::work || as == TracedAs::gated_work;
  }
  return false;
}

std::string text_of_kernels(const std::vector<CountedKernels>& kernels) {
  std::set<std::string> texts;
  for (const CountedKernels& kernel : kernels) {
    if (kernel.name.empty() || kernel.name.starts_with("launchgap")) continue;  // the gate
    texts.insert(
        fmt::format("{} {}", kernel.name.substr(0, kLongestName), fmt::join(kernel.grid, "x")));
  }
  if (texts.size() > kMostListed) texts.erase(std::next(texts.begin(), kMostListed), texts.end());
  return fmt::to_string(fmt::join(texts, " + "));
}

/// By device, process configuration and case.
using TracedCase = std::tuple<std::string, ProcessConfig, std::string>;

std::map<TracedCase, std::set<std::string>> kernels_of_cases(const SessionData& session) {
  std::map<TracedCase, std::set<std::string>> kernels;
  for (const TraceInfo& trace : session.traces) {
    const TraceRecord& record = trace.record;
    if (record.of_run() || record.state != text_of(TraceState::ok) || !record.kernels) continue;
    std::string text = text_of_kernels(*record.kernels);
    if (!text.empty())
      kernels[{trace.device, trace.process_config, *record.case_name}].insert(std::move(text));
  }
  return kernels;
}

}  // namespace

std::map<CaseKey, std::set<std::string>> algorithms_of_cases(const SessionData& session) {
  const auto kernels = kernels_of_cases(session);
  std::map<CaseKey, std::set<std::string>> algorithms;
  for (const auto& [key, data] : session.cases) {
    std::set<std::string> known;
    for (const auto& [replicate, algorithm] : data.algorithms) known.insert(algorithm);
    if (known.empty() && is_work_of_library(key.name)) {
      const auto traced = kernels.find({key.device, key.process_config, key.name.text()});
      if (traced != kernels.end()) known = traced->second;
    }
    if (!known.empty()) algorithms[key] = std::move(known);
  }
  return algorithms;
}

std::optional<double> waves_of(std::string_view method) {
  if (!method.starts_with("cuBLASLt ")) return std::nullopt;
  const std::size_t end = method.find(" waves");
  if (end == std::string_view::npos) return std::nullopt;
  const std::size_t before = method.rfind(' ', end - 1);
  const std::string number(method.substr(before + 1, end - before - 1));
  if (number.empty() || number.find_first_not_of("0123456789.") != std::string::npos)
    return std::nullopt;
  return std::strtod(number.c_str(), nullptr);
}

}  // namespace launchgap
