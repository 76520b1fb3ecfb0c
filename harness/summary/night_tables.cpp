// The tables of a session that was checked against a history.
#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "harness/core/metric.h"
#include "harness/core/printable.h"
#include "harness/core/text.h"
#include "harness/summary/night_rows.h"
#include "harness/summary/session_findings.h"
#include "harness/summary/table_makers.h"

namespace launchgap {
namespace {

/// Those that say which metric, and then the others.
template <class Row>
std::vector<TableColumn<Row>> after_key(std::vector<TableColumn<Row>> others) {
  std::vector<TableColumn<Row>> columns = {
      {"device_id", [](const Row& row) { return row.key.device; }},
      {"arm", [](const Row& row) { return row.key.arm; }},
      {"process_config", [](const Row& row) { return row.key.process_config.text(); }},
      {"case", [](const Row& row) { return row.key.name.text(); }},
      {"metric", &Row::metric},
      {"unit", [](const Row& row) { return unit_of(row.metric); }}};
  std::ranges::move(others, std::back_inserter(columns));
  return columns;
}

}  // namespace

Table check_answers_table() {
  using Row = CheckAnswerRow;
  return make_table<Row>(
      "check_answers.csv",
      "sentence of a check against a history",
      TableUse::details,
      [](const TableInputs& inputs) {
        return inputs.nights ? inputs.nights->answers : std::vector<Row>();
      },
      {{"part",
        "answer: whether anything is slower. change: what changed, and what moved most with it. "
        "false-alarms: how many are to be expected.",
        &Row::part},
       {"tone",
        "Of the answer: bad where something is slower, warning where something may be, else know.",
        &Row::tone},
       {"sentence", "What is said.", &Row::sentence}});
}

Table verdicts_table() {
  using Row = VerdictRow;
  return make_table<Row>(
      "verdicts.csv",
      "metric that was checked against a history, gravest first",
      TableUse::details,
      [](const TableInputs& inputs) {
        return inputs.nights ? inputs.nights->verdicts : std::vector<Row>();
      },
      after_key<Row>(
          {{"verdict", "What was found; see Verdicts.", &Row::verdict},
           {"reason", "Why.", &Row::reason},
           {"value", "Median of the processes' medians.", &Row::value, kUnitOfMetric},
           {"baseline", "Median of the sessions before.", &Row::baseline, kUnitOfMetric},
           {"change",
            "How far value lies from baseline; of several runs or pairs by the means of their "
            "logarithms.",
            &Row::change,
            kShare},
           {"change_lo",
            "Lower end of its 99 % interval, where it has one.",
            &Row::change_lo,
            kShare},
           {"change_hi", "Upper end of it.", &Row::change_hi, kShare},
           {"minimum", "The smallest change that counts.", &Row::minimum, kShare},
           {"z",
            "Distance in robust standard deviations of the sessions; positive: slower.",
            &Row::z},
           {"runs", "Processes of the session.", &Row::runs},
           {"compared_with", "Sessions that it was compared with.", &Row::compared_with},
           {"steadiness", "Whether it varies more than before.", &Row::steadiness},
           {"steadiness_reason", "By what that was found.", &Row::steadiness_reason},
           {"tail",
            "How many times as long the p99 is, where it is beyond the usual limit.",
            &Row::tail},
           {"changed", "Keys of the fingerprint that changed.", &Row::changed},
           {"algorithm",
            "By which the case was computed before, and is now, if that is another one.",
            &Row::algorithm},
           {"false_alarm_rate",
            "How often this rule calls a night slower that is not, on this machine; the self-test "
            "measures it.",
            &Row::false_alarm_rate,
            kShare},
           {"detectable",
            "The smallest lasting slowdown that it finds in 80 % of all cases.",
            &Row::detectable,
            kShare}}));
}

Table nights_table() {
  using Row = NightRow;
  return make_table<Row>(
      "nights.csv",
      "session of a history and metric that the page draws, in order of time",
      TableUse::details,
      [](const TableInputs& inputs) {
        return inputs.nights ? inputs.nights->nights : std::vector<Row>();
      },
      after_key<Row>(
          {{"night", "The session of the history.", &Row::night},
           {"begin_utc", "When it began.", &Row::begin_utc},
           {"value", "Median of its processes' medians.", &Row::value, kUnitOfMetric},
           {"low",
            "A value below it was a hit, by the sessions before; empty where these were too few.",
            &Row::low,
            kUnitOfMetric},
           {"high", "A value above it was a hit.", &Row::high, kUnitOfMetric},
           {"verdict", "What was said of it then.", &Row::verdict},
           {"invalid", "Why it does not count.", &Row::invalid},
           {"changed",
            "Keys of the fingerprint that changed since the one before.",
            &Row::changed}}));
}

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
