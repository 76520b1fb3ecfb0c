#include "harness/doctor/rules/rules.h"

#include <algorithm>

#include <fmt/format.h>

#include "harness/doctor/rules/words.h"

namespace launchgap::doctor {

bool has_gpu(const Facts& facts) {
  return !facts.gpus.empty() || facts.machine.wsl || !facts.nvml.gpus.empty();
}

namespace {

/// The same about several GPUs is one finding.
void merge_alike(std::vector<Finding>& findings) {
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
    same->subject += ", " + finding.subject;
    for (std::string& line : finding.evidence) {
      if (std::ranges::find(same->evidence, line) == same->evidence.end())
        same->evidence.push_back(std::move(line));
    }
  }
  findings = std::move(merged);
}

/// What a GPU's proof says of a library that is itself broken or mixed is that library's symptom.
void explain_by_libraries(std::vector<Finding>& findings) {
  for (const char* library : {"cudnn", "cublas"}) {
    const std::string name = fmt::format("lib{}", library);
    const auto cause = std::ranges::find_if(findings, [&](const Finding& finding) {
      return finding.subject.starts_with(name) && finding.severity == Severity::prevents;
    });
    if (cause == findings.end()) continue;
    for (const Finding& finding : findings) {
      if (&finding != &*cause && finding.code.starts_with(library))
        for (const std::string& line : finding.evidence) cause->symptoms.push_back(line);
    }
    const Finding kept = *cause;
    std::erase_if(findings, [&](const Finding& finding) {
      return finding.code.starts_with(library) && finding.subject != kept.subject;
    });
  }
}

}  // namespace

std::vector<Finding> diagnose(const Facts& facts) {
  std::vector<Finding> findings;
  std::optional<Finding> no_driver = why_no_driver(facts);
  if (no_driver) {
    no_driver->symptoms = symptoms_without_driver(facts, *no_driver);
    findings.push_back(*std::move(no_driver));
  } else {
    for (Finding& finding : diagnose_gpus(facts)) findings.push_back(std::move(finding));
  }
  for (Finding& finding : diagnose_libraries(facts, !no_driver)) {
    // Nothing can be measured wrongly on a GPU that is not there.
    if (!has_gpu(facts)) finding.severity = Severity::note;
    findings.push_back(std::move(finding));
  }
  for (Finding& finding : diagnose_state(facts)) findings.push_back(std::move(finding));
  explain_by_libraries(findings);
  merge_alike(findings);
  sort_by_severity(findings);
  return findings;
}

}  // namespace launchgap::doctor
