// launchgap-gpu-test: what launchgap relies on in a GPU, its driver and its libraries, on the first
// GPU that is visible. scripts/validate-gpu runs it on real ones, ctest on fakes.
//
//   launchgap-gpu-test [--traced] [GoogleTest's options]
//
//   --traced   the tests of tracing in place of the others: CUPTI must be in a process before the
//              driver is initialised, and stays there
//
// Exit codes: those of GoogleTest, and 77, with a line that says why, where there is no GPU, no
// tracing or no form of the kernels that this GPU runs.
#include <cstdio>
#include <cstdlib>
#include <malloc.h>
#include <string_view>

#include <gtest/gtest.h>

#include "harness/core/errors.h"
#include "harness/device/backend.h"
#include "tests/gpu/gpu.h"

namespace {

constexpr int kCannotBeTested = 77;

/// Removes an option from the command line and says whether it was there.
bool take_option(int& argc, char** argv, std::string_view option) {
  for (int i = 1; i < argc; ++i) {
    if (argv[i] != option) continue;
    for (int j = i; j < argc; ++j) argv[j] = argv[j + 1];
    --argc;
    return true;
  }
  return false;
}

int run(bool traced) {
  using namespace launchgap;
  if (traced) Gpu::tracer = &start_tracer("cuda", TraceLevel::all);
  if (GTEST_FLAG_GET(filter) == "*")
    GTEST_FLAG_SET(filter, traced ? "GpuTraced.*" : "-GpuTraced.*");
  // Streams that share one of the hardware's queues wait for each other; by default there are
  // eight.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  const auto gpus = probe_devices("cuda");
  if (gpus.empty()) throw NoGpuError("the driver shows none");
  Gpu::uuid = gpus.front().uuid;
  Gpu::opened().load(kernels::null_kernel);
  const int code = RUN_ALL_TESTS();
  if (!traced) Gpu::close();
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  const bool traced = take_option(argc, argv, "--traced");
  // What one test frees the next one needs: to give it back in between takes as long as the tests.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  testing::InitGoogleTest(&argc, argv);
  if (argc > 1) {
    std::fprintf(stderr, "launchgap-gpu-test: '%s' is not known\n", argv[1]);
    return static_cast<int>(launchgap::ExitCode::wrong_usage);
  }
  int code = kCannotBeTested;
  try {
    code = run(traced);
  } catch (const launchgap::TraceUnavailable& why) {
    std::fprintf(stderr, "cannot be tested: no tracing: %s\n", why.what());
  } catch (const launchgap::Unsupported& error) {
    std::fprintf(stderr, "cannot be tested: %s\n", error.what());
  } catch (const launchgap::Error& error) {
    const bool found = !launchgap::Gpu::uuid.empty();
    std::fprintf(stderr, "%s%s\n", found ? "" : "no GPU: ", error.what());
    if (found) code = static_cast<int>(error.exit_code());
  }
  std::fflush(nullptr);
  // With CUPTI in the process, destructors and exit handlers could only go wrong.
  if (launchgap::process_is_traced()) std::_Exit(code);
  return code;
}
