// The measuring loop, and the same cases as a Google Benchmark program.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "harness/measure/benchmark.h"
#include "harness/measure/thread_watch.h"

namespace launchgap {

/// What tools are told of a case that is measured, by NVTX.
struct ToldToTools {
  std::string run = {};         // said once per process
  std::uint64_t first_key = 0;  // payload of the range of its first sample; the i-th has this and i
};

/// A block that was measured, and what the system did to the thread meanwhile.
struct MeasuredBlock {
  int index;
  const Block& samples;
  const ThreadWatch& thread;
};

/// Measures a prepared case in blocks, each of a fixed number of samples. `done` is called after
/// each block, outside all timing; where it returns false, the rest of the blocks is left out.
/// Throws what the case throws.
void measure_blocks(Case& measured,
                    const std::vector<std::string_view>& metrics,
                    Sampling sampling,
                    const ToldToTools& told,
                    const std::function<bool(const MeasuredBlock&)>& done);

/// Registers cases for Google Benchmark's own main loop and flags: each is prepared when it first
/// runs, and each repetition has its profile's samples as iterations, with manual time: Google
/// Benchmark never searches for a number of iterations.
void register_with_google_benchmark(Device& device,
                                    const std::vector<CaseName>& cases,
                                    Profile profile,
                                    std::uint64_t seed);

}  // namespace launchgap
