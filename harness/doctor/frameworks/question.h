// How one question about a framework is answered, step by step; frameworks.h is the face.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "harness/doctor/frameworks/frameworks.h"

namespace launchgap::doctor {

/// A finding without its subject.
struct Cause {
  std::string code;
  Severity severity = Severity::prevents;
  std::string sentence;
  std::vector<std::string> evidence;
  std::string remedy;
  std::vector<std::string> symptoms;
};

std::vector<std::string> evidence_of(const Verdict& verdict);
/// "Tesla K40m (3.5)".
std::string name_and_capability(const SetupGpu& gpu);
/// "450.80.02 or newer, up to branch R470".
std::string need_text(const DriverNeed& need, std::optional<int> last_branch = {});
/// "+cu121".
std::string tag_of(const Version& cuda);

/// Everything that the question fixes, and the answer as it grows.
class Question {
 public:
  Question(Requirement requirement, const Setup& setup)
      : requirement_(std::move(requirement)), setup_(setup) {}

  Answer answer() {
    choose_build();
    describe_needs();
    for (const SetupGpu& gpu : setup_.gpus) answer_.gpus.push_back(judge(gpu));
    add_framework_finding();
    settle_needs();
    return std::move(answer_);
  }

 private:
  bool torch() const { return requirement_.framework == "torch"; }
  bool no_driver() const { return setup_.driver_known && !setup_.driver && !setup_.driver_cuda; }

  void choose_build();
  void choose_installed();
  void choose_row();
  void describe_needs();
  void describe_libraries();
  void describe_cudnn();
  std::optional<Cause> driver_cause() const;
  std::optional<Cause> library_cause() const;
  std::optional<Cause> cudnn_cause() const;
  Verdict cudnn_verdict() const;
  Verdict driver_verdict() const;
  std::string driver_text() const;
  void settle_needs();
  GpuAnswer judge(const SetupGpu& gpu);
  void judge_build(GpuAnswer& out);
  void add_gpu_finding(const GpuAnswer& out, const Cause& cause);
  void no_code(GpuAnswer& out, const Verdict& verdict);
  void dropped(GpuAnswer& out, const Verdict& verdict);
  void driver_before_gpu(GpuAnswer& out, const Verdict& verdict);
  void works(GpuAnswer& out, const CodeVerdict& code);
  void cudnn_without_code(const GpuAnswer& out);
  std::string remedy_for(const GpuAnswer& out) const;
  void add_framework_finding();
  bool uses_system_libraries() const {
    return answer_.build && !answer_.build->brings_libraries &&
           (requirement_.extra.empty() || requirement_.extra != answer_.build->extra);
  }

  Requirement requirement_;
  const Setup& setup_;
  std::optional<Version> version_;
  bool missing_is_silent_ = true;
  bool cpu_only_ = false;
  bool installed_ = false;  // the answer is for the package in the active Python
  std::optional<Cause> unknown_version_;
  std::size_t hopeless_gpus_ = 0;  // that this build cannot use whatever is done to the machine
  Answer answer_;
};

}  // namespace launchgap::doctor
