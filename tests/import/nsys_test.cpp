#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "harness/import/readers.h"
#include "tests/error_of.h"
#include "tests/import/sqlite_file.h"

namespace launchgap::recording {
namespace {

using namespace testing;
using activity::Domain;
using activity::Purpose;

/// The number that nsys has of a thread.
std::int64_t global(std::uint64_t pid, std::uint64_t tid, std::uint64_t machine = 0) {
  return static_cast<std::int64_t>(machine << 48 | pid << 24 | tid);
}

const std::string kStrings = R"(CREATE TABLE StringIds(id, value);
  INSERT INTO StringIds VALUES (1, 'cudaLaunchKernel_v7000'), (2, 'cuMemFree'), (3, 'a_kernel'),
                               (4, 'step');)";
const std::string kCallsTable = R"(CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(
    start, "end", globalTid, correlationId, nameId, eventClass);)";
const std::string kKernelsTable = R"(CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(
    start, "end", deviceId, contextId, streamId, correlationId, globalPid, demangledName, shortName,
    gridX, gridY, gridZ, blockX, blockY, blockZ);)";

std::string row(const std::string& table, const std::string& values) {
  return fmt::format("INSERT INTO {} VALUES ({});", table, values);
}
std::string call(std::int64_t begin,
                 std::int64_t end,
                 std::int64_t global,
                 std::int64_t correlation,
                 std::int64_t name = 1,
                 std::int64_t event_class = 0) {
  return row(
      "CUPTI_ACTIVITY_KIND_RUNTIME",
      fmt::format("{}, {}, {}, {}, {}, {}", begin, end, global, correlation, name, event_class));
}
std::string kernel(std::int64_t begin, std::int64_t gpu, const std::string& process = "NULL") {
  return row(
      "CUPTI_ACTIVITY_KIND_KERNEL",
      fmt::format(
          "{}, {}, {}, 12, 13, 14, {}, 3, 1, 2, 3, 4, 5, 6, 7", begin, begin + 5, gpu, process));
}

struct Nsys : SqliteFile {
  Recording read(const std::string& statements) const {
    return read_sqlite_report(made_by(kStrings + statements));
  }
  /// Of one process that made one call, and of what else these make.
  Recording with_a_call(const std::string& statements) const {
    return read(kCallsTable + call(10, 20, global(77, 5), 9) + statements);
  }
  std::string refusal(const std::string& statements) const {
    return error_of([&] { read(statements); });
  }
};

TEST_F(Nsys, CallsHaveAThreadOfAProcessANameAndAPurpose) {
  const Recording recording =
      read(kCallsTable + call(10, 20, global(77, 0xFFFFFF, 3), 9) +
           call(30, 45, global(77, 5, 3), 11, 2) + call(50, 51, global(78, 5), 12, 1) +
           call(52, 53, global(77, 5, 4), 13, 99));
  ASSERT_EQ(recording.processes.size(), 3u) << "of two machines with one number";
  const Process& first = recording.processes[0];
  EXPECT_EQ(first.pid, 77u);
  EXPECT_EQ(recording.processes[1].pid, 78u);
  EXPECT_EQ(recording.processes[2].pid, 77u);
  EXPECT_THAT(first.threads, ElementsAre("16777215", "5"));
  EXPECT_THAT(first.trace.calls,
              ElementsAre(activity::Call{10, 20, 9, 0, 0, Domain::runtime, Purpose::launch},
                          activity::Call{30, 45, 11, 1, 1, Domain::driver, Purpose::release}));
  EXPECT_THAT(first.trace.names(), ElementsAre("cudaLaunchKernel", "cuMemFree"));
  EXPECT_THAT(recording.processes[2].trace.names(), ElementsAre("")) << "of no string";
  EXPECT_EQ(recording.recorder, "Nsight Systems");
  EXPECT_EQ(recording.form, "SQLite");
  EXPECT_EQ(recording.clock, "from the beginning of the recording");
  EXPECT_TRUE(recording.left_out.empty());
}

TEST_F(Nsys, ACallWithItsCallChainCountsOnce) {
  const std::int64_t one = global(77, 5), other = global(77, 6);
  const Recording recording =
      read(kCallsTable + call(9, 21, one, 9, 1, 67) + call(10, 20, one, 9) +
           call(30, 40, one, 10, 1, 67) + call(50, 60, other, 9, 1, 67) + call(70, 80, one, 11));
  std::vector<std::int64_t> begins;
  for (const activity::Call& one_call : recording.processes[0].trace.calls)
    begins.push_back(one_call.begin_ns);
  EXPECT_THAT(begins, ElementsAre(10, 30, 50, 70)) << "one alone is kept, whatever it is";
  ASSERT_EQ(recording.left_out.size(), 1u);
  EXPECT_EQ(recording.left_out[0].what, "calls that are in two rows");
  EXPECT_EQ(recording.left_out[0].count, 1u);
}

