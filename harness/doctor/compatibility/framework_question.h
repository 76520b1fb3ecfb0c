// How one question about a framework is answered, step by step; framework_answer.h is the
// interface.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/doctor/compatibility/framework_answer.h"

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
std::string name_and_capability(const InstalledGpu& gpu);
/// "450.80.02 to R470", "525.60.13 or newer".
std::string need_text(const DriverNeed& need, std::optional<int> last_branch = {});
/// What keeps a driver from serving a GPU that it is too old or too new for: a finding's sentence
/// and remedy; `driver` is its version.
Cause driver_cannot_serve(const InstalledGpu& gpu, const Version& driver, const Verdict& verdict);
/// The driver that a GPU needs in place of one that cannot serve it: "driver 570.86.10 or newer",
/// "a driver of branch R470".
std::string driver_for(const InstalledGpu& gpu);
/// "Kepler 3.5".
std::string kind_of(Capability capability);
/// Whether tensorflow-gpu was the package for GPUs, and tensorflow computed on the CPU: before 1.15
/// and at 2.0.
bool has_own_gpu_package(const Version& tensorflow);
/// With its subject; the sentence begins with a capital letter, unless with a name, and ends.
Finding finding_of(const Cause& cause, std::string subject);
/// "+cu121".
std::string tag_of(const Version& cuda);

/// Everything that the question fixes, and the answer as it grows.
class FrameworkQuestion {
 public:
  FrameworkQuestion(Requirement requirement, const Installation& installation)
      : requirement_(std::move(requirement)), installation_(installation) {}

  FrameworkAnswer answer() {
    choose_build();
    describe_needs();
    for (const InstalledGpu& gpu : installation_.gpus) answer_.gpus.push_back(judge(gpu));
    add_framework_finding();
    add_package_finding();
    settle_needs();
    answer_.findings = merged_alike(std::move(answer_.findings));
    return std::move(answer_);
  }

 private:
  bool torch() const { return requirement_.framework == "torch"; }
  bool no_driver() const {
    return installation_.driver_known && !installation_.driver && !installation_.driver_cuda;
  }

  void choose_build();
  void choose_installed();
  void choose_row();
  void choose_package();
  void describe_needs();
  void describe_libraries();
  void describe_cudnn();
  std::pair<std::optional<DriverNeed>, std::optional<int>> needed_driver() const;
  bool driver_missing_is_silent() const;
  Cause no_driver_cause(const std::string& needed) const;
  std::optional<Cause> driver_cause() const;
  std::optional<Cause> library_cause() const;
  std::optional<Cause> cudnn_cause() const;
  Verdict cudnn_verdict() const;
  Verdict driver_verdict() const;
  Verdict driver_verdict(const InstalledGpu& gpu) const;
  std::string driver_text() const;
  void settle_needs();
  GpuAnswer judge(const InstalledGpu& gpu);
  void judge_build(GpuAnswer& out);
  void add_gpu_finding(const GpuAnswer& out, const Cause& cause);
  void no_code(GpuAnswer& out, const Verdict& verdict);
  void driver_refuses(GpuAnswer& out, const Verdict& verdict);
  void describe_range(GpuAnswer& out) const;
  void works(GpuAnswer& out, const CodeVerdict& code);
  void cudnn_without_code(const GpuAnswer& out);
  std::string remedy_for(const GpuAnswer& out) const;
  void add_framework_finding();
  void add_package_finding();
  Cause cpu_only_cause() const;
  std::string pin() const;
  bool uses_system_libraries() const {
    return answer_.build && !answer_.build->brings_libraries &&
           (requirement_.extra.empty() || requirement_.extra != answer_.build->extra);
  }

  Requirement requirement_;
  const Installation& installation_;
  std::optional<Version> version_;
  bool missing_is_silent_ = true;
  bool cpu_only_ = false;
  bool installed_ = false;                 // the answer is for the package in the active Python
  const InstalledPackage* own_ = nullptr;  // that one
  std::string other_package_;  // "tensorflow 1.14", where the answer is for tensorflow-gpu
  std::optional<Cause> unknown_version_;
  std::size_t hopeless_gpus_ = 0;  // that this build cannot use whatever is done to the machine
  FrameworkAnswer answer_;
};

}  // namespace launchgap::doctor
