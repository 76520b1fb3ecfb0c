#include "harness/doctor/rules/diagnose.h"

#include <algorithm>
#include <cstdlib>
#include <set>

#include <fmt/format.h>

#include "harness/doctor/rules/rules.h"

namespace launchgap::doctor {

bool has_gpu(const MachineFacts& facts) {
  return !facts.gpus.empty() || !facts.nvml.gpus.empty();
}

namespace {

/// The number in a name: 12 of "libcublas.so.12".
int number_of(const std::string& soname) {
  const std::size_t at = soname.rfind(".so.");
  return at == std::string::npos ? 0 : std::atoi(soname.c_str() + at + 4);
}

/// Whether this is the newest by its name, which launchgap tries first.
bool is_newest(const MachineFacts& facts, const std::string& soname) {
  const std::string stem = soname.substr(0, soname.find(".so."));
  return std::ranges::none_of(facts.libraries, [&](const LibraryFacts& other) {
    return other.soname.starts_with(stem + ".so.") && number_of(other.soname) > number_of(soname);
  });
}

/// What a GPU's proof says of a library that is itself broken or mixed is that library's symptom.
void explain_by_libraries(const MachineFacts& facts, std::vector<Finding>& findings) {
  for (const std::string library : {"cudnn", "cublas"}) {
    const auto cause = std::ranges::find_if(findings, [&](const Finding& finding) {
      return finding.subject.starts_with("lib" + library) &&
             finding.severity == Severity::prevents && is_newest(facts, finding.subject);
    });
    if (cause == findings.end()) continue;
    const auto is_symptom = [&](const Finding& finding) {
      return finding.code.starts_with(library) && !finding.subject.starts_with("lib");
    };
    for (const Finding& finding : findings) {
      if (!is_symptom(finding)) continue;
      cause->symptoms.insert(
          cause->symptoms.end(), finding.evidence.begin(), finding.evidence.end());
    }
    std::erase_if(findings, is_symptom);
  }
}

/// Who is on a GPU that is full or taken is its evidence already.
void explain_by_neighbours(std::vector<Finding>& findings) {
  std::set<std::string> explained;
  for (const Finding& finding : findings) {
    if (finding.code == "gpu-memory-full" || finding.code == "gpu-taken")
      explained.insert(finding.subject);
  }
  std::erase_if(findings, [&](const Finding& finding) {
    return (finding.code == "gpu-in-use" || finding.code == "exclusive-mode") &&
           explained.contains(finding.subject);
  });
}

}  // namespace

std::vector<Finding> diagnose(const MachineFacts& facts) {
  std::vector<Finding> findings;
  std::optional<Finding> no_driver = why_no_driver(facts);
  const bool driver_works = !no_driver;
  if (no_driver) {
    no_driver->symptoms = in_words(symptoms_without_driver(facts, *no_driver));
    findings.push_back(*std::move(no_driver));
  } else {
    for (Finding& finding : diagnose_gpus(facts)) findings.push_back(std::move(finding));
  }
  for (Finding& finding : diagnose_libraries(facts, driver_works)) {
    // Nothing can be measured wrongly on a GPU that is not there.
    if (!has_gpu(facts)) finding.severity = Severity::note;
    findings.push_back(std::move(finding));
  }
  for (Finding& finding : diagnose_state(facts)) findings.push_back(std::move(finding));
  explain_by_libraries(facts, findings);
  explain_by_neighbours(findings);
  findings = merged_alike(std::move(findings));
  sort_findings(findings);
  return findings;
}

bool is_usable(const JoinedGpu& gpu, const std::vector<Finding>& findings) {
  if (!gpu.in_driver || gpu.hidden) return false;
  if (gpu.proof) {
    const ProofStep* const kernel = gpu.step("kernel");
    if (!kernel || kernel->status != "ok" || !gpu.proof->died.empty()) return false;
  }
  // A library that cannot serve it takes one kind of work away, not the GPU.
  return std::ranges::none_of(findings, [&](const Finding& finding) {
    return finding.severity == Severity::prevents && finding.is_about(gpu.subject()) &&
           !finding.code.starts_with("cudnn") && !finding.code.starts_with("cublas");
  });
}

std::size_t usable_gpus(const MachineFacts& facts, const std::vector<Finding>& findings) {
  return static_cast<std::size_t>(std::ranges::count_if(
      facts.gpus, [&](const JoinedGpu& gpu) { return is_usable(gpu, findings); }));
}

}  // namespace launchgap::doctor
