// A recorded process that a test puts together, without a session's files.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/summary/causes.h"
#include "harness/summary/recorded_process.h"
#include "tests/device/a_device.h"

namespace launchgap {

/// Of 1000 ns, of which the GPU waits for so much, by metric.
struct MadeProcess {
  explicit MadeProcess(const std::map<std::string, double>& waits_ns = {},
                       double length_ns = 1000) {
    session.devices = {a_device("GPU-1", "Some GPU")};
    session.recordings.emplace_back().device = "GPU-1";
    session.recordings[0].record.file = "job.json";
    add("recorded/job", "step_ns", {length_ns});
    for (const auto& [metric, ns] : waits_ns) add("recorded/job", metric, {ns});
  }

  /// Samples of it.
  void add(const std::string& name, const std::string& metric, std::vector<double> values) {
    session.cases[{"GPU-1", "recorded", "recorded", CaseName::parse(name)}].samples[metric][0] =
        std::move(values);
  }
  /// The same of so many launches that found their stream in this state.
  void launches(const char* state, const std::string& metric, std::size_t n, double ns) {
    add(std::string("recorded/launch/stream:") + state, metric, std::vector<double>(n, ns));
  }

  RecordedProcess process() const {
    RecordedProcess made(session, session.recordings[0]);
    made.job = job;
    made.kernels = kernels.empty() ? nullptr : &kernels;
    if (idle_share) made.idle_share = idle_share;
    return made;
  }

  using Rule = void (*)(const RecordedProcess&, std::vector<Finding>&);
  std::vector<Finding> found_by(Rule rule) const {
    std::vector<Finding> found;
    rule(process(), found);
    return found;
  }
  std::vector<std::string> codes_by(Rule rule) const {
    std::vector<std::string> codes;
    for (const Finding& finding : found_by(rule)) codes.push_back(finding.code);
    return codes;
  }

  SessionData session;
  JobRecord job;
  std::vector<CountedKernels> kernels;
  std::optional<double> idle_share;
};

}  // namespace launchgap
