// A recorded process, written down call by call and kernel by kernel.
#pragma once

#include "harness/import/recording.h"

namespace launchgap::recording {

/// Two streams of a GPU, and one of another.
inline constexpr Stream kStream{0, 1, 7}, kOther{0, 1, 13}, kOtherGpu{1, 1, 7};

struct Job {
  Process process;

  Job() { process.thread("main"); }

  Job& call(std::int64_t begin,
            std::int64_t end,
            std::uint32_t correlation,
            activity::Purpose purpose = activity::Purpose::launch,
            std::string_view thread = "main",
            const char* name = "cudaLaunchKernel") {
    process.trace.calls.push_back({begin,
                                   end,
                                   correlation,
                                   process.thread(thread),
                                   process.trace.name_index(name),
                                   activity::Domain::runtime,
                                   purpose});
    return *this;
  }
  Job& wait_for_device(std::int64_t begin, std::int64_t end) {
    return call(begin, end, 0, activity::Purpose::wait, "main", "cudaDeviceSynchronize");
  }
  Job& kernel(std::int64_t begin,
              std::int64_t end,
              std::uint32_t correlation,
              const Stream& stream = {0, 1, 7},
              const char* name = "a_kernel") {
    process.trace.kernels.push_back(
        {begin, end, correlation, process.stream(stream), process.trace.name_index(name)});
    return *this;
  }
  Job& transfer(std::int64_t begin,
                std::int64_t end,
                bool fill,
                const Stream& stream = {0, 1, 7},
                std::uint32_t correlation = 0) {
    process.trace.transfers.push_back(
        {begin, end, 1024, correlation, process.stream(stream), fill});
    return *this;
  }
  Job& range(std::int64_t begin,
             std::int64_t end,
             const char* name,
             std::string_view thread = "main") {
    process.ranges.push_back({begin, end, process.thread(thread), process.trace.name_index(name)});
    return *this;
  }
  Job& graph(std::int64_t begin,
             std::int64_t end,
             std::uint32_t correlation,
             const Stream& stream = {0, 1, 7}) {
    process.trace.graphs.push_back({begin, end, correlation, 1, process.stream(stream)});
    return *this;
  }
};

/// n launches, 20 us apart: a call of 4 us, and 6 us after it began a kernel of 2 us, by a device
/// whose clock is ahead by so much.
inline Job steady(int n,
                  std::int64_t ahead = 0,
                  double drift_ppm = 0,
                  std::int64_t apart = 20'000) {
  Job job;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t at = 10'000'000'000 + apart * i;
    const std::int64_t kernel =
        at + 6'000 + ahead +
        static_cast<std::int64_t>(static_cast<double>(apart) * static_cast<double>(i) * drift_ppm *
                                  1e-6);
    job.call(at, at + 4'000, static_cast<std::uint32_t>(i + 1));
    job.kernel(kernel, kernel + 2'000, static_cast<std::uint32_t>(i + 1));
  }
  return job;
}

}  // namespace launchgap::recording