TEST_F(Nsys, CallsWithoutAnEndAreLeftOut) {
  const std::string end = fmt::format("{}, 9, 1, 0", global(77, 5));
  const Recording recording =
      read(kCallsTable + row("CUPTI_ACTIVITY_KIND_RUNTIME", "10, NULL, " + end) +
           row("CUPTI_ACTIVITY_KIND_RUNTIME", "NULL, 10, " + end) + call(30, 40, global(77, 5), 9));
  EXPECT_EQ(recording.processes[0].trace.calls.size(), 1u);
  ASSERT_EQ(recording.left_out.size(), 1u);
  EXPECT_EQ(recording.left_out[0].what, "calls without an end");
  EXPECT_EQ(recording.left_out[0].count, 2u);
}

TEST_F(Nsys, KernelsHaveAStreamANameAndAGrid) {
  const Recording recording =
      with_a_call(kKernelsTable + kernel(100, 11) +
                  row("CUPTI_ACTIVITY_KIND_KERNEL",
                      "200, 210, 11, 12, 15, 16, NULL, 99, 1, NULL, NULL, NULL, NULL, NULL, NULL"));
  const Process& process = recording.processes[0];
  EXPECT_THAT(process.streams, ElementsAre(Stream{11, 12, 13}, Stream{11, 12, 15}));
  EXPECT_THAT(process.trace.kernels,
              ElementsAre(activity::KernelRun{100, 105, 14, 0, 1, {2, 3, 4}, {5, 6, 7}},
                          activity::KernelRun{200, 210, 16, 1, 2}));
  EXPECT_THAT(process.trace.names(), ElementsAre("cudaLaunchKernel", "a_kernel", "(unnamed)"));
}

TEST_F(Nsys, KernelsHaveTheirShortNameWhereThereIsNoOther) {
  const Recording recording = with_a_call(
      R"(CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start, "end", deviceId, contextId, streamId,
           correlationId, shortName);)" +
      row("CUPTI_ACTIVITY_KIND_KERNEL", "100, 105, 0, 1, 7, 9, 3"));
  EXPECT_EQ(recording.processes[0].trace.name(1), "a_kernel");
}

TEST_F(Nsys, WhatSaysNoProcessIsOfTheOnlyOne) {
  const Recording none = read(kKernelsTable + kernel(100, 0));
  ASSERT_EQ(none.processes.size(), 1u);
  EXPECT_EQ(none.processes[0].pid, 0u);
  EXPECT_EQ(none.processes[0].trace.kernels.size(), 1u);

  const Recording two = with_a_call(call(12, 14, global(78, 5), 9) + kKernelsTable +
                                    kernel(100, 0) + kernel(200, 0, std::to_string(global(78, 0))) +
                                    kernel(300, 0, std::to_string(global(79, 0))));
  ASSERT_EQ(two.processes.size(), 3u);
  EXPECT_EQ(two.processes[0].trace.kernels.size(), 0u);
  EXPECT_EQ(two.processes[1].trace.kernels.at(0).begin_ns, 200);
  EXPECT_EQ(two.processes[2].trace.kernels.at(0).begin_ns, 300);
  ASSERT_EQ(two.left_out.size(), 1u);
  EXPECT_EQ(two.left_out[0].what, "records that do not say of which process they are");
  EXPECT_EQ(two.left_out[0].count, 1u);
}

TEST_F(Nsys, CopiesFromTheHostAreToldByTheirKind) {
  const Recording recording = with_a_call(
      R"(CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY(
         start, "end", deviceId, contextId, streamId, correlationId, globalPid, bytes, copyKind);)" +
      row("CUPTI_ACTIVITY_KIND_MEMCPY", "30, 35, 0, 1, 7, 14, NULL, 4096, 1") +
      row("CUPTI_ACTIVITY_KIND_MEMCPY", "40, 45, 0, 1, 7, 15, NULL, 4096, 2"));
  const auto& transfers = recording.processes[0].trace.transfers;
  EXPECT_TRUE(transfers.at(0).from_host);
  EXPECT_FALSE(transfers.at(1).from_host);
}

