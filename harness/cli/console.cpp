#include "harness/cli/console.h"

#include <algorithm>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "harness/core/text.h"
#include "harness/device/backend.h"
#include "harness/measure/benchmark.h"
#include "harness/summary/adviser.h"
#include "harness/summary/all_tables.h"
#include "harness/summary/device_answers.h"
#include "harness/summary/headlines.h"

namespace launchgap::cli {

namespace {

/// "A100 (1)": equal devices differ by their index.
std::string full_name(const DeviceFacts& device) {
  return is_gpu(device) ? fmt::format("{} ({})", device.name, device.index)
                        : fmt::format("{} ({})", device.name, device.backend);
}

/// Without the columns of which no row has anything, but the first.
void drop_empty_columns(std::vector<std::vector<std::string>>& rows) {
  const std::string absent = quantity(std::nullopt, "");
  for (std::size_t column = rows.front().size(); column-- > 1;) {
    const bool empty = std::ranges::all_of(
        rows.begin() + 1, rows.end(), [&](const auto& row) { return row[column] == absent; });
    if (!empty) continue;
    for (auto& row : rows) row.erase(row.begin() + static_cast<std::ptrdiff_t>(column));
  }
}

/// Why of no case there is a median; empty where there is one, or no case.
std::string nothing_measured(const Summarised& summarised) {
  std::vector<const SummaryRow*> missing;
  for (const std::vector<SummaryRow>* rows : {&summarised.rows, &summarised.impossible}) {
    for (const SummaryRow& row : *rows) {
      if (row.p50) return "";
      missing.push_back(&row);
    }
  }
  if (missing.empty()) return "";
  return "\n" +
         wrapped(fmt::format("Nothing was measured. The first of {}, {}: {}",
                             counted(missing.size(), "case"),
                             missing.front()->key.name.text(),
                             missing.front()->reason),
                 0) +
         "\n";
}

/// For a session of which no headline tells anything: the medians of its first cases.
std::string medians_table(const Summarised& summarised) {
  constexpr std::size_t kShown = 12;
  std::vector<std::vector<std::string>> rows = {{"case", "metric", "median", "device"}};
  std::size_t further = 0;
  for (const SummaryRow& row : summarised.rows) {
    if (row.key.arm != name_of(Arm::plain) || !row.p50) continue;
    const DeviceFacts* const device = summarised.session.device(row.key.device);
    if (rows.size() > kShown) {
      ++further;
      continue;
    }
    rows.push_back({row.key.name.text(),
                    row.metric,
                    quantity(row.p50, unit_of(row.metric)),
                    device ? full_name(*device) : row.key.device});
  }
  if (rows.size() == 1) return nothing_measured(summarised);
  return table(rows) + (further > 0 ? fmt::format("and {} more in summary.csv\n", further) : "");
}

}  // namespace

std::string headline_table(const Summarised& summarised) {
  const std::vector<NamedHeadline> headlines = all_headlines();
  std::vector<std::vector<std::string>> rows = {{"device"}};
  for (const NamedHeadline& named : headlines) rows[0].emplace_back(named.headline->heading);
  const RowsByDevice by_device(summarised.rows);
  std::string unusable;
  bool simulated = false;
  for (const DeviceFacts& device : summarised.session.devices) {
    const std::string name = full_name(device);
    if (!device.usable) {
      unusable += fmt::format("{}: not measured: {}\n", name, device.reason);
      continue;
    }
    simulated = simulated || device.simulated;
    std::vector<std::string>& row = rows.emplace_back(std::vector{name});
    for (const NamedHeadline& named : headlines) {
      const HeadlineValue found = headline_value(by_device.of(device.uuid), named);
      row.push_back(quantity(found.value, found.unit));
    }
  }
  if (rows.size() > 1) drop_empty_columns(rows);
  const bool told = rows.front().size() > 1;
  return (rows.size() == 1 ? ""
          : told           ? table(rows)
                           : medians_table(summarised)) +
         unusable + (simulated ? "SIMULATED: measured on fake CUDA libraries.\n" : "");
}

namespace {

/// A line per device: how much its launches vary, and whether that can be relied on.
std::string answer_lines(const Summarised& summarised) {
  constexpr std::size_t kShown = 8;
  const std::vector<DeviceAnswer> answers = device_answers(summarised.session, summarised.rows);
  std::string text;
  std::size_t shown = 0;
  for (const DeviceAnswer& answer : answers) {
    // Those without launches are in the table, with the reason.
    if (answer.sentence.empty()) continue;
    if (++shown > kShown) continue;
    const DeviceFacts* const device = summarised.session.device(answer.device);
    std::string line = fmt::format("{}: {}", full_name(*device), answer.verdict);
    if (answer.within_run_cv && answer.between_run_cv)
      line += fmt::format("; launch calls vary by {} within a run and by {} between {} runs",
                          percent_text(*answer.within_run_cv),
                          percent_text(answer.between_run_cv->value),
                          answer.runs);
    line += ".";
    if (!answer.note.empty()) line += " " + answer.note;
    if (!answer.kind.empty()) line += " It is " + answer.kind;
    text += wrapped(line, 0) + "\n";
  }
  if (shown > kShown) text += fmt::format("and {} more devices: on the page\n", shown - kShown);
  return text.empty() ? text : "\n" + text;
}

/// Whether traced runs are missing, and who else watched.
std::string tracing_remarks(const SessionData& session) {
  std::set<std::string> tools, problems;
  for (const RunInfo& run : session.runs) {
    if (!run.measured_under_tool.empty()) tools.insert(run.measured_under_tool);
  }
  for (const TraceInfo& trace : session.traces) {
    if (trace.record.of_run() && trace.record.state != "ok") problems.insert(trace.record.reason);
  }
  std::string text;
  for (const std::string& tool : tools)
    text += fmt::format("Measured under {}: nothing of this session serves as a baseline.\n", tool);
  for (const std::string& problem : problems) text += fmt::format("Not traced: {}\n", problem);
  return text;
}

/// Answers of benchmarks that are read though there is nothing to do about them.
std::string noted_answers(const std::vector<Finding>& findings) {
  std::set<std::string> codes;
  for (const Benchmark& benchmark : all_benchmarks()) {
    if (benchmark.advice && benchmark.advice->on_terminal)
      codes.insert(advice_code(benchmark.name));
  }
  std::string text;
  for (const Finding& finding : findings) {
    if (finding.source == FindingSource::advice && finding.severity == Severity::note &&
        codes.contains(finding.code))
      text += "\n" + wrapped(fmt::format("{}: {}", finding.subject, finding.sentence), 0) + "\n";
  }
  return text;
}

}  // namespace

std::string first_findings(const Summarised& summarised) {
  constexpr std::size_t kShown = 3;
  constexpr std::size_t kIndent = 2;
  std::vector<Finding> findings = all_findings(summarised.table_inputs());
  std::string text = noted_answers(findings);
  // What the doctor found was said before anything was measured.
  std::erase_if(findings, [](const Finding& finding) {
    return finding.source == FindingSource::doctor || finding.severity > Severity::act;
  });
  if (findings.empty()) return text;
  // What a GPU gains before what the host gains.
  std::stable_partition(findings.begin(), findings.end(), [&](const Finding& finding) {
    const DeviceFacts* const device = summarised.session.device(finding.device);
    return finding.severity < Severity::act || (device && is_gpu(*device));
  });
  text += "\nWhat to do first:\n";
  for (std::size_t i = 0; i < std::min(kShown, findings.size()); ++i) {
    const Finding& finding = findings[i];
    text += wrapped(fmt::format("- {}: {}", finding.subject, finding.sentence), kIndent) + "\n";
  }
  if (findings.size() > kShown)
    text += fmt::format("- and {} more, each with its evidence: on the page, and in findings.csv\n",
                        findings.size() - kShown);
  return text;
}

std::string remarks(const Summarised& summarised) {
  return answer_lines(summarised) + tracing_remarks(summarised.session);
}

}  // namespace launchgap::cli
