// Reads any bytes as a recording: whatever they are, the answer is a recording or an Error.
#include <cstdint>
#include <fcntl.h>
#include <string>
#include <unistd.h>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/import/clock_fit.h"
#include "harness/import/launch_values.h"
#include "harness/import/recording.h"
#include "harness/import/tuner_cache.h"
#include "harness/injected/raw_recording.h"

namespace {

using namespace launchgap::recording;

/// As `import` does, without the writing.
void look_at(const Recording& recording) {
  for (const Process& process : recording.processes) {
    const RecordedLaunches launches = launches_of(process, tick_ns(process));
    const ClockCheck clocks = check_clocks(process, launches);
    for (std::size_t gpu = 0; gpu < 2; ++gpu) {
      const AllocationCounts counts = count_allocations(process, gpu);
      if (counts.releases + counts.missing > counts.allocations) __builtin_trap();
      for (const RecordedCase& one :
           launch_cases(process, launches, gpu, gpu == 0, clocks.trusted()))
        if (one.begin_ns.size() > launches.launches.size()) __builtin_trap();
      const GpuGaps gaps(process, gpu, clocks.trusted());
      step_cases(process, gpu, gaps, "step");
      const Idleness idle = gaps.within(gaps.begin_ns(), gaps.end_ns());
      if (idle.idle() > idle.span_ns) __builtin_trap();
    }
    if (launches.counts.joined > launches.counts.kernels) __builtin_trap();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // In memory. SQLite follows links, so a memfd would not do.
  static const std::string path = fmt::format("/dev/shm/launchgap-fuzz-{}", getpid());
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0 || write(file, data, size) != static_cast<ssize_t>(size)) __builtin_trap();
  close(file);
  launchgap::injected::raw_checksums_are_right = true;
  try {
    if (is_tuner_cache(path)) {
      for (const TunedConfiguration& one : read_tuner_cache(path).configurations)
        if (one.failure.empty() && !(one.ns > 0)) __builtin_trap();
    } else {
      look_at(read_recording(path));
    }
  } catch (const launchgap::Error&) {
  }
  unlink(path.c_str());
  return 0;
}