TEST_F(Nsys, TransfersGraphsWaitsAndMemoryAreTaken) {
  const std::string transfers =
      R"((start, "end", deviceId, contextId, streamId, correlationId, globalPid, bytes);)";
  const Recording recording =
      with_a_call("CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY" + transfers +
                  row("CUPTI_ACTIVITY_KIND_MEMCPY", "30, 35, 0, 1, 7, 14, NULL, 4096") +
                  "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET" + transfers +
                  row("CUPTI_ACTIVITY_KIND_MEMSET", "40, 45, 1, 2, 8, 15, NULL, 8192") +
                  R"(CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE(
           start, "end", deviceId, contextId, streamId, correlationId, globalPid, graphId);)" +
                  row("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "50, 55, 2, 3, 9, 16, NULL, 17") +
                  R"(CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION(
           start, "end", correlationId, globalPid, syncType);)" +
                  row("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "60, 65, 18, NULL, 4") +
                  R"(CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS(start, address, bytes, memKind,
           memoryOperationType, correlationId, globalPid, deviceId);)" +
                  row("CUDA_GPU_MEMORY_USAGE_EVENTS", "70, 71, 72, 73, 0, 74, NULL, 75") +
                  row("CUDA_GPU_MEMORY_USAGE_EVENTS", "80, 71, 72, 73, 1, 76, NULL, 75") +
                  row("CUDA_GPU_MEMORY_USAGE_EVENTS", "90, 71, 72, 73, 2, 77, NULL, 75"));
  const activity::Trace& trace = recording.processes[0].trace;
  EXPECT_THAT(recording.processes[0].streams,
              ElementsAre(Stream{0, 1, 7}, Stream{1, 2, 8}, Stream{2, 3, 9}));
  EXPECT_THAT(trace.transfers,
              ElementsAre(activity::Transfer{30, 35, 4096, 14, 0, false},
                          activity::Transfer{40, 45, 8192, 15, 1, true}));
  EXPECT_THAT(trace.graphs, ElementsAre(activity::Graph{50, 55, 16, 17, 2}));
  EXPECT_THAT(trace.waits, ElementsAre(activity::Wait{60, 65, 18, 4}));
  EXPECT_THAT(trace.memory,
              ElementsAre(activity::Memory{70, 71, 72, 0, 74, 73, false, 75},
                          activity::Memory{80, 71, 72, 0, 76, 73, true, 75},
                          activity::Memory{90, 71, 72, 0, 77, 73, false, 75}));
}

TEST_F(Nsys, WhatHasAProcessIsOfThatOne) {
  const std::string other = std::to_string(global(78, 0)), thread = std::to_string(global(78, 5));
  const Recording recording = with_a_call(
      R"(CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY(
           start, "end", deviceId, contextId, streamId, correlationId, globalPid, bytes);)" +
      row("CUPTI_ACTIVITY_KIND_MEMCPY", "30, 35, 0, 1, 7, 14, " + other + ", 4096") +
      R"(CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE(start, "end", correlationId, globalPid);)" +
      row("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "50, 55, 16, " + other) +
      R"(CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION(start, "end", globalPid);)" +
      row("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "60, 65, " + other) +
      R"(CREATE TABLE PROFILER_OVERHEAD(start, "end", globalTid);)" +
      row("PROFILER_OVERHEAD", "66, 67, " + thread) +
      "CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS(start, address, globalPid);" +
      row("CUDA_GPU_MEMORY_USAGE_EVENTS", "70, 71, " + other));
  ASSERT_EQ(recording.processes.size(), 2u);
  EXPECT_EQ(recording.processes[0].trace.size(), 1u);
  EXPECT_EQ(recording.processes[1].trace.size(), 5u);
}

TEST_F(Nsys, OverheadsWithoutAnEndAreNone) {
  const Recording recording = with_a_call(
      R"(CREATE TABLE PROFILER_OVERHEAD(start, "end", globalTid);)" +
      row("PROFILER_OVERHEAD", "10, NULL, NULL") + row("PROFILER_OVERHEAD", "NULL, 20, NULL") +
      row("PROFILER_OVERHEAD", "30, 40, NULL"));
  EXPECT_THAT(recording.processes[0].trace.overheads, ElementsAre(activity::Overhead{30, 40}));
}

