#include <cmath>
#include <span>

#include "harness/core/build_info.h"
#include "harness/core/metric.h"
#include "harness/record/json.h"
#include "harness/record/schema.h"
#include "harness/regression/report.h"
#include "harness/regression/selftest.h"

namespace launchgap::regression {
namespace {

void put(Json& json, const char* key, const std::string& text) {
  if (!text.empty()) json[key] = text;
}

void put(Json& json, const char* key, const std::optional<double>& number) {
  if (number && std::isfinite(*number)) json[key] = *number;
}

Json changes_json(const std::vector<KeyChange>& changes) {
  Json all = Json::array();
  for (const KeyChange& change : changes) {
    Json json = {{"key", change.key}};
    put(json, "from", change.from);
    put(json, "to", change.to);
    all.push_back(std::move(json));
  }
  return all;
}

Json power_json(const MeasuredPower& power) {
  Json json = Json::object();
  put(json, "false_alarm_rate", power.false_alarm_rate);
  put(json, "detectable", power.detectable);
  put(json, "erratic_rate", power.erratic_rate);
  return json;
}

void put_where(Json& json, const Result& result) {
  const CaseKey& where = result.key.where;
  put(json, "node", result.node);
  json["device"] = where.device;
  put(json, "device_name", result.device_name);
  put(json, "arm", where.arm);
  put(json, "process_config", where.process_config.text());
  json["case"] = where.name.text();
  put(json, "metric", result.key.metric);
  if (const Metric* const known = find_metric(result.key.metric)) {
    json["unit"] = known->unit;
    json["direction"] = name_of(known->direction);
  }
}

Json result_json(const Result& result) {
  Json json = Json::object();
  put_where(json, result);
  json["verdict"] = name_of(result.verdict);
  put(json, "reason", result.reason);
  put(json, "value", result.value);
  put(json, "baseline", result.baseline);
  json["runs"] = result.runs;
  json["compared_with"] = result.compared_with;
  put(json, "change", result.change);
  put(json, "slowdown", result.slowdown());
  if (const auto& interval = result.interval;
      interval && std::isfinite(interval->low) && std::isfinite(interval->high))
    json["interval"] = {{"low", interval->low}, {"high", interval->high}};
  put(json, "z", result.z);
  put(json, "minimum", result.minimum);
  json["hits"] = result.hits;
  json["steadiness"] = name_of(result.steadiness);
  put(json, "steadiness_reason", result.steadiness_reason);
  json["changed"] = changes_json(result.changed);
  if (result.algorithm)
    json["algorithm"] = {{"from", result.algorithm->from}, {"to", result.algorithm->to}};
  if (result.power) json["power"] = power_json(*result.power);
  put(json, "p99", result.p99);
  put(json, "baseline_p99", result.baseline_p99);
  put(json, "tail", result.tail);
  return json;
}

/// How many results have each of these, which are what `said` may be of one.
Json counts_json(const Report& report, std::span<const VerdictInfo> all, auto said) {
  Json counts = Json::object();
  for (const VerdictInfo& info : all) {
    counts[std::string(info.name)] = std::ranges::count_if(
        report.results, [&](const Result& result) { return name_of(result.*said) == info.name; });
  }
  return counts;
}

Json slowdowns_json(const Slowdowns& slowdowns) {
  Json json = {{"asked", slowdowns.asked}, {"tries", slowdowns.tries}, {"found", slowdowns.found}};
  put(json, "delay_ns", slowdowns.delay_ns);
  put(json, "change", slowdowns.change);
  put(json, "problem", slowdowns.problem);
  return json;
}

Json row_json(const SelftestRow& row) {
  Json json = {{"device", row.key.where.device},
               {"device_name", row.device_name},
               {"process_config", row.key.where.process_config.text()},
               {"case", row.key.where.name.text()},
               {"metric", row.key.metric},
               {"unit", unit_of(row.key.metric)},
               {"processes", row.processes},
               {"median", row.value},
               {"stated_rate", row.stated_rate},
               {"comparisons", row.comparisons},
               {"alarms", row.alarms},
               {"erratic", row.erratic},
               {"too_noisy", row.too_noisy()}};
  put(json, "watched", row.watched);
  put(json, "noise", row.noise);
  put(json, "lag1", row.lag1);
  if (row.watched.empty()) json["minimum"] = row.minimum;
  put(json, "false_alarm_rate", row.false_alarm_rate);
  put(json, "erratic_rate", row.erratic_rate);
  put(json, "detectable", row.detectable);
  if (row.alarm_interval)
    json["alarm_interval"] = {row.alarm_interval->low, row.alarm_interval->high};
  if (row.slowdowns) json["slowdown"] = slowdowns_json(*row.slowdowns);
  return json;
}

Json night_json(const NightRate& night) {
  const Rate& rate = night.rate;
  Json json = {{"device", rate.key.where.device},
               {"device_name", night.device_name},
               {"arm", rate.key.where.arm},
               {"process_config", rate.key.where.process_config.text()},
               {"case", rate.key.where.name.text()},
               {"metric", rate.key.metric},
               {"nights", night.nights},
               {"false_alarm_rate", rate.power.false_alarm_rate}};
  put(json, "noise", rate.noise);
  put(json, "erratic_rate", rate.power.erratic_rate);
  put(json, "detectable", rate.power.detectable);
  return json;
}

}  // namespace

std::string report_json(const Report& report) {
  Json json = new_record("check");
  json["kind"] = name_of(report.kind);
  json["exit_code"] = static_cast<int>(report.exit_code());
  put(json, "base", report.base);
  put(json, "subject", report.subject);
  put(json, "session_id", report.session_id);
  put(json, "begin_utc", report.begin_utc);
  put(json, "invalid", report.invalid);
  json["require_baseline"] = report.strictness.require_baseline;
  json["gate_spread"] = report.strictness.gate_spread;
  json["tests"] = report.tests();
  put(json, "expected_false_alarms", report.expected_false_alarms());
  json["tests_without_rate"] = report.tests_without_rate();
  json["verdicts"] = counts_json(report, verdicts(), &Result::verdict);
  json["steadiness"] = counts_json(report, steadiness_verdicts(), &Result::steadiness);
  json["notes"] = report.notes;
  json["results"] = Json::array();
  for (const Result& result : report.results) json["results"].push_back(result_json(result));
  return text_of_json(json, 1) + "\n";
}

Json to_json(const Selftest& selftest, const NightRates* nights) {
  Json json = {
      {"schema", "launchgap-selftest/1"}, {"launchgap", kVersion}, {"pairs", selftest.pairs}};
  json["rows"] = Json::array();
  for (const SelftestRow& row : selftest.rows) json["rows"].push_back(row_json(row));
  json["notes"] = selftest.notes;
  if (!nights) return json;
  json["nights"] = Json::array();
  for (const NightRate& night : nights->rates) json["nights"].push_back(night_json(night));
  json["nights_without_rate"] = nights->without;
  return json;
}

}  // namespace launchgap::regression
