// Events of a Chrome trace, one at a time, put into a recording.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "harness/device/activity.h"
#include "harness/import/chrome_event.h"
#include "harness/import/recording.h"
#include "harness/import/tensorflow_rows.h"

namespace launchgap::recording {

/// Such a file is of one process; calls of another, if it has any, are of threads of the first.
class ChromeEvents {
 public:
  explicit ChromeEvents(Recording& recording)
      : recording_(recording),
        process_(recording.processes.emplace_back()),
        rows_(recording, process_) {}

  /// Throws Error for correlation numbers that cannot be told apart.
  void take(const ChromeEvent& event);
  /// Whether a call was of AMD's runtime.
  bool of_amd() const { return of_amd_; }
  /// When all is taken. Throws Error for what has nothing of a GPU.
  void finish() { rows_.finish(); }

 private:
  std::uint32_t correlation(const ChromeEvent& event);
  std::uint32_t stream(const ChromeEvent& event);
  std::uint32_t thread(const ChromeEvent& event);
  void take_kernel(const ChromeEvent& event, std::int64_t begin, std::int64_t end);
  void take_transfer(const ChromeEvent& event, std::int64_t begin, std::int64_t end, bool fill);
  void take_call(const ChromeEvent& event, std::int64_t begin, std::int64_t end);
  void take_wait(const ChromeEvent& event, std::int64_t begin, std::int64_t end);
  void take_memory(const ChromeEvent& event);

  Recording& recording_;
  Process& process_;
  std::string first_pid_;
  TensorflowRows rows_;
  bool of_amd_ = false;
};

// --- Names in Chrome traces that reading and writing share ---

/// The category of a graph that was recorded as a whole; launchgap's own.
inline constexpr std::string_view kWholeGraph = "launchgap_graph";

/// How copies between host and device begin.
inline constexpr std::string_view kCopyFromHost = "Memcpy HtoD";
inline constexpr std::string_view kCopyToHost = "Memcpy DtoH";

/// As Kineto names overheads, and back: any name with such a part.
std::string_view name_of_overhead(activity::OverheadKind kind);
activity::OverheadKind overhead_named(std::string_view name);

/// As Kineto names kinds of waits, Wait::type; "Synchronize" and 0 where it is none of them.
std::string_view name_of_wait(std::uint32_t type);
std::uint32_t wait_named(std::string_view name);

/// The name of a launch call by which tools know it: "cudaLaunchKernel" of
/// "__cudaLaunchKernel_ptsz".
std::string name_for_tools(std::string_view call);

}  // namespace launchgap::recording