TEST_F(Nsys, ThreadsThatCallPauseFromTheirLeavingOfACpuToTheirReturn) {
  const auto change = [](std::int64_t at, int in, std::int64_t global) {
    return row("SCHED_EVENTS", fmt::format("{}, {}, {}", at, in, global));
  };
  const std::int64_t first = global(77, 5), second = global(77, 1234), other = global(78, 5);
  const Recording recording = with_a_call(
      call(12, 14, second, 9) + call(16, 18, other, 9) +
      "CREATE TABLE SCHED_EVENTS(start, isSchedIn, globalTid);" +
      // In another order than that of their times.
      change(40, 1, first) + change(30, 0, first) + change(10, 1, second) + change(50, 0, second) +
      change(55, 0, second) + change(60, 1, second) + change(61, 1, second) +
      change(35, 0, global(77, 99)) + change(36, 1, global(77, 99)) + change(70, 0, other) +
      change(75, 1, other) + change(80, 0, first));
  const auto pauses = [&](std::size_t process) {
    std::vector<std::vector<std::int64_t>> all;
    for (const RecordedPause& pause : recording.processes[process].pauses)
      all.push_back({pause.begin_ns, pause.end_ns, pause.thread});
    return all;
  };
  using Pause = std::vector<std::int64_t>;
  EXPECT_THAT(pauses(0), ElementsAre(Pause{30, 40, 0}, Pause{55, 60, 1}));
  EXPECT_THAT(pauses(1), ElementsAre(Pause{70, 75, 0}));
}

TEST_F(Nsys, RangesHaveATextOfTheirOwnOrAString) {
  const auto event = [](const std::string& values) { return row("NVTX_EVENTS", values); };
  const std::string thread = std::to_string(global(77, 6));
  const Recording recording = with_a_call(
      R"(CREATE TABLE NVTX_EVENTS(start, "end", eventType, text, textId, globalTid, uint64Value,
           int64Value);)" +
      event("10, 20, 59, 'own', 4, " + thread + ", NULL, NULL") +
      event("11, 21, 60, NULL, 4, NULL, 7, NULL") + event("12, 22, 59, NULL, 99, NULL, NULL, 8") +
      event("13, NULL, 59, 'no end', 4, NULL, NULL, NULL") +
      event("NULL, 23, 59, 'no start', 4, NULL, NULL, NULL") +
      event("14, 24, 34, 'a mark', 4, NULL, NULL, NULL") +
      event("15, 25, 61, 'another', 4, NULL, NULL, NULL") +
      event("16, 26, 58, 'another', 4, NULL, NULL, NULL"));
  const Process& process = recording.processes[0];
  ASSERT_EQ(process.ranges.size(), 3u);
  const auto of = [&](const Range& range) {
    return std::tuple(range.begin_ns,
                      range.end_ns,
                      process.threads[range.thread],
                      process.trace.name(range.name),
                      range.payload);
  };
  using Optional = std::optional<std::uint64_t>;
  EXPECT_EQ(of(process.ranges[0]), std::tuple(10, 20, "6", "own", Optional()));
  EXPECT_EQ(of(process.ranges[1]), std::tuple(11, 21, "0", "step", Optional(7)));
  EXPECT_EQ(of(process.ranges[2]), std::tuple(12, 22, "0", "(unnamed)", Optional(8)));
}

TEST_F(Nsys, RangesOfNoKnownProcessAreLeftOutOneByOne) {
  const Recording recording = with_a_call(
      call(12, 14, global(78, 5), 9) +
      R"(CREATE TABLE NVTX_EVENTS(start, "end", eventType, text, globalTid);)" +
      row("NVTX_EVENTS", "10, 20, 59, 'of whom?', NULL") +
      row("NVTX_EVENTS", fmt::format("11, 21, 59, 'own', {}", global(78, 5))) +
      R"(CREATE TABLE PROFILER_OVERHEAD(start, "end");)" + row("PROFILER_OVERHEAD", "10, 20"));
  EXPECT_EQ(recording.processes[0].ranges.size(), 0u);
  EXPECT_EQ(recording.processes[1].ranges.size(), 1u);
  ASSERT_EQ(recording.left_out.size(), 1u);
  EXPECT_EQ(recording.left_out[0].count, 2u);
}

