#include "harness/import/chrome_export.h"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "harness/core/build_info.h"
#include "harness/import/event_file.h"
#include "harness/import/readers.h"
#include "tests/import/job.h"
#include "tests/import/text_file.h"

namespace launchgap::recording {
namespace {

using namespace testing;
using activity::Purpose;

/// Its first event begins 1,000 ns after a whole second.
constexpr std::int64_t kBase = 5'000'000'000;

struct ChromeExport : TextFile {
  struct Section {
    EventsHead head;
    Process process;
  };
  std::filesystem::path path(const char* name) const { return file("").parent_path() / name; }

  /// The file without its head's line, an event each, and how many were left out.
  std::vector<std::string> lines(const std::vector<Section>& sections,
                                 const std::vector<CounterValue>& counters = {}) {
    const std::filesystem::path events = path("events.jsonl.gz"), output = path("trace.json");
    std::filesystem::remove(events);
    EventWriter writer(events);
    for (const Section& section : sections) writer.write(section.head, section.process);
    left_out_ = export_chrome_trace(events, output, counters);
    std::ifstream in(output);
    std::getline(in, head_);
    std::vector<std::string> all;
    for (std::string line; std::getline(in, line);) {
      if (line.ends_with(',')) line.pop_back();
      all.push_back(line);
    }
    EXPECT_EQ(all.back(), "]}");
    all.pop_back();
    return all;
  }
  /// Of events alone, without the names of rows.
  std::vector<std::string> events(const Process& process) {
    std::vector<std::string> all = lines({{{}, process}});
    std::erase_if(all, [](const std::string& line) { return line.starts_with(R"({"ph": "M")"); });
    return all;
  }

  std::string head_;
  std::uint64_t left_out_ = 0;
};

TEST_F(ChromeExport, BeginsWithWhatIsKnownOfTheProcess) {
  const EventsHead head{"a recorder",
                        "Unix time",
                        77,
                        3,
                        {{2, "A \"GPU\"", "GPU-a", "8.6", 42},
                         {4, "B", "", "8.x", {}},
                         {5, "C", "", "8", {}},
                         {6, "D", "", "", {}}}};
  lines({{head, Job().call(kBase + 1000, kBase + 2000, 1).process}});
  EXPECT_EQ(
      head_,
      fmt::format(
          R"({{"schemaVersion": 1, "deviceProperties": [)"
          R"({{"id": 2, "name": "A \"GPU\"", "totalGlobalMem": 42, "computeMajor": 8, "computeMinor": 6}}, )"
          R"({{"id": 4, "name": "B", "totalGlobalMem": 0}}, )"
          R"({{"id": 5, "name": "C", "totalGlobalMem": 0}}, )"
          R"({{"id": 6, "name": "D", "totalGlobalMem": 0}}], "distributedInfo": {{"rank": 3}}, )"
          R"("displayTimeUnit": "ms", "baseTimeNanoseconds": 5000000000, "launchgap": )"
          R"({{"version": "{}", "recorder": "a recorder"}}, "traceEvents": [)",
          kVersion));
  lines({{{}, Job().call(kBase - 1, kBase + 2000, 1).process}});
  EXPECT_THAT(head_, HasSubstr(R"("baseTimeNanoseconds": 4000000000)"));
  EXPECT_THAT(head_, HasSubstr(R"({"rank": 0})"));
}

