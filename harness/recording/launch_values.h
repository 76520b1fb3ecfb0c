// What is told of each launch of a recorded process: one column per metric of `recorded/launch` and
// `recorded/graph`.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "harness/core/block.h"
#include "harness/recording/launches.h"

namespace launchgap::recording {

/// The launches of one case, by the begin of their calls.
struct LaunchCase {
  bool graph = false;
  StreamState state = StreamState::unknown;
  std::vector<std::int64_t> begin_ns, end_ns;  // of the calls
  std::vector<Column> columns;                 // without those of which nothing is known

  std::string name() const;  // "recorded/launch/stream:idle"
};

/// The launches whose kernels ran on this GPU, and with `and_unknown` those without kernels too.
/// Without `clocks_agree` no time reaches from a call to a kernel, and no stream is known to be
/// idle.
std::vector<LaunchCase> launch_cases(const Process& process,
                                     const RecordedLaunches& launches,
                                     std::uint64_t gpu,
                                     bool and_unknown,
                                     bool clocks_agree);

}  // namespace launchgap::recording
