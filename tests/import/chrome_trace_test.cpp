#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "harness/import/chrome_events.h"
#include "harness/import/compressed_text.h"
#include "harness/import/readers.h"
#include "tests/error_of.h"
#include "tests/import/text_file.h"

namespace launchgap::recording {
namespace {

using namespace testing;
using activity::Domain;
using activity::OverheadKind;
using activity::Purpose;

/// From 1 to 3 us, of thread 6 of process 5.
std::string slice(const std::string& category,
                  const std::string& name,
                  const std::string& arguments = "") {
  return fmt::format(
      R"({{"ph":"X","cat":"{}","name":"{}","pid":5,"tid":6,"ts":1,"dur":2,"args":{{{}}}}})",
      category,
      name,
      arguments);
}
/// Of what a process's allocator gave or got back.
std::string memory(const std::string& arguments, const std::string& time = "1") {
  return fmt::format(
      R"({{"ph":"i","cat":"cpu_instant_event","name":"[memory]","pid":5,"tid":6,"ts":{},"args":{{{}}}}})",
      time,
      arguments);
}

struct ChromeTrace : TextFile {
  Recording read(const std::string& json) const { return read_chrome_trace(file(json)); }
  Recording events(const std::string& list) const { return read("[" + list + "]"); }
  std::string refusal(const std::string& json) const {
    return error_of([&] { read(json); });
  }
  static std::vector<std::pair<std::string, std::uint64_t>> left_out(const Recording& recording) {
    std::vector<std::pair<std::string, std::uint64_t>> all;
    for (const LeftOut& one : recording.left_out) all.emplace_back(one.what, one.count);
    return all;
  }
};

TEST_F(ChromeTrace, ACorrelationThatIsNoNumberIsLeftOutAndNoneIsNot) {
  const auto read_call = [&](const std::string& arguments) {
    return events(slice("cuda_runtime", "cudaLaunchKernel", arguments));
  };
  for (const char* const good : {R"("correlation":7)", R"("correlation":"7")", ""})
    EXPECT_TRUE(read_call(good).left_out.empty()) << good;
  const Recording recording = read_call(R"("correlation":"seven")");
  EXPECT_THAT(left_out(recording), ElementsAre(Pair("correlation numbers that are none", 1)));
  EXPECT_EQ(recording.processes[0].trace.calls.at(0).correlation, 0u);
}

TEST_F(ChromeTrace, CopiesFromTheHostAreToldByTheirNames) {
  for (const auto& [name, from_host] : {std::pair("Memcpy HtoD (Pinned -> Device)", true),
                                        std::pair("Memcpy DtoH (Device -> Pinned)", false)}) {
    EXPECT_EQ(events(slice("gpu_memcpy", name, "")).processes[0].trace.transfers.at(0).from_host,
              from_host);
  }
}

TEST_F(ChromeTrace, LoadingOfDataIsARangeThoughItIsAnOperator) {
  const Recording recording =
      events(slice("cpu_op", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "") +
             "," + slice("cpu_op", "aten::mm", ""));
  ASSERT_EQ(recording.processes[0].ranges.size(), 1u);
}

TEST_F(ChromeTrace, HowManyRanksAJobHasIsTaken) {
  const Recording recording =
      read(R"({"distributedInfo": {"rank": 3, "world_size": 8}, "traceEvents": []})");
  EXPECT_EQ(recording.processes[0].rank, 3);
  EXPECT_EQ(recording.processes[0].ranks, 8);
}

TEST_F(ChromeTrace, CategoriesOfAllYearsAreTaken) {
  const std::string work = R"("device":1,"context":2,"stream":7,"correlation":9,"bytes":64)";
  const activity::Transfer copy{1000, 3000, 64, 9, 0, false}, fill{1000, 3000, 64, 9, 0, true};
  for (const char* const category : {"kernel", "Kernel"}) {
    const Recording recording =
        events(slice(category, "k", work + R"(,"grid":[2,3,4,99],"block":[5,6,"x"])"));
    EXPECT_THAT(recording.processes[0].trace.kernels,
                ElementsAre(activity::KernelRun{1000, 3000, 9, 0, 0, {2, 3, 4}, {5, 6, 1}}));
    EXPECT_THAT(recording.processes[0].trace.names(), ElementsAre("k"));
    EXPECT_THAT(recording.processes[0].streams, ElementsAre(Stream{1, 2, 7}));
  }
  for (const char* const category : {"gpu_memcpy", "Memcpy"})
    EXPECT_THAT(events(slice(category, "c", work)).processes[0].trace.transfers, ElementsAre(copy));
  for (const char* const category : {"gpu_memset", "Memset"})
    EXPECT_THAT(events(slice(category, "c", work)).processes[0].trace.transfers, ElementsAre(fill));
  for (const char* const category : {"cuda_runtime", "cuda_driver", "Runtime", "Driver"}) {
    const auto calls = [&](const std::string& name) {
      return events(slice(category, name, work)).processes[0].trace.calls;
    };
    // The name alone tells whose call it is.
    EXPECT_THAT(calls("cudaLaunchKernel_v7000"),
                ElementsAre(activity::Call{1000, 3000, 9, 0, 0, Domain::runtime, Purpose::launch}));
    EXPECT_THAT(calls("cuMemFree"),
                ElementsAre(activity::Call{1000, 3000, 9, 0, 0, Domain::driver, Purpose::release}));
  }
  EXPECT_THAT(events(slice("launchgap_graph", "g", work)).processes[0].trace.graphs,
              ElementsAre(activity::Graph{1000, 3000, 9, 0, 0}));
  EXPECT_THAT(events(slice("cuda_sync", "s", work)).processes[0].trace.waits,
              ElementsAre(activity::Wait{1000, 3000, 9, 0}));
  EXPECT_THAT(events(slice("overhead", "Buffer Flush", work)).processes[0].trace.overheads,
              ElementsAre(activity::Overhead{1000, 3000, 9, OverheadKind::buffer_flush}));
  EXPECT_EQ(events(slice("cpu_op", "aten::add")).processes[0].events(), 0u);
}

TEST_F(ChromeTrace, StepsAreRangesUnlessTheyAreOfTheGpu) {
  const Recording recording = events(
      slice("user_annotation", "mine") + "," + slice("cpu_op", "ProfilerStep#7") + "," +
      slice("gpu_user_annotation", "ProfilerStep#7") + "," + slice("gpu_user_annotation", "mine"));
  const Process& process = recording.processes[0];
  ASSERT_EQ(process.ranges.size(), 2u);
  EXPECT_EQ(process.ranges[0].begin_ns, 1000);
  EXPECT_EQ(process.ranges[0].end_ns, 3000);
  EXPECT_EQ(process.trace.name(process.ranges[0].name), "mine");
  EXPECT_EQ(process.trace.name(process.ranges[1].name), "ProfilerStep#7");
  EXPECT_EQ(process.events(), 2u);
}

TEST_F(ChromeTrace, CallsOfPythonAreCounted) {
  const std::string call = slice("python_function", "f");
  EXPECT_EQ(events(call + "," + call + "," + slice("cpu_op", "f")).processes[0].python_calls, 2u);
}

TEST_F(ChromeTrace, OnlyWholeSlicesWithTimesThatCanBeAreTaken) {
  const auto call = [](const std::string& phase, const std::string& time) {
    return fmt::format(R"({{"ph":"{}","cat":"cuda_runtime","name":"f",{}}})", phase, time);
  };
  const Recording recording =
      events(call("B", R"("ts":1,"dur":2)") + "," + call("X", R"("ts":1)") + "," +
             call("X", R"("dur":2)") + "," + call("X", R"("ts":9223372036854775,"dur":0.807)") +
             "," + call("X", R"("ts":9223372036854775,"dur":0.808)"));
  EXPECT_EQ(recording.processes[0].trace.calls.size(), 1u);
  EXPECT_THAT(left_out(recording), ElementsAre(Pair("events without a time that can be", 3)));
}

TEST_F(ChromeTrace, ThreadsOfAnotherProcessAreOfTheFirst) {
  const auto call = [](int pid, int tid) {
    return fmt::format(
        R"({{"ph":"X","cat":"cuda_runtime","name":"f","ts":1,"dur":2,"pid":{},"tid":{}}})",
        pid,
        tid);
  };
  const Recording recording = events(call(5, 6) + "," + call(7, 6) + "," + call(5, 8));
  ASSERT_EQ(recording.processes.size(), 1u);
  EXPECT_EQ(recording.processes[0].pid, 5u);
  EXPECT_THAT(recording.processes[0].threads, ElementsAre("6", "7/6", "8"));
}

TEST_F(ChromeTrace, WhatNamesNoGpuIsOfThatOfItsRow) {
  const Recording recording =
      events(slice("kernel", "k", R"("stream":7)") + "," + slice("kernel", "k", R"("device":1)") +
             R"(,{"ph":"X","cat":"kernel","name":"k","ts":1,"dur":2})");
  EXPECT_THAT(recording.processes[0].streams,
              ElementsAre(Stream{5, 0, 7}, Stream{1, 0, 0}, Stream{0, 0, 0}));
}

TEST_F(ChromeTrace, AllocationsAreThoseOfGpus) {
  const std::string of_gpu = R"("Addr":4096,"Device Id":1,"Device Type":1,"Bytes":)";
  const Recording recording = events(memory(of_gpu + "512") + "," + memory(of_gpu + "-512") + "," +
                                     memory(R"("Device Type":1,"Bytes":1)") + "," +
                                     memory(R"("Device Type":0,"Bytes":512,"Addr":1)") + "," +
                                     slice("cpu_instant_event", "another", of_gpu + "512"));
  using Action = AllocationAction;
  EXPECT_THAT(recording.processes[0].allocations,
              ElementsAre(Allocation{1000, 4096, 512, 1, 0, 0, Action::allocate},
                          Allocation{1000, 4096, 512, 1, 0, 0, Action::release},
                          Allocation{1000, 0, 1, 0, 0, 0, Action::allocate}));
  EXPECT_THAT(recording.processes[0].threads, ElementsAre("6"));
  EXPECT_TRUE(recording.left_out.empty());
}

TEST_F(ChromeTrace, AllocationsThatCannotBeAreLeftOut) {
  const auto of = [&](const std::string& bytes, const std::string& gpu, const std::string& time) {
    return events(
        memory(fmt::format(R"("Device Type":1,"Bytes":{},"Device Id":{})", bytes, gpu), time));
  };
  const struct {
    const char *bytes, *gpu, *time;
    std::string says;
  } cases[] = {
      {"1125899906842624", "1023", "1", ""},
      {"-1125899906842624", "1023", "1", ""},
      {"1125899906842625", "0", "1", "allocations without a size that can be"},
      {"-1125899906842625", "0", "1", "allocations without a size that can be"},
      {"0", "0", "1", "allocations without a size that can be"},
      {"1", "1024", "1", "allocations of a GPU that cannot be"},
      {"1", "0", "\"x\"", "events without a time that can be"},
      {"\"x\"", "0", "1", "events without a time that can be"},
  };
  for (const auto& [bytes, gpu, time, says] : cases) {
    const Recording recording = of(bytes, gpu, time);
    EXPECT_EQ(recording.processes[0].allocations.size(), says.empty() ? 1u : 0u) << bytes;
    if (says.empty()) {
      EXPECT_TRUE(recording.left_out.empty()) << bytes;
    } else {
      EXPECT_THAT(left_out(recording), ElementsAre(Pair(says, 1))) << bytes;
    }
  }
}

TEST_F(ChromeTrace, AFileTellsOfItsProcessAndGpus) {
  const Recording recording = read(
      R"({"a":null,"b":true,"c":[1,{"traceEvents":[7]}],"cuda_driver_version":12040,)"
      R"("distributedInfo":{"backend":"nccl","rank":3},"baseTimeNanoseconds":1700000000000000000,)"
      R"("deviceProperties":[{"id":1,"name":"A","totalGlobalMem":42,"computeMinor":6,)"
      R"("computeMajor":8,"other":{"id":9}},{"id":"x"}],"rank":9,)"
      R"("traceEvents":[)" +
      slice("kernel", "k") + "," + slice("cuda_runtime", "f") + "," + slice("gpu_memcpy", "f") +
      "," + slice("launchgap_graph", "f") + "," + slice("overhead", "f") + "," +
      slice("cuda_sync", "f") + "," + slice("user_annotation", "f") + "," +
      memory(R"("Device Type":1,"Bytes":1)") + "]}");
  constexpr std::int64_t kBegin = 1'700'000'000'000'001'000, kEnd = kBegin + 2000;
  const Process& process = recording.processes[0];
  const auto times = [](const auto& event) { return std::pair(event.begin_ns, event.end_ns); };
  const std::pair both(kBegin, kEnd);
  EXPECT_EQ(times(process.trace.kernels.at(0)), both);
  EXPECT_EQ(times(process.trace.calls.at(0)), both);
  EXPECT_EQ(times(process.trace.transfers.at(0)), both);
  EXPECT_EQ(times(process.trace.graphs.at(0)), both);
  EXPECT_EQ(times(process.trace.overheads.at(0)), both);
  EXPECT_EQ(times(process.trace.waits.at(0)), both);
  EXPECT_EQ(times(process.ranges.at(0)), both);
  EXPECT_EQ(process.allocations.at(0).at_ns, kBegin);
  EXPECT_EQ(process.rank, 3);
  EXPECT_THAT(recording.gpus, ElementsAre(Gpu{1, "A", "", "8.6", 42}, Gpu{0, "", "", "", {}}));
  EXPECT_EQ(recording.driver_version, "for CUDA 12.4");
  EXPECT_EQ(recording.form, "Chrome trace");
  EXPECT_EQ(recording.recorder, "PyTorch's profiler");
  EXPECT_EQ(recording.clock, "Unix time");
}

TEST_F(ChromeTrace, DriversAreNamedByTheCudaThatTheyServe) {
  for (const auto& [number, text] : {std::pair("999", ""),
                                     std::pair("1000", "for CUDA 1.0"),
                                     std::pair("11080", "for CUDA 11.8"),
                                     std::pair("\"R570\"", "")}) {
    EXPECT_EQ(read(fmt::format(R"({{"traceEvents":[],"cuda_driver_version":{}}})", number))
                  .driver_version,
              text)
        << number;
  }
}

TEST_F(ChromeTrace, WhatStandsDeeperIsOfNoEvent) {
  const Recording recording = events(
      R"({"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1,"dur":2,)"
      R"("more":{"ts":5,"correlation":8},)"
      R"("args":{"correlation":9,"inner":{"correlation":10,"grid":[4]},"list":[{"stream":4}],)"
      R"("grid":[2],"stream":7}},)"
      R"({"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":4,"dur":2})");
  EXPECT_THAT(recording.processes[0].trace.kernels,
              ElementsAre(activity::KernelRun{1000, 3000, 9, 0, 0, {2, 1, 1}},
                          activity::KernelRun{4000, 6000, 0, 1, 0}));
}

TEST_F(ChromeTrace, MayBeABareListOrCompressed) {
  EXPECT_EQ(events("").form, "Chrome trace, a bare list");
  EXPECT_EQ(events("").processes.size(), 1u);
  const std::filesystem::path path = file("").parent_path() / "trace.gz";
  CompressedOutput out(path);
  out.buffer() = R"({"traceEvents":[]})";
  out.commit();
  EXPECT_EQ(read_chrome_trace(path).form, "Chrome trace, compressed");
}

TEST_F(ChromeTrace, AreNestedToALimit) {
  const auto nested = [](std::size_t depth) {
    return R"({"traceEvents":[],"x":)" + std::string(depth - 1, '[') + std::string(depth - 1, ']') +
           "}";
  };
  EXPECT_EQ(read(nested(500)).processes.size(), 1u);
  EXPECT_EQ(refusal(nested(501)), "it is nested more than 500 deep");
}

TEST_F(ChromeTrace, WhatCannotBeSaysWhy) {
  EXPECT_EQ(refusal(R"({"traceEvents":[}})"), "it is no whole JSON: Invalid value. (at byte 16)");
  EXPECT_THAT(refusal(R"({"traceEvents":[)"), HasSubstr("it is no whole JSON: "));
  EXPECT_EQ(refusal(R"({"events":[]})"), R"(it is JSON, and has no list "traceEvents")");
  EXPECT_EQ(refusal(R"({"traceEvents":{}})"), R"(it is JSON, and has no list "traceEvents")");
  EXPECT_THAT(refusal("[" + slice("cuda_runtime", "hipLaunchKernel") + "," +
                      slice("cuda_runtime", "f") + "]"),
              HasSubstr("it is a trace of an AMD GPU"));
  EXPECT_EQ(refusal(R"({"baseTimeNanoseconds":9223372036854775807,"traceEvents":[)" +
                    slice("kernel", "k") + "]}"),
            "its times and the time that they count from do not fit together");
}

TEST_F(ChromeTrace, RowsOfTensorflowWithoutWorkAreOfItsHost) {
  const auto named = [](const std::string& process, const std::string& key = "process_name") {
    return fmt::format(R"({{"ph":"M","name":"{}","pid":1,"args":{{"name":"{}"}}}})", key, process);
  };
  for (const char* const row : {"/device:GPU:0/stream:13 Compute",
                                "/gpu:0/stream:all Compute",
                                "/job:localhost/replica:0",
                                "/host:CPU"}) {
    EXPECT_THAT(refusal("[" + named(row) + "," + named("python") + "]"),
                HasSubstr("host alone, in which no time of a GPU can be told"))
        << row;
  }
  EXPECT_EQ(events(named("python")).processes.size(), 1u);
  EXPECT_EQ(events(named("/host:CPU", "thread_name")).processes.size(), 1u);
  // What has calls or kernels of CUDA is read, whatever its rows are called.
  EXPECT_EQ(events(named("/host:CPU") + "," + slice("kernel", "k")).processes[0].events(), 1u);
  EXPECT_EQ(events(named("/host:CPU") + "," + slice("cuda_runtime", "f")).processes[0].events(),
            1u);
}

TEST(ChromeNames, OfOverheadsAreReadAsTheyAreWritten) {
  const struct {
    OverheadKind kind;
    const char *name, *another;
  } cases[] = {
      {OverheadKind::compiler, "Driver Compiler", "Compiler"},
      {OverheadKind::buffer_flush, "Buffer Flush", "Activity Flush"},
      {OverheadKind::instrumentation, "Instrumentation", "Instrumentation of calls"},
      {OverheadKind::resource, "Resource", "A Resource"},
      {OverheadKind::module_loading, "Runtime Triggered Module Loading", "Module Load"},
      {OverheadKind::lazy_function_loading, "Lazy Function Loading", "Lazy Function"},
      {OverheadKind::command_buffer_full, "Command Buffer Full", "Buffer Full"},
      {OverheadKind::buffer_request, "Activity Buffer Request", "Buffer Request"},
      {OverheadKind::other, "Unknown", "lazy"},
  };
  for (const auto& [kind, name, another] : cases) {
    EXPECT_EQ(name_of_overhead(kind), name);
    EXPECT_EQ(overhead_named(name), kind) << name;
    EXPECT_EQ(overhead_named(another), kind) << another;
  }
}

TEST(ChromeNames, OfLaunchesAreThoseThatToolsKnow) {
  const std::pair<const char*, const char*> cases[] = {
      {"__cudaLaunchKernel_ptsz", "cudaLaunchKernel"},
      {"cudaLaunchKernel", "cudaLaunchKernel"},
      {"cudaLaunchKernelExC_ptsz", "cudaLaunchKernelExC"},
      {"cuLaunchKernelEx_ptsz", "cuLaunchKernel"},
      {"cuLaunchKernelEx", "cuLaunchKernel"},
      {"cudaMemcpyAsync_ptsz", "cudaMemcpyAsync_ptsz"},
      {"__cudaRegister", "__cudaRegister"},
  };
  for (const auto& [call, known_as] : cases) EXPECT_EQ(name_for_tools(call), known_as);
}

}  // namespace
}  // namespace launchgap::recording