TEST_F(ChromeExport, HasAnEventOfEachKind) {
  Job job;
  job.call(kBase + 1000, kBase + 2234, 9);
  job.call(kBase + 3000, kBase + 4000, 10, Purpose::launch, "main", "__cudaLaunchKernel_ptsz");
  job.call(kBase + 5000, kBase + 6000, 11, Purpose::release, "main", "cuMemFree");
  job.process.trace.calls.back().domain = activity::Domain::driver;
  job.kernel(kBase + 7000, kBase + 8001, 9, kOther);
  job.process.trace.kernels[0].grid[0] = 2;
  job.process.trace.kernels[0].grid[1] = 3;
  job.process.trace.kernels[0].grid[2] = 4;
  job.process.trace.kernels[0].block[0] = 5;
  job.process.trace.kernels[0].block[1] = 6;
  job.process.trace.kernels[0].block[2] = 7;
  job.transfer(kBase + 9000, kBase + 9010, false, kOtherGpu, 12);
  job.transfer(kBase + 9020, kBase + 9030, true, kOtherGpu, 13);
  job.graph(kBase + 9040, kBase + 9050, 14);
  job.process.trace.overheads.push_back(
      {kBase + 9060, kBase + 9070, 15, activity::OverheadKind::resource});
  job.process.trace.waits.push_back({kBase + 9080, kBase + 9090, 16, 0});
  job.process.trace.memory.push_back({kBase + 9100, 21, 22, 0, 0, 3, true, 1});
  job.range(kBase + 1, kBase + 9200, "a \"Größe\"");
  EXPECT_THAT(
      events(job.process),
      UnorderedElementsAre(
          R"({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 1.000, "dur": 1.234, "pid": 0, "tid": 1, "args": {"correlation": 9}})",
          R"({"ph": "s", "id": 9, "pid": 0, "tid": 1, "ts": 1.000, "cat": "ac2g", "name": "ac2g"})",
          R"({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 3.000, "dur": 1.000, "pid": 0, "tid": 1, "args": {"correlation": 10, "api_symbol": "__cudaLaunchKernel_ptsz"}})",
          R"({"ph": "s", "id": 10, "pid": 0, "tid": 1, "ts": 3.000, "cat": "ac2g", "name": "ac2g"})",
          R"({"ph": "X", "cat": "cuda_driver", "name": "cuMemFree", "ts": 5.000, "dur": 1.000, "pid": 0, "tid": 1, "args": {"correlation": 11}})",
          R"({"ph": "X", "cat": "kernel", "name": "a_kernel", "ts": 7.000, "dur": 1.001, "pid": 0, "tid": 13, "args": {"device": 0, "context": 1, "stream": 13, "correlation": 9, "grid": [2, 3, 4], "block": [5, 6, 7]}})",
          R"({"ph": "f", "bp": "e", "id": 9, "pid": 0, "tid": 13, "ts": 7.000, "cat": "ac2g", "name": "ac2g"})",
          R"({"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy", "ts": 9.000, "dur": 0.010, "pid": 1, "tid": 7, "args": {"device": 1, "context": 1, "stream": 7, "correlation": 12, "bytes": 1024}})",
          R"x({"ph": "X", "cat": "gpu_memset", "name": "Memset (Device)", "ts": 9.020, "dur": 0.010, "pid": 1, "tid": 7, "args": {"device": 1, "context": 1, "stream": 7, "correlation": 13, "bytes": 1024}})x",
          R"({"ph": "X", "cat": "launchgap_graph", "name": "graph", "ts": 9.040, "dur": 0.010, "pid": 0, "tid": 7, "args": {"device": 0, "context": 1, "stream": 7, "correlation": 14, "graph id": 1}})",
          R"({"ph": "X", "cat": "overhead", "name": "Resource", "ts": 9.060, "dur": 0.010, "pid": -1, "tid": 0, "args": {"correlation": 15}})",
          R"({"ph": "X", "cat": "cuda_sync", "name": "Synchronize", "ts": 9.080, "dur": 0.010, "pid": -1, "tid": 0, "args": {"correlation": 16}})",
          R"({"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 0, "tid": 0, "ts": 9.100, "args": {"Bytes": -22, "Addr": 21, "Device Id": 1, "Device Type": 1}})",
          R"({"ph": "X", "cat": "user_annotation", "name": "a \"Größe\"", "ts": 0.001, "dur": 9.199, "pid": 0, "tid": 1, "args": {}})"));
  EXPECT_EQ(left_out_, 0u);
}

TEST_F(ChromeExport, CopiesFromTheHostAreNamedAsTheReaderKnowsThem) {
  Job job;
  job.transfer(kBase + 9000, kBase + 9010, false);
  job.process.trace.transfers[0].from_host = true;
  EXPECT_THAT(events(job.process), ElementsAre(HasSubstr(R"("name": "Memcpy HtoD")")));
}

TEST_F(ChromeExport, AllocationsAreGivenAndReleasedOnly) {
  Job job;
  const auto add = [&](std::int64_t at, std::uint64_t bytes, AllocationAction action) {
    job.process.allocations.push_back({kBase + at, 31, bytes, 2, 0, 0, action});
  };
  add(1000, 100, AllocationAction::allocate);
  add(2000, 200, AllocationAction::give_back);
  add(3000, 300, AllocationAction::release);
  add(4000, 400, AllocationAction::fail);
  const std::string begin =
      R"({"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 0, "tid": 1, )";
  EXPECT_THAT(
      events(job.process),
      ElementsAre(
          begin +
              R"("ts": 1.000, "args": {"Bytes": 100, "Addr": 31, "Device Id": 2, "Device Type": 1}})",
          begin +
              R"("ts": 3.000, "args": {"Bytes": -300, "Addr": 31, "Device Id": 2, "Device Type": 1}})"));
  EXPECT_EQ(left_out_, 0u);
}

TEST_F(ChromeExport, WhatHasNoTimesIsLeftOutAndCounted) {
  Job job;
  job.call(kBase, kBase - 1, 9).kernel(0, kBase, 9).transfer(0, kBase, true).graph(0, kBase, 9);
  job.range(0, kBase, "range");
  job.process.trace.overheads.push_back({0, kBase});
  job.process.trace.waits.push_back({0, kBase});
  job.process.trace.memory.push_back({0, 21, 22});
  job.process.allocations.push_back({0, 31, 32});
  EXPECT_THAT(events(job.process), IsEmpty());
  EXPECT_EQ(left_out_, 9u);

  Job earliest;
  earliest.call(1, 1, 9, Purpose::other, "main", "f");
  earliest.process.allocations.push_back({1, 31, 32});
  EXPECT_THAT(events(earliest.process),
              ElementsAre(HasSubstr(R"("ts": 0.001, "dur": 0.000)"), HasSubstr(R"("ts": 0.001)")));
  EXPECT_EQ(left_out_, 0u);
}

