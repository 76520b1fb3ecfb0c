// What replaying a pattern adds to its calls: 10,000 launches of a kernel that does nothing on the
// host device, by the player and by a loop of as many launches. Real time is of one pattern.
#include <benchmark/benchmark.h>

#include "benchmarks/launching.h"
#include "benchmarks/pattern_player.h"
#include "harness/core/clock.h"
#include "harness/device/backend.h"
#include "kernels/kernels.h"

namespace launchgap {
namespace {

constexpr int kLaunches = 10'000;
/// So short that a wait for it is over when it is looked at.
constexpr std::int64_t kGapNs = 1;

std::unique_ptr<Device> host_device() {
  return backend_of_uuid("host").open("host", {});
}

void replay(benchmark::State& state, std::int64_t gap_ns) {
  const std::unique_ptr<Device> device = host_device();
  Pattern pattern;
  PatternOperation launch;
  launch.gap_ns = gap_ns;
  pattern.operations.assign(kLaunches, launch);
  PatternPlayer player(*device, pattern, PatternMode::eager);
  player.play();
  for (auto _ : state) player.play();
}

void loop(benchmark::State& state, std::int64_t gap_ns) {
  const std::unique_ptr<Device> device = host_device();
  const std::unique_ptr<Stream> stream = device->create_stream();
  const std::unique_ptr<Kernel> kernel = device->load(kernels::spin_kernel);
  const std::unique_ptr<Buffer> counter = device->allocate(sizeof(unsigned));
  unsigned long long nanoseconds = 0;
  void* address = counter->address();
  void* arguments[] = {&nanoseconds, &address};
  for (auto _ : state) {
    for (int i = 0; i < kLaunches; ++i) {
      if (gap_ns > 0) spin_until(now_ns() + gap_ns);
      stream->launch(*kernel, {1, 1}, arguments);
    }
    stream->wait();
  }
}

BENCHMARK_CAPTURE(replay, launches, 0)->Name("pattern/replay/launches")->UseRealTime();
BENCHMARK_CAPTURE(loop, launches, 0)->Name("pattern/loop/launches")->UseRealTime();
BENCHMARK_CAPTURE(replay, gaps, kGapNs)->Name("pattern/replay/gaps")->UseRealTime();
BENCHMARK_CAPTURE(loop, gaps, kGapNs)->Name("pattern/loop/gaps")->UseRealTime();

}  // namespace
}  // namespace launchgap