TEST_F(Nsys, TablesThatLackTheirTimesAreAsIfNotThere) {
  for (const char* const table : {R"(PROFILER_OVERHEAD("end", globalTid))",
                                  "PROFILER_OVERHEAD(start, globalTid)",
                                  R"(NVTX_EVENTS("end", eventType, text))",
                                  "NVTX_EVENTS(start, eventType, text)",
                                  "CUDA_GPU_MEMORY_USAGE_EVENTS(address, bytes)",
                                  "CUDA_GPU_MEMORY_USAGE_EVENTS(start, bytes)",
                                  "SCHED_EVENTS(isSchedIn, globalTid)",
                                  "SCHED_EVENTS(start, globalTid)",
                                  "SCHED_EVENTS(start, isSchedIn)",
                                  "TARGET_INFO_SYSTEM_ENV(value)",
                                  "TARGET_INFO_SYSTEM_ENV(name)",
                                  "META_DATA_EXPORT(value)",
                                  "META_DATA_EXPORT(name)"}) {
    const std::string made(table);
    const Recording recording = with_a_call("CREATE TABLE " + made + "; INSERT INTO " +
                                            made.substr(0, made.find('(')) + " DEFAULT VALUES;");
    EXPECT_EQ(recording.processes[0].events(), 1u) << table;
    EXPECT_TRUE(recording.processes[0].pauses.empty()) << table;
  }
}

TEST_F(Nsys, VersionsAreThoseOfTheExport) {
  for (const char* const table : {"META_DATA_EXPORT", "EXPORT_META_DATA"}) {
    const Recording recording =
        with_a_call(fmt::format("CREATE TABLE {0}(name, value); INSERT INTO {0} VALUES "
                                "('EXPORT_PRODUCT_VERSION', '2024.5.1'), ('OTHER', 'x'), "
                                "('EXPORT_SCHEMA_VERSION', '3.13.2');",
                                table));
    EXPECT_EQ(recording.recorder, "Nsight Systems 2024.5.1");
    EXPECT_EQ(recording.form, "SQLite, schema 3.13.2");
  }
}

/// The branch has three digits, each further part two at least.
TEST_F(Nsys, DriversHaveTheirPointsAgain) {
  const struct {
    const char* written;
    const char* driver;
  } cases[] = {
      {"525.105.17", "525.105.17"},
      {"52510517", "525.105.17"},
      {"5350304", "535.03.04"},
      {"535054", "535.054"},
      {"53503", "535.03"},
      {"5350", "5350"},
      {"909090", "909.090"},
      {"53510x17", "53510x17"},
  };
  for (const auto& [written, driver] : cases) {
    const Recording recording =
        with_a_call(fmt::format("CREATE TABLE TARGET_INFO_SYSTEM_ENV(name, value); INSERT INTO "
                                "TARGET_INFO_SYSTEM_ENV VALUES ('Other', '7'), "
                                "('NvDriverVersion', '{}');",
                                written));
    EXPECT_EQ(recording.driver_version, driver);
  }
}

struct NsysGpus : Nsys {
  static constexpr const char* kGpus =
      "CREATE TABLE TARGET_INFO_GPU(id, name, uuid, computeMajor, computeMinor, totalMemory);";
  static std::string gpu(const std::string& values) { return row("TARGET_INFO_GPU", values); }
  /// Those of kernels on these GPUs.
  std::vector<Gpu> gpus(const std::string& statements, const std::vector<int>& used = {0}) const {
    std::string kernels = kKernelsTable;
    for (const int number : used) kernels += kernel(100, number);
    return with_a_call(kernels + statements).gpus;
  }
};

TEST_F(NsysGpus, AreThoseThatARecordNames) {
  EXPECT_THAT(gpus("", {}), IsEmpty());
  EXPECT_THAT(gpus("", {3, 1}), ElementsAre(Gpu{1, "", "", "", {}}, Gpu{3, "", "", "", {}}));
  EXPECT_THAT(gpus("CREATE TABLE TARGET_INFO_GPU(id);" + gpu("0")),
              ElementsAre(Gpu{0, "", "", "", {}}));
  EXPECT_THAT(gpus(kGpus + gpu("0, 'A100', 'GPU-a', 8, 0, 42")),
              ElementsAre(Gpu{0, "A100", "GPU-a", "8.0", 42}));
}

TEST_F(NsysGpus, OthersThatCannotComputeAreNone) {
  EXPECT_THAT(
      gpus(kGpus + gpu("0, 'of a maker', 'x', 0, 0, 1") + gpu("1, 'A100', 'GPU-a', 1, 3, 0")),
      ElementsAre(Gpu{0, "A100", "GPU-a", "1.3", {}}));
}

