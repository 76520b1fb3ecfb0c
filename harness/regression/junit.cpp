#include <cmath>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "harness/core/build_info.h"
#include "harness/core/metric.h"
#include "harness/core/printable.h"
#include "harness/regression/report.h"
#include "harness/regression/report_words.h"

namespace launchgap::regression {
namespace {

/// Text for XML 1.0, in an attribute too. Other characters that it forbids (control characters,
/// bytes that are no UTF-8) are written out by printable().
std::string xml(std::string_view text) {
  constexpr std::string_view kLimits[] = {"\xEF\xBF\xBE", "\xEF\xBF\xBF"};  // U+FFFE, U+FFFF
  const std::string shown = printable(text, 2000);
  std::string out;
  for (std::size_t i = 0; i < shown.size(); ++i) {
    switch (const char c = shown[i]) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&apos;";
        break;
      default:
        out += c;
    }
    for (const std::string_view forbidden : kLimits) {
      if (out.ends_with(forbidden)) out.replace(out.size() - 3, 3, "\xEF\xBF\xBD");
    }
  }
  return out;
}

/// The properties of a suite or a test case, indented.
class Properties {
 public:
  explicit Properties(std::string_view indent) : indent_(indent) {}

  void add(std::string_view name, std::string_view value) {
    if (!value.empty())
      text_ +=
          fmt::format("{}  <property name=\"{}\" value=\"{}\"/>\n", indent_, xml(name), xml(value));
  }
  void add(std::string_view name, const std::optional<double>& value) {
    if (value && std::isfinite(*value)) add(name, fmt::format("{}", *value));
  }
  std::string text() const {
    return text_.empty() ? ""
                         : fmt::format("{0}<properties>\n{1}{0}</properties>\n", indent_, text_);
  }

 private:
  std::string indent_, text_;
};

std::string properties_of(const Result& result) {
  Properties properties("      ");
  properties.add("node", result.node);
  properties.add("device", result.key.where.device);
  properties.add("device_name", result.device_name);
  properties.add("verdict", name_of(result.verdict));
  properties.add("steadiness", name_of(result.steadiness));
  properties.add("unit", unit_of(result.key.metric));
  properties.add("value", result.value);
  properties.add("baseline", result.baseline);
  properties.add("runs", fmt::format("{}", result.runs));
  properties.add("compared_with", fmt::format("{}", result.compared_with));
  properties.add("change", result.change);
  if (result.interval) {
    properties.add("interval_low", result.interval->low);
    properties.add("interval_high", result.interval->high);
  }
  properties.add("z", result.z);
  properties.add("minimum", result.minimum);
  properties.add("hits", fmt::format("{}", result.hits));
  properties.add("p99", result.p99);
  properties.add("baseline_p99", result.baseline_p99);
  properties.add("tail", result.tail);
  if (result.power) {
    properties.add("false_alarm_rate", result.power->false_alarm_rate);
    properties.add("detectable", result.power->detectable);
    properties.add("erratic_rate", result.power->erratic_rate);
  }
  for (const KeyChange& change : result.changed) properties.add("changed", text_of({change}));
  if (result.algorithm) properties.add("algorithm", algorithm_text(result));
  return properties.text();
}

/// "slower: +8.1 % [+7.2, +9.0], 2.31 µs → 2.50 µs; …".
std::string message_of(const Result& result) {
  const std::string facts = facts_text(result);
  return fmt::format("{}{}{}", name_of(result.verdict), facts.empty() ? "" : ": ", facts);
}

/// What is neither passed nor failed.
bool is_skipped(const Result& result) {
  return result.verdict == Verdict::suspect ||
         (!result.is_compared() && result.verdict != Verdict::watch);
}

std::string outcome_of(const Result& result, const Strictness& strictness) {
  if (fails(result, strictness)) {
    const bool by_verdict = fails(result, {.require_baseline = strictness.require_baseline});
    return fmt::format("      <failure type=\"{}\" message=\"{}\"/>\n",
                       by_verdict ? name_of(result.verdict) : name_of(result.steadiness),
                       xml(message_of(result)));
  }
  if (is_skipped(result))
    return fmt::format("      <skipped message=\"{}\"/>\n", xml(message_of(result)));
  return fmt::format("      <system-out>{}</system-out>\n", xml(message_of(result)));
}

std::string test_case(const Result& result, const Strictness& strictness) {
  return fmt::format(
      "    <testcase classname=\"{}\" name=\"{}\">\n{}{}    </testcase>\n",
      xml(result.key.where.name.benchmark),
      xml(fmt::format("{} of {}, {}", metric_text(result), case_text(result), device_text(result))),
      properties_of(result),
      outcome_of(result, strictness));
}

std::string properties_of(const Report& report) {
  Properties properties("    ");
  properties.add("kind", name_of(report.kind));
  properties.add("base", report.base);
  properties.add("subject", report.subject);
  properties.add("session_id", report.session_id);
  properties.add("exit_code", fmt::format("{}", static_cast<int>(report.exit_code())));
  properties.add("compared", fmt::format("{}", report.tests()));
  properties.add("expected_false_alarms", report.expected_false_alarms());
  for (const VerdictInfo& info : verdicts())
    properties.add(info.name, fmt::format("{}", report.count(parse_verdict(info.name))));
  properties.add("launchgap", kVersion);
  return properties.text();
}

}  // namespace

std::string junit_xml(const Report& report) {
  std::string cases;
  std::size_t tests = 0, failures = 0, skipped = 0;
  for (const Result& result : report.results) {
    ++tests;
    if (fails(result, report.strictness))
      ++failures;
    else if (is_skipped(result))
      ++skipped;
    cases += test_case(result, report.strictness);
  }
  const std::size_t errors = report.invalid.empty() ? 0 : 1;
  if (errors > 0) {
    ++tests;
    cases += fmt::format(
        "    <testcase classname=\"launchgap\" name=\"the session as a whole\">\n"
        "      <error type=\"invalid\" message=\"{}\"/>\n    </testcase>\n",
        xml(report.invalid));
  }
  std::string out = answer_sentence(report);
  for (const std::string& note : report.notes) out += " " + note + ".";
  const std::string counts =
      fmt::format("tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\"",
                  tests,
                  failures,
                  errors,
                  skipped);
  // JUnit's time of day has no zone.
  std::string timestamp = report.begin_utc;
  if (timestamp.ends_with('Z')) timestamp.pop_back();
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuites name=\"launchgap\" {0}>\n"
      "  <testsuite name=\"launchgap {1}\" {0}{2}>\n{3}{4}"
      "    <system-out>{5}</system-out>\n"
      "  </testsuite>\n</testsuites>\n",
      counts,
      report.kind == Kind::pairs ? "compare" : "check",
      timestamp.empty() ? "" : fmt::format(" timestamp=\"{}\"", xml(timestamp)),
      properties_of(report),
      cases,
      xml(out));
}

}  // namespace launchgap::regression
