#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "harness/import/idleness.h"
#include "harness/import/launches.h"
#include "harness/import/readers.h"
#include "harness/import/steps.h"
#include "harness/stats/stats.h"
#include "tests/error_of.h"
#include "tests/import/text_file.h"
#include "tests/import/xplane_file.h"

namespace launchgap::recording {
namespace {

using namespace testing;
using activity::Purpose;

constexpr const char* kDetails = "regs:38 shm:0 grid:160,2,1 block:1024,1,1 occ_pct:50";

/// A launch of JAX of 2026 and its kernel, 10 µs after the call.
struct Jax {
  PlaneFile host{"/host:CPU"}, gpu{"/device:GPU:0"}, environment{"Task Environment"};

  Jax() {
    host.line("Host Threads/7",
              7,
              1'000,
              host.event("cuLaunchKernel",
                         100,
                         4'000,
                         host.stat("device_id", 0),
                         host.stat("correlation_id", 31)));
    gpu.line("Stream #13(Compute,MemcpyD2H)",
             13,
             2'000,
             gpu.event("loop_add_fusion",
                       9'100,
                       2'500,
                       gpu.stat("correlation_id", 31),
                       gpu.stat("context_id", "$$1"),
                       gpu.stat("hlo_op", "add.1"),
                       gpu.reference("kernel_details", kDetails)));
  }
  std::string text() const { return host.text() + gpu.text() + environment.text(); }
};

struct XPlane : TextFile {
  Recording read(const std::string& content) const { return read_xplane(file(content)); }
  std::string refusal(const std::string& content) const {
    return error_of([&] { read(content); });
  }
  static const Process& process(const Recording& recording) {
    EXPECT_EQ(recording.processes.size(), 1u);
    return recording.processes.front();
  }
  static std::vector<std::pair<std::string, std::uint64_t>> left_out(const Recording& recording) {
    std::vector<std::pair<std::string, std::uint64_t>> all;
    for (const LeftOut& one : recording.left_out) all.emplace_back(one.what, one.count);
    return all;
  }
};

TEST_F(XPlane, OfJaxHasCallsAndKernelsOnOneClock) {
  const Recording recording = read(Jax().text());
  EXPECT_EQ(recording.recorder, "the profiler of TensorFlow and JAX");
  EXPECT_EQ(recording.form, "XPlane");
  EXPECT_EQ(recording.clock, "from when the profile began");
  const Process& own = process(recording);
  ASSERT_EQ(own.trace.calls.size(), 1u);
  ASSERT_EQ(own.trace.kernels.size(), 1u);
  const activity::Call& call = own.trace.calls[0];
  const activity::KernelRun& kernel = own.trace.kernels[0];
  EXPECT_EQ(call.begin_ns, 1'100);
  EXPECT_EQ(call.end_ns, 5'100);
  EXPECT_EQ(call.purpose, Purpose::launch);
  EXPECT_EQ(call.domain, activity::Domain::driver);
  EXPECT_EQ(own.trace.name(call.id), "cuLaunchKernel");
  EXPECT_THAT(own.threads, ElementsAre("Host Threads/7"));
  EXPECT_EQ(kernel.begin_ns, 11'100) << "by the line of the GPU, which has a time of its own";
  EXPECT_EQ(kernel.end_ns, 13'600);
  EXPECT_EQ(kernel.correlation, call.correlation);
  EXPECT_EQ(own.trace.name(kernel.name), "loop_add_fusion");
  EXPECT_THAT(kernel.grid, ElementsAre(160, 2, 1));
  EXPECT_THAT(kernel.block, ElementsAre(1024, 1, 1));
  EXPECT_THAT(own.streams, ElementsAre(Stream{0, 1, 13}));
}

TEST_F(XPlane, CountsFromTheProfilesBegin) {
  constexpr std::uint64_t kBegan = 1'780'000'000'000'000'000;
  Jax jax;
  jax.environment.own(jax.environment.stat("profile_start_time", kBegan));
  EXPECT_EQ(read(jax.text()).clock, "Unix time");
  EXPECT_EQ(process(read(jax.text())).trace.calls[0].begin_ns, 1'780'000'000'000'001'100);
  // Lines with dates of their own need none.
  Jax dated;
  dated.environment.own(dated.environment.stat("profile_start_time", kBegan));
  dated.host.line("Host Threads/8",
                  8,
                  kBegan,
                  dated.host.event("cuLaunchKernel", 5, 5, dated.host.stat("correlation_id", 32)));
  EXPECT_EQ(process(read(dated.text())).trace.calls[1].begin_ns, 1'780'000'000'000'000'005);
  EXPECT_EQ(process(read(dated.text())).trace.calls[0].begin_ns, 1'100);
}

TEST_F(XPlane, TellsWhatAGpuIs) {
  Jax jax;
  PlaneFile& gpu = jax.gpu;
  gpu.own(gpu.stat("compute_cap_major", 9)).own(gpu.stat("compute_cap_minor", 0));
  gpu.own(gpu.stat("memory_size", 85'000'000'000)).own(gpu.stat("device_vendor", "Nvidia"));
  const Recording recording = read(jax.text());
  ASSERT_EQ(recording.gpus.size(), 1u);
  EXPECT_EQ(recording.gpus[0].number, 0u);
  EXPECT_EQ(recording.gpus[0].compute_capability, "9.0");
  EXPECT_EQ(recording.gpus[0].memory_bytes, 85'000'000'000u);
  EXPECT_EQ(recording.gpus[0].name, "");
  PlaneFile other("/device:GPU:0");
  other.own(other.stat("device_vendor", "AMD"));
  EXPECT_EQ(refusal(jax.host.text() + other.text()),
            "it is of a GPU of AMD (device_vendor of /device:GPU:0): launchgap reads those of "
            "NVIDIA's");
}

TEST_F(XPlane, OtherLinesOfAGpuAreDerivedFromThoseOfStreams) {
  Jax jax;
  for (const char* const name :
       {"TensorFlow Ops", "TensorFlow Name Scope", "Framework Ops", "XLA Modules", "Steps", ""})
    jax.gpu.line(name, 99, 0, jax.gpu.event("loop_add_fusion", 1, 1));
  EXPECT_EQ(process(read(jax.text())).trace.size(), 2u);
}

TEST_F(XPlane, CallsAreWhatTheySayOrWhatTheyStarted) {
  PlaneFile host("/host:CPU"), gpu("/device:GPU:2");
  const auto call = [&](const char* name, std::uint64_t number, auto... stats) {
    return host.event(name, 10 * number, 5, host.stat("correlation_id", number), stats...);
  };
  const auto work = [&](const char* name, std::uint64_t number, auto... stats) {
    return gpu.event(name, 10 * number + 7, 1, gpu.stat("correlation_id", number), stats...);
  };
  host.line("main",
            5,
            0,
            call("a_kernel", 1, host.stat("kernel_details", kDetails)),
            call("a_kernel", 2),
            call("MemcpyH2D", 3),
            call("some_copy", 4),
            call("some_fill", 5),
            call("cuGraphLaunch (CudaGraph:7)", 6),
            call("cuStreamSynchronize", 7),
            call("lost_kernel", 8),
            call("cuMemAlloc_v2", 9),
            call("MemoryFree", 10),
            call("x", 11, host.stat("memcpy_details", "size:5")),
            call("y", 12, host.stat("Memset_details", "num_bytes:5")),
            host.event("cuLaunchKernel", 500, 5));
  gpu.line("Stream #20(Compute)",
           20,
           0,
           work("a_kernel", 1),
           work("a_kernel", 2),
           work("MemcpyH2D", 3, gpu.stat("memcpy_details", "kind_src:pageable size:112 dest:4")),
           work("m", 4, gpu.stat("memcpy_details", "size:9")),
           work("Memset", 5, gpu.stat("Memset_details", "kind:device num_bytes:64 async:1")),
           work("a_kernel", 6),
           work("another_kernel", 6),
           work("MemoryAlloc", 9, gpu.stat("memalloc_details", "kind:device num_bytes:4")),
           work("CudaGraphExec:3", 13));
  const Recording recording = read(host.text() + gpu.text());
  const activity::Trace& trace = process(recording).trace;
  std::vector<std::pair<std::string, Purpose>> calls;
  for (const activity::Call& one : trace.calls) calls.emplace_back(trace.name(one.id), one.purpose);
  EXPECT_THAT(calls,
              ElementsAre(Pair("cuLaunchKernel", Purpose::launch),
                          Pair("cuLaunchKernel", Purpose::launch),
                          Pair("MemcpyH2D", Purpose::copy),
                          Pair("some_copy", Purpose::copy),
                          Pair("some_fill", Purpose::fill),
                          Pair("cuGraphLaunch", Purpose::launch_graph),
                          Pair("cuStreamSynchronize", Purpose::wait),
                          Pair("cuLaunchKernel", Purpose::launch),
                          Pair("cuMemAlloc", Purpose::allocate),
                          Pair("MemoryFree", Purpose::release),
                          Pair("x", Purpose::copy),
                          Pair("y", Purpose::fill)));
  ASSERT_EQ(trace.kernels.size(), 4u);
  EXPECT_THAT(trace.kernels[0].grid, ElementsAre(0, 0, 0)) << "not told";
  ASSERT_EQ(trace.transfers.size(), 3u);
  EXPECT_EQ(trace.transfers[0].bytes, 112u);
  EXPECT_EQ(trace.transfers[1].bytes, 9u);
  EXPECT_FALSE(trace.transfers[1].fill);
  EXPECT_EQ(trace.transfers[2].bytes, 64u);
  EXPECT_TRUE(trace.transfers[2].fill);
  EXPECT_EQ(trace.graphs.size(), 1u);
  EXPECT_THAT(process(recording).threads, ElementsAre("main/5"));
  Jax amd;
  amd.host.line(
      "x", 1, 0, amd.host.event("hipLaunchKernel", 1, 1, amd.host.stat("correlation_id", 1)));
  EXPECT_THAT(refusal(amd.text()), StartsWith("it is of an AMD GPU (its calls begin with hip)"));
}

TEST_F(XPlane, AllocationsAreThoseOfGpus) {
  PlaneFile host("/host:CPU"), gpu("/device:GPU:4");
  const auto event =
      [&](const char* name, const char* allocator, std::uint64_t address, std::uint64_t bytes) {
        return host.event(name,
                          address,
                          0,
                          host.stat("allocator_name", allocator),
                          host.stat("addr", address),
                          host.stat("allocation_bytes", bytes),
                          host.stat("requested_bytes", 3));
      };
  host.line("main",
            1,
            1'000,
            event("MemoryAllocation", "GPU_4_bfc", 64, 256),
            event("MemoryAllocation", "gpu_host_bfc", 64, 256),
            event("MemoryDeallocation", "cpu", 64, 256),
            event("MemoryAllocation", "gpu_async_12", 65, 512),
            event("MemoryDeallocation", "GPU_4_bfc", 64, 256),
            event("MemoryAllocation", "GPU_4_bfc", 64, 0),
            event("MemoryAllocation", "GPU_4_bfc", 64, std::uint64_t{1} << 51),
            event("MemoryAllocation", "GPU_4000_bfc", 64, 256));
  const Recording recording = read(host.text() + gpu.text());
  const auto action = AllocationAction::allocate;
  EXPECT_THAT(process(recording).allocations,
              ElementsAre(Allocation{1'064, 64, 256, 4, 0, 0, action},
                          Allocation{1'065, 65, 512, 12, 0, 0, action},
                          Allocation{1'064, 64, 256, 4, 0, 0, AllocationAction::release}));
  EXPECT_THAT(left_out(recording),
              UnorderedElementsAre(Pair("allocations and releases of memory of the host", 2),
                                   Pair("allocations without an address and a size that can be", 2),
                                   Pair("allocations of a GPU that cannot be", 1)));
}

TEST_F(XPlane, StepsAreGroupsThatLaunchSomething) {
  Jax jax;
  PlaneFile& host = jax.host;
  const auto event =
      [&](const char* name, std::uint64_t begin, std::uint64_t group, auto... stats) {
        return host.event(name, begin, 100, host.stat("group_id", group), stats...);
      };
  host.line("python",
            1,
            0,
            event("iterator", 50, 3),
            event("train", 1'000, 7),
            event("train", 3'000, 8),
            event("a_kernel", 3'500, 8, host.stat("correlation_id", 8)));
  host.line("worker", 2, 0, event("cuLaunchKernel", 2'000, 7, host.stat("correlation_id", 7)));
  const std::vector<Step> steps = steps_of(process(read(jax.text())), "ProfilerStep");
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].number, 7u);
  EXPECT_EQ(steps[0].begin_ns, 1'000);
  EXPECT_EQ(steps[0].end_ns, 2'100);
  EXPECT_EQ(steps[1].number, 8u);
  EXPECT_EQ(steps[1].end_ns, 3'600);
  // What the program says of its steps comes first.
  host.line("python", 1, 0, host.event("train", 9'000, 50, host.stat("step_num", 12)));
  const std::vector<Step> told = steps_of(process(read(jax.text())), "ProfilerStep");
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].number, 12u);
  EXPECT_EQ(told[0].begin_ns, 9'000);
}

TEST_F(XPlane, OfCopiesAloneNoIdleTimeIsKnown) {
  Jax jax;
  PlaneFile other("/device:GPU:1");
  other.line("Stream #5(MemcpyH2D)",
             5,
             2'000,
             other.event("MemcpyH2D", 1, 5),
             other.event("MemcpyH2D", 100, 5));
  const Recording recording = read(jax.text() + other.text());
  EXPECT_THAT(recording.remarks,
              ElementsAre("GPU 1 has copies and no kernels: whether it was idle is not known"));
  EXPECT_FALSE(GpuGaps(process(recording), 0, true).empty());
  EXPECT_TRUE(GpuGaps(process(recording), 1, true).empty());
}

TEST_F(XPlane, WhatCannotBeIsLeftOut) {
  Jax jax;
  const std::string most = number_field(2, ~std::uint64_t{0});
  const std::string unnamed = number_field(2, 5'000) + number_field(3, 1'000);
  jax.gpu.line("Stream #13", 13, 1'000, unnamed, jax.gpu.event("a_kernel", 5, 0));
  jax.gpu.line("Stream #14", 14, ~std::uint64_t{0}, jax.gpu.event("a_kernel", 0, 1));
  jax.host.line("t", 1, 5, jax.host.event("a", 0, 0, jax.host.stat("group_id", 1)) + most);
  EXPECT_THAT(left_out(read(jax.text())),
              UnorderedElementsAre(Pair("works of a GPU without a name or a duration", 2),
                                   Pair("events without a time that can be", 2)));
  // Of so many events, and so of no time.
  Jax sums;
  sums.gpu.line("Stream #13", 13, 1'000, sums.gpu.event("a_kernel", 0, 5) + number_field(5, 9));
  EXPECT_EQ(process(read(sums.text())).trace.kernels.size(), 1u);
}

TEST_F(XPlane, UnknownFieldsArePassedOver) {
  const std::string unknown = number_field(900, 1) + bytes_field(901, "x") + varint(902 << 3 | 1) +
                              "12345678" + varint(903 << 3 | 5) + "1234";
  // A name that is a number is unknown too.
  const std::string wrong = number_field(2, 5);
  const std::string plane = Jax().gpu.text();
  std::string inner = plane.substr(1 + varint(plane.size() - 3).size());
  const Recording recording =
      read(Jax().host.text() + bytes_field(1, wrong + inner + unknown) + unknown);
  EXPECT_EQ(process(recording).trace.kernels.size(), 1u);
}

TEST_F(XPlane, WithoutAGpuHasNothing) {
  PlaneFile host("/host:CPU"), tpu("/device:TPU:0");
  EXPECT_THAT(refusal(host.text()), StartsWith("it is an XPlane of the host alone"));
  EXPECT_THAT(refusal(host.text() + tpu.text()), StartsWith("it is an XPlane of a TPU"));
}

TEST_F(XPlane, ThatIsDamagedNamesTheByte) {
  const std::string whole = Jax().text();
  EXPECT_EQ(refusal(whole.substr(0, whole.size() - 1)),
            fmt::format("it is cut off or damaged: it ends at byte {}, in the middle of a field",
                        whole.size() - 1));
  EXPECT_THAT(refusal(bytes_field(1, "\x12\x20/host:CPU")),
              Eq("it is cut off or damaged: at byte 4 begin 32 bytes, and 9 are left of their "
                 "message"));
  EXPECT_THAT(refusal(bytes_field(1, "\x0B")),
              Eq("it is damaged: it has a group at byte 2, and XSpace has none"));
  EXPECT_THAT(refusal(bytes_field(1, "\x0F")),
              Eq("it is damaged: no field of a protobuf begins as byte 2 does"));
  EXPECT_THAT(refusal(bytes_field(1, std::string("\x02\x00", 2))),
              Eq("it is damaged: no field of a protobuf begins as byte 2 does"));
  EXPECT_THAT(refusal(bytes_field(1, "\x08\x80")),
              Eq("it is cut off or damaged: a number ends too early at byte 4"));
  EXPECT_THAT(refusal(bytes_field(1, "\x08" + std::string(9, '\xFF') + "\x02")),
              Eq("it is damaged: the number at byte 12 has more than 64 bits"));
  EXPECT_THAT(refusal("\x0A" + std::string(10, '\xFF') + "\x01"),
              Eq("it is damaged: the number at byte 10 has more than 64 bits"));
  EXPECT_THAT(refusal("\x0A" + varint(std::uint64_t{1} << 40)),
              StartsWith("its plane at byte 7 has 1099511627776 bytes, and launchgap reads up to 1 "
                         "GiB"));
  EXPECT_THAT(refusal("\x0A" + varint(1'000'000'000) + "\x12\x09/host:CPU"),
              HasSubstr("in the middle of a field"));
  EXPECT_NO_THROW(read(bytes_field(1, "\x08" + std::string(9, '\xFF') + "\x01") + Jax().text()))
      << "64 bits are no more than 64";
}

// --- What TensorFlow 2 recorded of BERT on eight V100; tests/recordings/README.md ---

struct Bert : Test {
  static const Recording& recording() {
    static const Recording read = read_recording(std::filesystem::path(LAUNCHGAP_SOURCE_FOLDER) /
                                                 "tests/recordings/v100-bert.xplane.pb.gz");
    return read;
  }
  static const Process& process() { return recording().processes.front(); }
};

TEST_F(Bert, HasItsLaunchesOnTwoGpus) {
  EXPECT_EQ(recording().form, "XPlane, compressed");
  ASSERT_EQ(recording().gpus.size(), 8u);
  EXPECT_EQ(recording().gpus[4].compute_capability, "7.0");
  EXPECT_EQ(recording().gpus[4].memory_bytes, 16'945'512'448u);
  const RecordedLaunches launches = launches_of(process(), tick_ns(process()));
  EXPECT_EQ(launches.counts.launches, 1330u);
  EXPECT_EQ(launches.counts.kernels, 1330u);
  EXPECT_EQ(launches.counts.joined, 1330u);
  const struct {
    std::uint64_t gpu;
    std::size_t idle, busy;
    double call_ns, launch_ns, idle_share, span_ms;
  } expected[] = {{4, 36, 629, 7'883, 11'260.5, 0.2514, 19.87},
                  {6, 39, 626, 8'123, 12'200, 0.3008, 21.31}};
  for (const auto& own : expected) {
    std::size_t idle = 0, busy = 0;
    std::vector<std::int64_t> calls, to_kernel;
    for (const RecordedLaunch& launch : launches.launches) {
      if (process().streams[*launch.stream].gpu != own.gpu) continue;
      const activity::Call& call = process().trace.calls[launch.call];
      calls.push_back(call.end_ns - call.begin_ns);
      ++(launch.state == StreamState::idle ? idle : busy);
      if (launch.state == StreamState::idle) to_kernel.push_back(launch.begin_ns - call.begin_ns);
    }
    EXPECT_EQ(calls.size(), 665u);
    EXPECT_EQ(idle, own.idle);
    EXPECT_EQ(busy, own.busy);
    EXPECT_EQ(stats::quantile_in_place(calls, 0.5), own.call_ns);
    EXPECT_EQ(stats::quantile_in_place(to_kernel, 0.5), own.launch_ns);
    // The first work is a copy, long before the first kernel.
    std::int64_t first_ns = std::numeric_limits<std::int64_t>::max();
    for (const activity::KernelRun& kernel : process().trace.kernels) {
      if (process().streams[kernel.stream].gpu == own.gpu)
        first_ns = std::min(first_ns, kernel.begin_ns);
    }
    const GpuGaps gaps(process(), own.gpu, true);
    const Idleness idleness = gaps.within(first_ns, gaps.end_ns());
    EXPECT_NEAR(static_cast<double>(idleness.span_ns) / 1e6, own.span_ms, 0.005);
    EXPECT_NEAR(static_cast<double>(idleness.idle()) / static_cast<double>(idleness.span_ns),
                own.idle_share,
                0.00005);
  }
}

TEST_F(Bert, HasItsAllocations) {
  const AllocationCounts counts = count_allocations(process(), 4);
  EXPECT_EQ(counts.allocations, 761u);
  EXPECT_EQ(counts.releases, 208u);
  EXPECT_EQ(counts.missing, 0u);
  EXPECT_EQ(counts.most_live_bytes, 2'195'516'672u);
  EXPECT_EQ(steps_of(process(), "ProfilerStep").size(), 1u);
}

}  // namespace
}  // namespace launchgap::recording
