#include "harness/doctor/finding.h"

#include <algorithm>
#include <functional>

namespace launchgap::doctor {

std::string_view name_of(Severity severity) {
  switch (severity) {
    case Severity::note:
      return "note";
    case Severity::distorts:
      return "distorts";
    case Severity::prevents:
      return "prevents";
  }
  return "";
}

bool Finding::is_about(const std::string& one) const {
  return subject == one || std::ranges::find(subjects, one) != subjects.end();
}

Json to_json(const Finding& finding) {
  Json json = {{"code", finding.code},
               {"severity", name_of(finding.severity)},
               {"subject", finding.subject},
               {"sentence", finding.sentence},
               {"evidence", finding.evidence},
               {"remedy", finding.remedy}};
  if (!finding.symptoms.empty()) json["symptoms"] = finding.symptoms;
  if (!finding.subjects.empty()) json["subjects"] = finding.subjects;
  return json;
}

std::vector<Finding> merged_alike(std::vector<Finding> findings) {
  std::vector<Finding> merged;
  for (Finding& finding : findings) {
    const auto same = std::ranges::find_if(merged, [&](const Finding& other) {
      return other.code == finding.code && other.severity == finding.severity &&
             other.sentence == finding.sentence;
    });
    if (same == merged.end()) {
      merged.push_back(std::move(finding));
      continue;
    }
    for (std::string& line : finding.evidence) {
      if (std::ranges::find(same->evidence, line) == same->evidence.end())
        same->evidence.push_back(std::move(line));
    }
    if (same->is_about(finding.subject)) continue;
    if (same->subjects.empty()) same->subjects.push_back(same->subject);
    same->subject += ", " + finding.subject;
    same->subjects.push_back(std::move(finding.subject));
  }
  return merged;
}

void sort_by_severity(std::vector<Finding>& findings) {
  std::ranges::stable_sort(findings, std::ranges::greater(), &Finding::severity);
}

}  // namespace launchgap::doctor
