#include "harness/regression/selftest_json.h"

#include <optional>

#include "harness/core/metric.h"
#include "harness/core/version.h"

namespace launchgap::regression {
namespace {

void put(Json& json, const char* key, const std::optional<double>& value) {
  if (value) json[key] = *value;
}
void put(Json& json, const char* key, const std::string& value) {
  if (!value.empty()) json[key] = value;
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
