// The pattern of a recorded step: its calls, with the host's own time between them and what the GPU
// did for each.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "harness/core/pattern.h"
#include "harness/import/recording.h"

namespace launchgap::recording {

/// Which step: "12", "ProfilerStep#12", or the name alone, for the step whose duration is the
/// median of all of that name; empty: the same of PyTorch's steps or, where there are none, all of
/// the recording.
struct WantedStep {
  std::string name;  // empty: the usual
  std::optional<std::uint64_t> number;

  static WantedStep parse(std::string_view text);
};

/// From when to when, on the host's clock, and whether the GPU's times are on that clock too.
struct StepExtent {
  std::int64_t begin_ns = 0, end_ns = 0;
  bool clocks_agree = true;
};

/// What a process did for the GPU that it launched most on.
///
/// A call is done again as it was made, on the streams that it was made for. All else of the host's
/// time is a gap: the program itself, and calls that cannot be done again. A wait is for what the
/// recorder says; where it says nothing, for the work that was done last when it returned. Work
/// from before is `ahead`. Without one clock for both, waits that are not told are for the device,
/// and nothing is ahead. `origin.remarks` says what was not recorded, and how many operations it
/// concerns; `origin.incomplete`, why nothing can be concluded. Throws Error where nothing can be
/// done again, and for what check_pattern() refuses.
Pattern pattern_of(const Process& process, std::span<const Gpu> gpus, const StepExtent& step);

/// The same of a step of a session that `import` or `record` made, or of one of its files of events
/// (events/….jsonl.gz). Throws Error that says which steps there are.
Pattern pattern_of_session(const std::filesystem::path& place, const WantedStep& wanted);

}  // namespace launchgap::recording
