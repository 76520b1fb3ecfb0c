// The tables of a session that was checked against a history.
#include <iterator>

#include "harness/core/metric.h"
#include "harness/summary/night_rows.h"
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

}  // namespace launchgap
