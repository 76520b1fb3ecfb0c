#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "harness/core/metric.h"
#include "harness/core/printable.h"
#include "harness/core/text.h"
#include "harness/summary/session_findings.h"

namespace launchgap {
namespace {

std::string phrase(const VerdictRow& row) {
  const Metric* const known = find_metric(row.metric);
  return known && !known->in_a_sentence.empty() ? std::string(known->in_a_sentence)
                                                : printable(row.metric, 80);
}

std::string value_text(const VerdictRow& row, std::optional<double> value) {
  std::string text = quantity(value, unit_of(row.metric));
  if (text.ends_with(' ')) text.pop_back();  // of a metric that this launchgap does not know
  return text;
}

std::string case_text(const VerdictRow& row) {
  const std::string process_config =
      row.key.process_config.usual() ? "" : row.key.process_config.text();
  return printable(row.key.name.text()) +
         (process_config.empty() ? "" : fmt::format(" [{}]", printable(process_config, 80)));
}

/// "roundtrip_ns of launch/null/mode:idle, +8.4 %: in 3 sessions in a row".
std::string line_of(const VerdictRow& row, const std::string& why) {
  std::string text = fmt::format("{} of {}", printable(row.metric, 80), case_text(row));
  if (row.change) text += fmt::format(", {:+.1f} %", 100 * *row.change);
  return why.empty() ? text : fmt::format("{}: {}", text, printable(why));
}

/// Of the time now, how much is more than before.
std::optional<double> time_lost(const VerdictRow& row) {
  if (!row.value || !row.baseline || !(*row.value > 0) || !(*row.baseline > 0)) return std::nullopt;
  const double ratio = *row.value / *row.baseline;
  return 1 - std::min(ratio, 1 / ratio);
}

Finding slower(const VerdictRow& row, const DeviceLabels& labels) {
  Finding finding = new_finding(
      FindingSource::gate, "slower", Severity::act, labels.of(row.key.device), row.key.device);
  finding.cases = row.key.name.text();
  finding.share = time_lost(row);
  finding.sentence =
      fmt::format("{} is {} slower than in the sessions before: {} was {} and is {}.",
                  case_text(row),
                  percent_text(std::abs(row.change.value_or(0))),
                  phrase(row),
                  value_text(row, row.baseline),
                  value_text(row, row.value));
  finding.evidence = {Evidence(line_of(row, row.reason)),
                      {"sessions before", static_cast<double>(row.compared_with), "1"}};
  finding.remedy =
      "See what changed since then (`launchgap history show`). If this level is meant to last, "
      "accept it: `launchgap history accept`.";
  return finding;
}

/// What is said of several metrics at once.
struct Together {
  const char* code;
  Severity severity;
  const char* one;
  const char* many;
  const char* remedy;
  bool (*holds)(const VerdictRow& row);
};
constexpr Together kTogether[] = {
    {"suspect",
     Severity::note,
     "1 metric may be slower than in the sessions before: further sessions decide.",
     "{} metrics may be slower than in the sessions before: further sessions decide.",
     "",
     [](const VerdictRow& row) { return row.verdict == "suspect"; }},
    {"erratic",
     Severity::note,
     "1 metric varies more than in the sessions before.",
     "{} metrics vary more than in the sessions before.",
     "Look for what else runs on the machine. `--gate-spread` makes it a failure.",
     [](const VerdictRow& row) { return row.steadiness == "erratic"; }},
    {"faster",
     Severity::note,
     "1 metric is faster than in the sessions before.",
     "{} metrics are faster than in the sessions before.",
     "If that is meant to last, accept it as baseline: `launchgap history accept`.",
     [](const VerdictRow& row) { return row.verdict == "faster"; }},
};

}  // namespace

std::vector<Finding> night_findings(const SessionData& session,
                                    const std::vector<VerdictRow>& verdicts) {
  const DeviceLabels labels(session);
  std::vector<Finding> findings;
  for (const VerdictRow& row : verdicts) {
    if (row.verdict == "slower") findings.push_back(slower(row, labels));
  }
  for (const Together& kind : kTogether) {
    Finding finding = new_finding(FindingSource::gate, kind.code, kind.severity, "the session");
    for (const VerdictRow& row : verdicts) {
      if (!kind.holds(row)) continue;
      const bool erratic = row.steadiness == "erratic";
      finding.evidence.emplace_back(line_of(row, erratic ? row.steadiness_reason : row.reason));
    }
    const std::size_t count = finding.evidence.size();
    if (count == 0) continue;
    finding.sentence = count == 1 ? kind.one : fmt::format(fmt::runtime(kind.many), count);
    finding.remedy = kind.remedy;
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace launchgap
