#include "harness/record/finding_json.h"

namespace launchgap {
namespace {

Json to_json(const std::vector<Evidence>& all) {
  Json json = Json::array();
  for (const Evidence& evidence : all) json.push_back(launchgap::to_json(evidence));
  return json;
}

Evidence evidence_from_json(const Json& json) {
  if (json.is_string()) return Evidence(json.get<std::string>());
  if (!json.is_object())
    throw Error("evidence is {}, and must be a string or an object", kind_of(json));
  Evidence evidence(field<std::string>(json, "name"));
  evidence.value = optional_field<double>(json, "value");
  evidence.unit = field<std::string>(json, "unit", "");
  evidence.low = optional_field<double>(json, "low");
  evidence.high = optional_field<double>(json, "high");
  return evidence;
}

std::vector<Evidence> all_from_json(const Json& json, const char* key) {
  std::vector<Evidence> all;
  for (const Json& evidence : array_field(json, key)) all.push_back(evidence_from_json(evidence));
  return all;
}

}  // namespace

Json to_json(const Evidence& evidence) {
  if (!evidence.value) return evidence.name;
  Json json = {{"name", evidence.name}, {"value", *evidence.value}, {"unit", evidence.unit}};
  if (evidence.low) json["low"] = *evidence.low;
  if (evidence.high) json["high"] = *evidence.high;
  return json;
}

Json to_json(const Finding& finding) {
  Json json = {{"code", finding.code},
               {"severity", name_of(finding.severity)},
               {"subject", finding.subject},
               {"sentence", finding.sentence},
               {"evidence", to_json(finding.evidence)},
               {"remedy", finding.remedy}};
  if (finding.source != FindingSource::doctor) json["source"] = name_of(finding.source);
  if (finding.share) json["share"] = *finding.share;
  if (!finding.unknown.empty()) json["unknown"] = finding.unknown;
  if (!finding.device.empty()) json["device_id"] = finding.device;
  if (finding.replicate) json["replicate"] = *finding.replicate;
  if (!finding.cases.empty()) json["cases"] = finding.cases;
  if (!finding.symptoms.empty()) json["symptoms"] = to_json(finding.symptoms);
  if (!finding.subjects.empty()) json["subjects"] = finding.subjects;
  return json;
}

Finding finding_from_json(const Json& json) {
  Finding finding;
  finding.code = field<std::string>(json, "code");
  finding.severity = parse_severity(field<std::string>(json, "severity"));
  finding.subject = field<std::string>(json, "subject", "");
  finding.sentence = field<std::string>(json, "sentence");
  finding.evidence = all_from_json(json, "evidence");
  finding.remedy = field<std::string>(json, "remedy", "");
  finding.source = parse_finding_source(field<std::string>(json, "source", "doctor"));
  finding.share = optional_field<double>(json, "share");
  finding.unknown = field<std::string>(json, "unknown", "");
  finding.device = field<std::string>(json, "device_id", "");
  finding.replicate = optional_field<int>(json, "replicate");
  finding.cases = field<std::string>(json, "cases", "");
  finding.symptoms = all_from_json(json, "symptoms");
  finding.subjects = field<std::vector<std::string>>(json, "subjects", {});
  return finding;
}

}  // namespace launchgap
