#include "harness/summary/session_findings.h"

#include <algorithm>
#include <set>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/core/plan.h"
#include "harness/core/text.h"
#include "harness/core/trace_state.h"
#include "harness/device/backend.h"
#include "harness/device/code_levels.h"
#include "harness/summary/case_rates.h"

namespace launchgap {
namespace {

/// Where something befell runs: in which replicates, by device, arm, process configuration and
/// case.
class Places {
 public:
  void add(std::string place, int replicate) { places_[std::move(place)].insert(replicate); }

  std::size_t runs() const {
    std::size_t count = 0;
    for (const auto& [place, replicates] : places_) count += replicates.size();
    return count;
  }
  std::vector<Evidence> evidence() const {
    std::vector<Evidence> lines;
    for (const auto& [place, replicates] : places_)
      lines.emplace_back(fmt::format("{}: r{}", place, fmt::join(replicates, " r")));
    return lines;
  }

 private:
  std::map<std::string, std::set<int>> places_;
};

std::string joined(std::initializer_list<std::string> words) {
  std::vector<std::string> some;
  for (const std::string& word : words) {
    if (!word.empty()) some.push_back(word);
  }
  return fmt::format("{}", fmt::join(some, ", "));
}

Finding found(std::string_view code, Severity severity, std::string subject, std::string sentence) {
  Finding finding = new_finding(FindingSource::session, code, severity, std::move(subject));
  finding.sentence = std::move(sentence);
  return finding;
}

/// Something that makes figures doubtful, where it befell.
Finding distorting(std::string_view code,
                   std::string subject,
                   std::string sentence,
                   const Places& places,
                   std::string remedy = "") {
  Finding finding = found(code, Severity::distorts, std::move(subject), std::move(sentence));
  finding.evidence = places.evidence();
  finding.remedy = std::move(remedy);
  return finding;
}

/// "a reason" as "A reason."; names are written as they are: "cuDNN was not found."
std::string as_sentence(std::string reason) {
  if (reason.empty()) reason = "no reason was recorded";
  const std::string first = reason.substr(0, reason.find(' '));
  if (std::ranges::all_of(first, [](char c) { return c >= 'a' && c <= 'z'; }))
    reason[0] = static_cast<char>(reason[0] - 'a' + 'A');
  if (!reason.ends_with('.')) reason += '.';
  return reason;
}

void add_state(const SessionData& session, std::vector<Finding>& findings) {
  const auto say = [&](const char* code, const char* sentence) {
    findings.push_back(found(code, Severity::distorts, "the session", sentence));
  };
  if (session.state == "stopped")
    say("session-stopped", "The session was stopped early; what had been measured is shown.");
  if (session.state == "running")
    say("session-incomplete",
        "The session had not ended when this was computed: it still ran, or it "
        "was killed. What had been measured is shown.");
}

void add_unusable(const SessionData& session,
                  const DeviceLabels& labels,
                  std::vector<Finding>& findings) {
  for (const DeviceFacts& device : session.devices) {
    if (device.usable) continue;
    Finding finding = found(
        "device-unusable", Severity::prevents, labels.of(device.uuid), as_sentence(device.reason));
    finding.remedy = "`launchgap doctor` says why a GPU cannot be used.";
    findings.push_back(std::move(finding));
  }
}

// --- Traces ---

bool is_bad(const std::string& state) {
  return !state.empty() && state != "ok" && state != "off" && state != "recorded";
}

/// Without who or what stands in brackets.
const TraceStateInfo* info_of(const std::string& state) {
  const std::string name = state.substr(0, state.find('('));
  const auto known = std::ranges::find(trace_states(), name, &TraceStateInfo::name);
  return known == trace_states().end() ? nullptr : &*known;
}

/// Device, process configuration and replicate of the traced runs of which a finding speaks.
using TracedRun = std::tuple<std::string, ProcessConfig, int>;

/// Of which traces something was said: so that it is not said again of their runs and cases.
struct SaidOfTraces {
  std::set<TracedRun> runs;
  std::set<std::string> states;
};

SaidOfTraces add_traces(const SessionData& session,
                        const DeviceLabels& labels,
                        std::vector<Finding>& findings) {
  SaidOfTraces said;
  std::map<std::string, Places> by_state;
  std::map<std::string, std::set<std::string>> reasons;
  Places doubtful;
  for (const TraceInfo& trace : session.traces) {
    const TraceRecord& record = trace.record;
    const std::string place = joined(
        {labels.of(trace.device), trace.process_config.text(), record.case_name.value_or("")});
    if (record.doubtful.value_or(false))
      doubtful.add(joined({place, record.faults.value_or("")}), trace.replicate);
    if (!is_bad(record.state)) continue;
    said.runs.insert({trace.device, trace.process_config, trace.replicate});
    said.states.insert(record.state);
    by_state[record.state].add(place, trace.replicate);
    std::string reason = record.reason;
    if (reason.starts_with(record.state + ": ")) reason.erase(0, record.state.size() + 2);
    if (!reason.empty()) reasons[record.state].insert(reason);
  }
  // Found out when the session was planned: then no run says it.
  const std::string& planned = session.tracing.state;
  const bool any_gpu = std::ranges::any_of(
      session.devices, [](const DeviceFacts& device) { return is_gpu(device); });
  if (any_gpu && is_bad(planned) && !by_state.contains(planned)) {
    by_state[planned];
    if (!session.tracing.reason.empty()) reasons[planned].insert(session.tracing.reason);
  }
  for (const auto& [state, places] : by_state) {
    const TraceStateInfo* const info = info_of(state);
    const std::string kind = state.substr(0, state.find(':'));
    Finding finding = found("trace-" + kind,
                            Severity::distorts,
                            places.runs() > 0 ? counted(places.runs(), "traced run")
                                              : "the session, in which no run was traced",
                            info ? std::string(info->meaning) : as_sentence(state));
    finding.evidence.emplace_back(state);
    for (const std::string& reason : reasons[state]) finding.evidence.emplace_back(reason);
    for (Evidence& line : places.evidence()) finding.evidence.push_back(std::move(line));
    if (info) finding.remedy = std::string(info->remedy);
    findings.push_back(std::move(finding));
  }
  if (doubtful.runs() > 0)
    findings.push_back(
        distorting("trace-doubtful",
                   counted(doubtful.evidence().size(), "case"),
                   "Between 1 in 1,000 and 1 in 100 of the trace's records are impossible; "
                   "the samples concerned have no traced metrics.",
                   doubtful,
                   "Compare their traced metrics with those of another run."));
  return said;
}

// --- Runs ---

void add_runs(const SessionData& session,
              const DeviceLabels& labels,
              const SaidOfTraces& traces,
              std::vector<Finding>& findings) {
  std::map<std::pair<std::string, std::string>, Places> without_result;
  std::map<std::string, Places> under_tool;
  Places restless, cooled, company;
  int most_others = 0;
  for (const RunInfo& run : session.runs) {
    const std::string place = joined({labels.of(run.device), run.arm, run.process_config.text()});
    // Why a traced case failed is said of the trace already.
    const bool said = run.arm == name_of(Arm::traced) && run.reason == "a case failed" &&
                      traces.runs.contains({run.device, run.process_config, run.replicate});
    // A session that was stopped says so itself.
    const bool stopped = session.state == "stopped" && run.status == "stopped";
    if (run.status != "ok" && !run.status.empty() && !said && !stopped)
      without_result[{run.status, run.reason}].add(place, run.replicate);
    if (!run.measured_under_tool.empty())
      under_tool[run.measured_under_tool].add(place, run.replicate);
    if (run.steady == false) restless.add(place, run.replicate);
    for (const std::string& name : run.restless_cases)
      cooled.add(joined({place, name}), run.replicate);
    if (run.other_processes.value_or(0) > 0) {
      company.add(place, run.replicate);
      most_others = std::max(most_others, *run.other_processes);
    }
  }
  for (const auto& [key, places] : without_result) {
    const auto& [status, reason] = key;
    findings.push_back(
        distorting("run-" + status, counted(places.runs(), "run"), as_sentence(reason), places));
  }
  for (const auto& [tool, places] : under_tool)
    findings.push_back(distorting("under-tool",
                                  counted(places.runs(), "run"),
                                  fmt::format("These runs were measured under {}, which changes "
                                              "what it watches: they are no baseline.",
                                              tool),
                                  places,
                                  "Run again without the tool."));
  static constexpr const char* kWhatMoves =
      "Look for what else runs on the machine and for clocks that do not settle, then run again.";
  if (restless.runs() > 0)
    findings.push_back(
        distorting("not-steady",
                   counted(restless.runs(), "run"),
                   "After 2 s of launches, call times or clocks still moved by more than a "
                   "few percent, and measuring began all the same.",
                   restless,
                   kWhatMoves));
  if (cooled.runs() > 0)
    findings.push_back(distorting(
        "cooled-down",
        counted(cooled.evidence().size(), "case"),
        "Before these cases launches were slower than at the end of the warm-up, and "
        "after 0.5 s of launches they still were, and moved: times of calls may be too long.",
        cooled,
        kWhatMoves));
  if (company.runs() > 0) {
    Finding finding =
        distorting("other-processes",
                   counted(company.runs(), "run"),
                   "Other processes were on the GPU: launches wait for their work, so times "
                   "are longer and vary more.",
                   company,
                   "Stop the others, or ask the scheduler for the GPU alone, and run again.");
    finding.evidence.emplace(finding.evidence.begin(),
                             "most others at once",
                             static_cast<double>(most_others),
                             std::string(kNoUnit));
    findings.push_back(std::move(finding));
  }
}

// --- Libraries ---

/// What the user's variable of a library's code was in a run: "OPENBLAS_CORETYPE=Haswell".
std::string told_by_user(const RunInfo& run, const std::string& library) {
  const auto variables = run.fingerprint.find("environment");
  if (variables == run.fingerprint.end() || !variables->is_object()) return "";
  return code_told_by(library, [&](const char* name) -> const char* {
    const auto value = variables->find(name);
    return value == variables->end() || !value->is_string()
               ? nullptr
               : value->get_ptr<const std::string*>()->c_str();
  });
}

/// Libraries that leave the CPU's vector units idle, in runs that did not ask for that.
void add_old_code(const SessionData& session,
                  const DeviceLabels& labels,
                  std::vector<Finding>& findings) {
  struct Key {
    std::string device, name, version, code, newer, told;  // of the library, but the device
    auto operator<=>(const Key&) const = default;
  };
  std::map<Key, Places> found;
  for (const RunInfo& run : session.runs) {
    if (run.process_config.code().value_or(std::string(kOwnCode)) != kOwnCode) continue;
    for (const LoadedLibrary& library : run.libraries) {
      if (library.newer_code.empty()) continue;
      found[{run.device,
             library.name,
             library.version,
             library.code,
             library.newer_code,
             told_by_user(run, library.name)}]
          .add(joined({run.arm, run.process_config.text()}), run.replicate);
    }
  }
  for (const auto& [key, places] : found) {
    const std::string code = code_and_year(key.name, key.code),
                      newer = code_and_year(key.name, key.newer);
    findings.push_back(distorting(
        "old-library-code",
        labels.of(key.device),
        fmt::format(
            "{} its code for {}, although this CPU can execute that for {}: its work may "
            "take several times as long as it needs to.",
            key.told.empty()
                ? fmt::format("{} {} does not know this CPU and runs", key.name, key.version)
                : fmt::format("{} makes {} {} run", key.told, key.name, key.version),
            code,
            newer),
        places,
        key.told.empty()
            ? fmt::format("Set {}={} for the programs that use it, or install a newer {}.",
                          code_variable(key.name),
                          key.newer,
                          key.name)
            : fmt::format("Unset {}, unless code for older CPUs is what you mean to measure.",
                          key.told.substr(0, key.told.find('=')))));
  }
}

// --- Cases ---

void add_cases(const std::vector<SummaryRow>& rows,
               const DeviceLabels& labels,
               const SaidOfTraces& traces,
               std::vector<Finding>& findings) {
  const auto said = [&](const SummaryRow& row) {
    return row.key.arm == name_of(Arm::traced) &&
           std::ranges::any_of(traces.states, [&](const std::string& state) {
             return row.reason.find(state) != std::string::npos;
           });
  };
  struct Group {
    std::set<std::string> places, devices;
    std::set<std::pair<CaseName, ProcessConfig>> cases;
  };
  std::map<std::pair<Status, std::string>, Group> groups;
  for (const SummaryRow& row : rows) {
    if (row.status == Status::ok || said(row)) continue;
    Group& group = groups[{row.status, row.reason}];
    const std::string& label = labels.of(row.key.device);
    const std::string process_config = row.key.process_config.text();
    const std::string name = row.key.name.text();
    const bool usual = process_config.empty() || name.starts_with(process_config + "/");
    group.places.insert(
        fmt::format("{}{}: {}", name, usual ? "" : fmt::format(" [{}]", process_config), label));
    group.devices.insert(label);
    group.cases.insert({row.key.name, row.key.process_config});
  }
  for (const auto& [key, group] : groups) {
    const auto& [status, reason] = key;
    const bool fails = status == Status::failed || status == Status::invalid;
    Finding finding =
        found(fmt::format("case-{}", name_of(status)),
              fails ? Severity::distorts : Severity::note,
              fmt::format("{} on {}",
                          counted(group.cases.size(), "case"),
                          group.devices.size() == 1 ? *group.devices.begin()
                                                    : counted(group.devices.size(), "device")),
              as_sentence(reason));
    for (const std::string& place : group.places) finding.evidence.emplace_back(place);
    findings.push_back(std::move(finding));
  }
}

// --- Rates ---

/// Rates that cannot be, of each device.
void add_rates(const SessionData& session,
               const DeviceLabels& labels,
               std::vector<Finding>& findings) {
  std::map<std::string, std::vector<const CaseRate*>> by_device;
  const std::vector<CaseRate> rates = case_rates(session);
  for (const CaseRate& rate : rates) {
    if (rate.judged.verdict == RateVerdict::impossible) by_device[rate.key.device].push_back(&rate);
  }
  for (const auto& [device, impossible] : by_device) {
    Finding finding =
        found("impossible-rate",
              Severity::distorts,
              fmt::format("{} on {}", counted(impossible.size(), "case"), labels.of(device)),
              "Their rates are above what the GPU can do, so something else was measured than is "
              "said: they "
              "count in no headline and no comparison.");
    finding.device = device;
    for (const CaseRate* const rate : impossible) {
      finding.evidence.emplace_back(
          fmt::format("{}{}: {} {}",
                      rate->key.name.text(),
                      rate->key.arm == name_of(Arm::plain) ? "" : ", " + rate->key.arm,
                      above_ceiling_text(*rate),
                      rate->judged.causes));
    }
    finding.remedy =
        "Compare the type that the library computed with (`method` in the records) with the "
        "case's, "
        "and the clock that was read with the one under load.";
    findings.push_back(std::move(finding));
  }
}

/// ", CUDA 7.5, driver 352.99" of each device whose values others have published: what of it is
/// known.
std::map<std::string, std::string> published_software(const SessionData& session) {
  std::map<std::string, std::string> software;
  for (const RunInfo& run : session.runs) {
    if (run.arm != kPublished || !run.fingerprint.is_object()) continue;
    std::string text;
    for (const auto& [key, word] :
         {std::pair{"cuda", "CUDA"}, std::pair{"driver_version", "driver"}}) {
      if (const auto version = maybe<std::string>(run.fingerprint, key).value_or("");
          !version.empty())
        text += fmt::format(", {} {}", word, version);
    }
    software[run.device] = std::move(text);
  }
  return software;
}

}  // namespace

DeviceLabels::DeviceLabels(const SessionData& session) {
  std::map<std::string_view, int> named;
  for (const DeviceFacts& device : session.devices) ++named[device.name];
  const auto software = published_software(session);
  for (const DeviceFacts& device : session.devices) {
    const auto published = software.find(device.uuid);
    if (named[device.name] == 1) {
      labels_[device.uuid] = device.name;
    } else if (published != software.end()) {
      labels_[device.uuid] = device.name + published->second;
    } else if (!session.nodes.empty()) {  // where each process sees its own GPU as the first
      labels_[device.uuid] = fmt::format("{} ({}, {})",
                                         device.name,
                                         session.node_of(device.uuid),
                                         device.pci_bus_id.value_or(device.uuid));
    } else {
      labels_[device.uuid] = fmt::format("{} ({})", device.name, device.index);
    }
  }
}

const std::string& DeviceLabels::of(const std::string& uuid) const {
  const auto found = labels_.find(uuid);
  return found == labels_.end() ? uuid : found->second;
}

std::vector<Finding> session_findings(const SessionData& session,
                                      const std::vector<SummaryRow>& rows) {
  const DeviceLabels labels(session);
  std::vector<Finding> findings;
  add_state(session, findings);
  add_unusable(session, labels, findings);
  const SaidOfTraces traces = add_traces(session, labels, findings);
  add_runs(session, labels, traces, findings);
  add_old_code(session, labels, findings);
  add_cases(rows, labels, traces, findings);
  add_rates(session, labels, findings);
  for (const Note& note : session.notes) {
    findings.push_back(found("note",
                             note.severity == "error" || note.severity == "warning"
                                 ? Severity::distorts
                                 : Severity::note,
                             "the session",
                             as_sentence(note.text)));
  }
  for (const std::string& problem : session.problems)
    findings.push_back(
        found("unreadable", Severity::distorts, "the session", as_sentence(problem)));
  return merged_alike(std::move(findings));
}

}  // namespace launchgap
