// A process configuration: what a worker's whole process works for, and with which settings.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>

namespace launchgap {

/// How much a process records: nothing; the calls that launch and allocate; kernels and overheads
/// as well; or everything.
enum class TraceLevel { none, launches, kernels, all };
std::string_view name_of(TraceLevel level);

/// How a thread waits for the GPU.
enum class WaitMode { spin, yield, block };
std::string_view name_of(WaitMode wait);

/// When kernels are brought to the device.
enum class CodeLoading {
  unchanged,     // as the environment says
  lazy,          // when a kernel is first used
  eager,         // with its module
  jit_uncached,  // compiled by the driver from PTX in this process
  jit_warming,   // the same, and left for later processes in a folder
  jit_cached     // compiled by an earlier process, which was `jit_warming`
};
std::string_view name_of(CodeLoading loading);

/// Read once from its text, which records and tables have in the column `process_config`: the
/// family of benchmarks, and each setting that is not the usual one. "launch", "launch+wait=block",
/// "launch+trace_level=kernels".
class ProcessConfig {
 public:
  ProcessConfig() = default;
  // NOLINTBEGIN(google-explicit-constructor): its text is its value
  ProcessConfig(std::string text);
  ProcessConfig(const char* text) : ProcessConfig(std::string(text)) {}
  // NOLINTEND(google-explicit-constructor)

  const std::string& text() const { return text_; }
  const std::string& family() const { return family_; }
  /// No setting differs from the usual one.
  bool usual() const { return text_ == family_; }

  std::optional<WaitMode> wait() const { return wait_; }
  std::optional<CodeLoading> loading() const { return loading_; }
  /// Code of the host's libraries that is not what they choose by themselves: "haswell", or "own"
  /// for that (harness/device/code_levels.h).
  const std::optional<std::string>& code() const { return code_; }
  /// How many GPUs the process sees: its own, and those that another one works on meanwhile.
  static constexpr int kAllGpus = 1 << 20;
  int gpus() const { return gpus_; }
  /// It sees all of the session.
  bool sees_all_gpus() const { return gpus_ == kAllGpus; }
  /// Where only what shows the observer effect runs: at which level of tracing. Such processes have
  /// equal content, and are compared with each other and with nothing else.
  std::optional<TraceLevel> observer() const { return observer_; }
  /// The same, also at a level that this launchgap does not know.
  bool is_observer() const { return is_observer_; }
  /// How much a traced process of this configuration records.
  TraceLevel trace_level() const { return observer_.value_or(TraceLevel::all); }
  /// The first setting that this launchgap does not know, "wait=sleep". Records may have one, since
  /// a later launchgap may have written them; a process cannot be made from it.
  const std::string& unknown() const { return unknown_; }

  /// With one more setting. Throws Error unless there is such a setting and value.
  ProcessConfig with(std::string_view name, std::string_view value) const;
  ProcessConfig with(CodeLoading loading) const { return with("loading", name_of(loading)); }
  ProcessConfig with_observer(TraceLevel level) const {
    return with("trace_level", name_of(level));
  }

  bool operator==(const ProcessConfig& other) const { return text_ == other.text_; }
  std::strong_ordering operator<=>(const ProcessConfig& other) const {
    return text_ <=> other.text_;
  }

 private:
  void take(std::string_view setting);

  std::string text_, family_, unknown_;
  std::optional<WaitMode> wait_;
  std::optional<CodeLoading> loading_;
  std::optional<std::string> code_;
  std::optional<TraceLevel> observer_;
  int gpus_ = 1;
  bool is_observer_ = false;
};

}  // namespace launchgap