TEST_F(NsysGpus, HaveWhatAllInstalledOnesHaveInCommon) {
  const std::string first = kGpus + gpu("0, 'A100', 'GPU-a', 8, 0, 42");
  const struct {
    const char* second;
    Gpu common;
  } cases[] = {
      {"1, 'A100', 'GPU-b', 8, 0, 42", {0, "A100", "", "8.0", 42}},
      {"1, 'A30', 'GPU-a', 8, 0, 42", {0, "", "GPU-a", "8.0", 42}},
      {"1, 'A100', 'GPU-a', 8, 6, 42", {0, "A100", "GPU-a", "", 42}},
      {"1, 'A100', 'GPU-a', 8, 0, 43", {0, "A100", "GPU-a", "8.0", {}}},
  };
  for (const auto& [second, common] : cases)
    EXPECT_THAT(gpus(first + gpu(second)), ElementsAre(common)) << second;
}

/// One process sees the second GPU as its first, another the first.
TEST_F(NsysGpus, AreWhatTheirNumbersStandFor) {
  const std::string installed =
      kGpus + gpu("5, 'A100', 'GPU-a', 8, 0, 42") + gpu("6, 'A30', 'GPU-b', 8, 0, 43");
  const std::string devices = "CREATE TABLE TARGET_INFO_CUDA_DEVICE(gpuId, cudaId);";
  EXPECT_THAT(gpus(installed + devices + row("TARGET_INFO_CUDA_DEVICE", "6, 0") +
                       row("TARGET_INFO_CUDA_DEVICE", "5, 1"),
                   {0, 1}),
              ElementsAre(Gpu{0, "A30", "GPU-b", "8.0", 43}, Gpu{1, "A100", "GPU-a", "8.0", 42}));
  EXPECT_THAT(gpus(installed + devices + row("TARGET_INFO_CUDA_DEVICE", "6, 0") +
                       row("TARGET_INFO_CUDA_DEVICE", "5, 0"),
                   {0}),
              ElementsAre(Gpu{0, "", "", "8.0", {}}));
  EXPECT_THAT(gpus(installed + devices + row("TARGET_INFO_CUDA_DEVICE", "6, 1"), {0}),
              ElementsAre(Gpu{0, "", "", "8.0", {}}))
      << "of which nothing is told";
  for (const char* const lacking : {"gpuId", "cudaId"}) {
    EXPECT_THAT(
        gpus(installed + fmt::format("CREATE TABLE TARGET_INFO_CUDA_DEVICE({});", lacking), {0}),
        ElementsAre(Gpu{0, "", "", "8.0", {}}))
        << lacking;
  }
}

TEST_F(Nsys, WhatIsMissingIsNamed) {
  EXPECT_THAT(refusal(""), HasSubstr("without calls of CUDA and without kernels"));
  EXPECT_THAT(
      error_of([&] { read_sqlite_report(made_by("CREATE TABLE StringIds(id);" + kCallsTable)); }),
      HasSubstr("it has no table StringIds"));
  EXPECT_THAT(error_of([&] {
                read_sqlite_report(made_by("CREATE TABLE StringIds(value);" + kKernelsTable));
              }),
              HasSubstr("it has no table StringIds"));
  const struct {
    const char* table;
    std::vector<std::string> columns;
  } cases[] = {
      {"CUPTI_ACTIVITY_KIND_RUNTIME", {"start", "end", "globalTid", "correlationId", "nameId"}},
      {"CUPTI_ACTIVITY_KIND_KERNEL",
       {"start", "end", "deviceId", "contextId", "streamId", "correlationId"}},
      {"CUPTI_ACTIVITY_KIND_MEMCPY",
       {"start", "end", "deviceId", "contextId", "streamId", "correlationId"}},
      {"CUPTI_ACTIVITY_KIND_MEMSET",
       {"start", "end", "deviceId", "contextId", "streamId", "correlationId"}},
      {"CUPTI_ACTIVITY_KIND_GRAPH_TRACE", {"start", "end", "correlationId"}},
      {"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", {"start", "end"}},
  };
  for (const auto& [table, columns] : cases) {
    for (const std::string& missing : columns) {
      std::string others = "other";
      for (const std::string& column : columns) {
        if (column != missing) others += fmt::format(", \"{}\"", column);
      }
      const std::string calls =
          table == std::string("CUPTI_ACTIVITY_KIND_RUNTIME") ? "" : kCallsTable;
      EXPECT_EQ(refusal(calls + fmt::format("CREATE TABLE {}({});", table, others)),
                fmt::format("its table {} has no column {}: launchgap knows schemas 2.7 to 3.25, "
                            "this is SQLite",
                            table,
                            missing));
    }
  }
}

}  // namespace
}  // namespace launchgap::recording
