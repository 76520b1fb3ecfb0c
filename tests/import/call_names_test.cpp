#include "harness/import/call_names.h"

#include <fstream>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "harness/device/host/recorder.h"
#include "harness/import/own_events.h"

namespace launchgap::recording {
namespace {

using activity::Domain;
using activity::Purpose;

TEST(CallNames, OfOwnCallsThatAreNotKnownSayDomainAndNumber) {
  EXPECT_EQ(name_of_own_call(Domain::driver, 652), "cuLaunchKernelEx");
  EXPECT_EQ(name_of_own_call(Domain::driver, 4242), "driver call 4242");
  EXPECT_EQ(name_of_own_call(Domain::runtime, 4242), "runtime call 4242");
}

TEST(CallNames, SayWhatACallIsFor) {
  const struct {
    const char* name;
    Purpose purpose;
    Domain domain;
  } cases[] = {
      {"cudaLaunch", Purpose::launch, Domain::runtime},
      {"cudaLaunchKernel", Purpose::launch, Domain::runtime},
      {"cudaLaunchKernel_v7000", Purpose::launch, Domain::runtime},
      {"cudaLaunchKernel_ptsz_v7000", Purpose::launch, Domain::runtime},
      {"cudaLaunchKernelExC_v11060", Purpose::launch, Domain::runtime},
      {"cudaLaunchCooperativeKernel_v9000", Purpose::launch, Domain::runtime},
      {"cudaLaunchCooperativeKernelMultiDevice", Purpose::launch, Domain::runtime},
      {"__cudaLaunchKernel", Purpose::launch, Domain::runtime},
      {"cuLaunchKernel", Purpose::launch, Domain::driver},
      {"cuLaunchKernelEx", Purpose::launch, Domain::driver},
      {"cudaGraphLaunch_v10000", Purpose::launch_graph, Domain::runtime},
      {"cuGraphLaunch_ptsz", Purpose::launch_graph, Domain::driver},
      // A host function is no work of the GPU.
      {"cudaLaunchHostFunc_v10000", Purpose::other, Domain::runtime},
      {"cuLaunchHostFunc", Purpose::other, Domain::driver},
      {"cudaDeviceSynchronize_v3020", Purpose::wait, Domain::runtime},
      {"cudaThreadSynchronize", Purpose::wait, Domain::runtime},
      {"cuStreamSynchronize", Purpose::wait, Domain::driver},
      {"cudaMemcpyAsync_v3020", Purpose::copy, Domain::runtime},
      {"cuMemcpyHtoDAsync_v2", Purpose::copy, Domain::driver},
      {"cudaMemsetAsync", Purpose::fill, Domain::runtime},
      {"cudaMalloc_v3020", Purpose::allocate, Domain::runtime},
      {"cudaHostAlloc", Purpose::allocate, Domain::runtime},
      {"cuMemAlloc_v2", Purpose::allocate, Domain::driver},
      {"cudaFree_v3020", Purpose::release, Domain::runtime},
      {"cudaFreeAsync", Purpose::release, Domain::runtime},
      {"cuMemFree_v2", Purpose::release, Domain::driver},
      {"cudaEventRecord", Purpose::other, Domain::runtime},
      {"cudaStreamWaitEvent", Purpose::other, Domain::runtime},
      {"INVALID", Purpose::other, Domain::runtime},
      {"", Purpose::other, Domain::runtime},
      {"cu", Purpose::other, Domain::runtime},
  };
  for (const auto& [name, purpose, domain] : cases) {
    EXPECT_EQ(purpose_of(name), purpose) << name;
    EXPECT_EQ(domain_of(name), domain) << name;
  }
}

TEST(CallNames, LoseTheirVersionAndNothingElse) {
  EXPECT_EQ(without_version("cudaLaunchKernel_v7000"), "cudaLaunchKernel");
  EXPECT_EQ(without_version("cudaLaunchKernel_ptsz_v7000"), "cudaLaunchKernel_ptsz");
  EXPECT_EQ(without_version("cuMemAlloc_v2"), "cuMemAlloc");
  for (const char* const name : {"cudaLaunchKernel", "cuda_variant", "call_v", "call_v2x", "_", ""})
    EXPECT_EQ(without_version(name), name);
}

TEST(CallNames, OfNumbersAreThoseOfCupti) {
  const struct {
    Domain domain;
    std::uint64_t number;
    const char* name;
  } cases[] = {
      {Domain::runtime, 13, "cudaLaunch"},
      {Domain::runtime, 211, "cudaLaunchKernel"},
      {Domain::runtime, 272, "cudaLaunchCooperativeKernelMultiDevice"},
      {Domain::runtime, 430, "cudaLaunchKernelExC"},
      {Domain::driver, 307, "cuLaunchKernel"},
      {Domain::driver, 652, "cuLaunchKernelEx"},
  };
  for (const auto& [domain, number, name] : cases) {
    EXPECT_EQ(name_of_call(domain, number), name);
    EXPECT_EQ(purpose_of(name_of_call(domain, number)), Purpose::launch) << name;
  }
  EXPECT_EQ(name_of_call(Domain::driver, 211), "") << "numbers of the runtime are not the driver's";
  EXPECT_EQ(name_of_call(Domain::runtime, ~std::uint64_t{0}), "");
}

#ifdef LAUNCHGAP_CUPTI_INCLUDE
TEST(CallNames, OfNumbersStandInCuptisHeaders) {
  const std::pair<Domain, std::string> headers[] = {{Domain::runtime, "RUNTIME_TRACE_CBID"},
                                                    {Domain::driver, "DRIVER_TRACE_CBID"}};
  for (const auto& [domain, prefix] : headers) {
    const char* const name = domain == Domain::runtime ? "runtime" : "driver";
    std::ifstream file(fmt::format("{}/cupti_{}_cbid.h", LAUNCHGAP_CUPTI_INCLUDE, name));
    std::size_t numbered = 0;
    for (std::string line; std::getline(file, line);) {
      const std::size_t begin = line.find(prefix), equals = line.find('=');
      if (begin == std::string::npos || equals == std::string::npos) continue;
      const std::size_t from = begin + prefix.size() + 1;
      const std::string theirs = line.substr(from, line.find_first_of(" =", from) - from);
      const std::string_view ours = name_of_call(domain, std::stoul(line.substr(equals + 1)));
      if (ours.empty()) continue;
      ++numbered;
      EXPECT_EQ(ours, without_version(theirs)) << line;
    }
    EXPECT_GT(numbered, 20u) << name;
  }
}
#endif

TEST(CallNames, OfAmdAreKnown) {
  EXPECT_TRUE(is_of_amd("hipLaunchKernel"));
  EXPECT_FALSE(is_of_amd("hip"));
  EXPECT_FALSE(is_of_amd("hippopotamus"));
  EXPECT_FALSE(is_of_amd("cudaLaunchKernel"));
}

TEST(CallNames, OfTheHostAreItsOwn) {
  EXPECT_EQ(name_of_own_call(Domain::host, host::kQueueLaunch), "launch");
  EXPECT_EQ(name_of_own_call(Domain::host, host::kAllocate), "allocate");
  EXPECT_EQ(name_of_own_call(Domain::host, host::kRelease), "release");
  EXPECT_EQ(name_of_own_call(Domain::host, 4242), "call 4242");
}

TEST(OwnEvents, AreThoseThatAreKept) {
  activity::Trace trace;
  // What begins at 0 is not kept, whatever its kind.
  for (const std::int64_t begin : {0, 5}) {
    trace.calls.push_back({begin, begin + 1, 1, 9, 4242, Domain::driver, Purpose::launch});
    trace.kernels.push_back({begin, begin + 2, 1, 77, trace.name_index("k")});
    trace.transfers.push_back({begin, begin + 3, 8, 1, 78, true});
    trace.graphs.push_back({begin, begin + 4, 1, 1, 77});
    trace.overheads.push_back({begin, begin + 5, 1, {}});
  }
  const auto is_kept = [](std::int64_t begin_ns, std::int64_t) { return begin_ns > 0; };
  Process process = own_events(trace, 12, is_kept);
  EXPECT_EQ(process.pid, 12u);
  ASSERT_EQ(process.events(), 5u);
  EXPECT_EQ(process.threads.at(process.trace.calls.at(0).thread), "9");
  EXPECT_EQ(process.trace.name(process.trace.calls[0].id), "driver call 4242");
  EXPECT_EQ(process.trace.name(process.trace.kernels.at(0).name), "k");
  EXPECT_EQ(process.streams.at(process.trace.kernels[0].stream).number, 77u);
  EXPECT_EQ(process.streams.at(process.trace.transfers.at(0).stream).number, 78u);
  EXPECT_EQ(process.streams.at(process.trace.graphs.at(0).stream).number, 77u);
  EXPECT_EQ(process.streams.at(0).gpu, 0u);
  keep_only(process, [](std::int64_t, std::int64_t end_ns) { return end_ns > 7; });
  EXPECT_EQ(process.events(), 3u);
}

}  // namespace
}  // namespace launchgap::recording