TEST_F(ChromeExport, RowsHaveTheirNamesOnce) {
  Process process;
  process.threads = {"main", "7", "0", "007", "1234567890", "1", "123456789"};
  process.streams = {{0, 1, 7}, {0, 2, 7}, {1001, 1, 13}};
  EventsHead head;
  head.pid = 77;
  const std::vector<std::string> once = {
      R"({"ph": "M", "name": "process_name", "pid": 77, "tid": 0, "ts": 0, "args": {"name": "process 77"}})",
      R"({"ph": "M", "name": "process_sort_index", "pid": 77, "tid": 0, "ts": 0, "args": {"sort_index": 0}})",
      R"({"ph": "M", "name": "thread_name", "pid": 77, "tid": 2, "ts": 0, "args": {"name": "main"}})",
      R"({"ph": "M", "name": "thread_name", "pid": 77, "tid": 3, "ts": 0, "args": {"name": "007"}})",
      R"({"ph": "M", "name": "thread_name", "pid": 77, "tid": 4, "ts": 0, "args": {"name": "1234567890"}})",
      R"({"ph": "M", "name": "process_name", "pid": 0, "tid": 0, "ts": 0, "args": {"name": "GPU 0"}})",
      R"({"ph": "M", "name": "process_labels", "pid": 0, "tid": 0, "ts": 0, "args": {"labels": "GPU 0"}})",
      R"({"ph": "M", "name": "process_sort_index", "pid": 0, "tid": 0, "ts": 0, "args": {"sort_index": 5000000}})",
      R"({"ph": "M", "name": "thread_name", "pid": 0, "tid": 7, "ts": 0, "args": {"name": "stream 7"}})",
      R"({"ph": "M", "name": "thread_name", "pid": 0, "tid": 7, "ts": 0, "args": {"name": "stream 7"}})",
      R"({"ph": "M", "name": "process_name", "pid": 1001, "tid": 0, "ts": 0, "args": {"name": "GPU 1001"}})",
      R"({"ph": "M", "name": "process_labels", "pid": 1001, "tid": 0, "ts": 0, "args": {"labels": "GPU 1001"}})",
      R"({"ph": "M", "name": "process_sort_index", "pid": 1001, "tid": 0, "ts": 0, "args": {"sort_index": 5000001}})",
      R"({"ph": "M", "name": "thread_name", "pid": 1001, "tid": 13, "ts": 0, "args": {"name": "stream 13"}})",
  };
  process.ranges = {{kBase, kBase + 1, 4}};
  process.trace.set_names({"range"});
  const std::string range =
      R"({"ph": "X", "cat": "user_annotation", "name": "range", "ts": 0.000, "dur": 0.001, "pid": 77, "tid": 4, "args": {}})";
  std::vector<std::string> expected = once;
  expected.push_back(range);
  expected.push_back(range);
  EXPECT_EQ(lines({{head, process}, {head, process}}), expected);
}

/// A later section may have a thread of a name that an earlier one's has for its number.
TEST_F(ChromeExport, NoTwoThreadsHaveOneNumber) {
  Process first, second;
  first.threads = {"main"};
  second.threads = {"1", "main", "2"};
  first.trace.set_names({"range"});
  second.trace.set_names({"range"});
  first.ranges = {{kBase, kBase + 1, 0}};
  second.ranges = {{kBase, kBase + 1, 0}, {kBase, kBase + 1, 1}, {kBase, kBase + 1, 2}};
  std::vector<std::string> numbers;
  for (const std::string& line : lines({{{}, first}, {{}, second}})) {
    const std::size_t at = line.find(R"("tid": )");
    if (line.starts_with(R"({"ph": "X")"))
      numbers.push_back(line.substr(at + 7, line.find(',', at) - at - 7));
  }
  EXPECT_THAT(numbers, ElementsAre("1", "3", "1", "2"));
}

TEST_F(ChromeExport, CountersAreOfTheFirstGpu) {
  EventsHead head;
  head.gpus = {{4, "A", "", "", {}}, {5, "B", "", "", {}}};
  Process process;
  process.ranges = {{kBase + 1'500'000, kBase + 1'500'001, 0}};
  process.threads = {"1"};
  process.trace.set_names({"range"});
  const std::vector<std::string> all =
      lines({{head, process}},
            {{"power", "W", kBase + 2'000'001, 71.5}, {"power", "W", kBase - 1500, 2}});
  ASSERT_GE(all.size(), 2u);
  EXPECT_EQ(
      all[all.size() - 2],
      R"({"ph": "C", "name": "power", "pid": 4, "tid": 0, "ts": 2000.001, "args": {"W": 71.5}})");
  EXPECT_EQ(all.back(),
            R"({"ph": "C", "name": "power", "pid": 4, "tid": 0, "ts": -1.500, "args": {"W": 2}})");
}

TEST_F(ChromeExport, OfNothingIsAnEmptyTrace) {
  EXPECT_THAT(events(Process()), SizeIs(0));
}

}  // namespace
}  // namespace launchgap::recording
