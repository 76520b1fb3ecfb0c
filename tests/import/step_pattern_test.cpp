#include "harness/import/step_pattern.h"

#include <gmock/gmock.h>

#include "harness/core/errors.h"
#include "tests/import/job.h"

namespace launchgap::recording {
namespace {

using namespace testing;
using activity::Purpose;
using activity::Wait;

/// "kernel 0 gap 5 call 4 device 20", with what is not zero.
std::string text_of(const PatternOperation& one) {
  std::string text = fmt::format("{} {}", name_of(one.action), one.stream);
  if (one.gap_ns != 0) text += fmt::format(" gap {}", one.gap_ns);
  if (one.call_ns != 0) text += fmt::format(" call {}", one.call_ns);
  if (one.device_ns != 0) text += fmt::format(" device {}", one.device_ns);
  if (one.bytes != 0) text += fmt::format(" bytes {}", one.bytes);
  if (one.number != 0) text += fmt::format(" number {}", one.number);
  if (one.blocks) text += " blocks";
  return text;
}

Pattern pattern(const Job& job, std::int64_t begin = 1000, std::int64_t end = 100'000) {
  return pattern_of(job.process, {}, {begin, end});
}

std::vector<std::string> lines(const Pattern& pattern) {
  std::vector<std::string> texts;
  for (const PatternOperation& one : pattern.operations) texts.push_back(text_of(one));
  return texts;
}

TEST(StepPattern, HasItsCallsWithTheHostsTimeBetweenThem) {
  Job job = Job()
                .call(1100, 1200, 1)
                .kernel(1300, 1900, 1)
                .call(1250, 1400, 2)
                .kernel(1900, 2500, 2, kOther)
                .call(1500, 1510, 9, Purpose::other, "main", "cudaGetDevice")
                .wait_for_device(1700, 2600);
  const Pattern found = pattern(job);
  EXPECT_THAT(lines(found),
              ElementsAre("kernel 0 gap 100 call 100 device 600",
                          "kernel 1 gap 50 call 150 device 600",
                          "wait_all 0 gap 300 call 900"));
  EXPECT_EQ(found.origin.recorded_ns, 1600);
  EXPECT_EQ(found.origin.recorded_host_ns, 1600);
  EXPECT_THAT(found.origin.remarks, ElementsAre(HasSubstr("after its last call")));
}

TEST(StepPattern, IsOfOneStretchAlone) {
  Job job = Job().call(900, 950, 1).kernel(960, 990, 1).call(1100, 1200, 2).kernel(1300, 1900, 2);
  job.call(5000, 5100, 3).kernel(5200, 5300, 3);
  EXPECT_THAT(lines(pattern(job, 1000, 2000)), ElementsAre("kernel 0 gap 100 call 100 device 600"));
}

TEST(StepPattern, WorkFromBeforeIsAhead) {
  Job job = Job().call(500, 600, 1).kernel(700, 4000, 1).call(1100, 1200, 2).kernel(4000, 4500, 2);
  const Pattern found = pattern(job, 1000, 2000);
  EXPECT_THAT(lines(found),
              ElementsAre("ahead 0 device 3000", "kernel 0 gap 100 call 100 device 500"));
  EXPECT_EQ(found.origin.recorded_ns, 3500);
  EXPECT_EQ(found.origin.recorded_host_ns, 200);
}

TEST(StepPattern, ACallWithinAnotherIsNone) {
  Job job = Job().call(1100, 1300, 1).call(1150, 1250, 1).kernel(1400, 1500, 1);
  EXPECT_THAT(lines(pattern(job)), ElementsAre("kernel 0 gap 100 call 200 device 100"));
}

TEST(StepPattern, CallsOfSeveralThreadsFollowEachOther) {
  Job job = Job()
                .call(1100, 1300, 1)
                .kernel(1400, 1500, 1)
                .call(1200, 1350, 2, Purpose::launch, "second")
                .kernel(1500, 1600, 2);
  const Pattern found = pattern(job, 1000, 1400);
  EXPECT_THAT(lines(found),
              ElementsAre("kernel 0 gap 100 call 200 device 100", "kernel 0 call 50 device 100"));
  EXPECT_THAT(found.origin.remarks,
              Contains("calls that overlapped those of other threads, and follow each other: 1"));
}

TEST(StepPattern, AGraphIsOneLaunchOfItsKernels) {
  Job job = Job()
                .call(1100, 1200, 1, Purpose::launch_graph, "main", "cudaGraphLaunch")
                .kernel(1300, 1400, 1)
                .kernel(1500, 1700, 1, kOther)
                .call(1300, 1350, 2, Purpose::launch_graph, "main", "cudaGraphLaunch")
                .kernel(1800, 1900, 2);
  EXPECT_THAT(lines(pattern(job)),
              ElementsAre("kernel 0 gap 100 call 100 device 100 number 1",
                          "kernel 1 device 200 number 1",
                          "kernel 0 gap 100 call 50 device 100 number 2"));
}

TEST(StepPattern, ALostKernelDoesNothingAndIsSaid) {
  Job job = Job().call(1100, 1200, 1).kernel(1300, 1400, 1).call(1300, 1400, 2);
  const Pattern found = pattern(job);
  EXPECT_THAT(lines(found),
              ElementsAre("kernel 0 gap 100 call 100 device 100", "kernel 0 gap 100 call 100"));
  EXPECT_THAT(found.origin.remarks,
              Contains(HasSubstr(
                  "launches that have lost their kernel, and start one that does nothing: 1")));
}

TEST(StepPattern, CopiesGoWhereTheyWentAndBlockWhereTheyDid) {
  Job job = Job().call(1050, 1060, 9).kernel(1070, 1080, 9);
  job.call(1100, 1500, 1, Purpose::copy, "main", "cudaMemcpyAsync")
      .transfer(1200, 1480, false, kStream, 1);
  job.process.trace.transfers.back().to_host = true;
  job.call(1600, 1700, 2, Purpose::copy, "main", "cudaMemcpyAsync")
      .transfer(1800, 1900, false, kStream, 2);
  job.process.trace.transfers.back().from_host = true;
  job.call(1800, 1850, 3, Purpose::copy, "main", "cudaMemcpyAsync")
      .transfer(1820, 1840, false, kStream, 3);
  job.call(1900, 1950, 4, Purpose::fill, "main", "cudaMemsetAsync")
      .transfer(1960, 1970, true, kStream, 4);
  job.call(2000, 2100, 5, Purpose::copy, "main", "cudaMemcpyAsync");
  const Pattern found = pattern(job);
  EXPECT_THAT(lines(found),
              ElementsAre("kernel 0 gap 50 call 10 device 10",
                          "copy_to_host 0 gap 40 call 400 device 280 bytes 1024 blocks",
                          "copy_to_device 0 gap 100 call 100 device 100 bytes 1024",
                          "copy 0 gap 100 call 50 device 20 bytes 1024",
                          "fill 0 gap 50 call 50 device 10 bytes 1024"));
  EXPECT_THAT(found.origin.remarks,
              Contains(HasSubstr("calls that copy or fill without a record of it, a gap now: 1")));
}

TEST(StepPattern, WaitsAreForWhatTheRecorderSays) {
  Job job = Job()
                .call(1100, 1110, 1)
                .kernel(1120, 3000, 1, kOther)
                .call(1200, 1210, 2)
                .kernel(1220, 1300, 2)
                .call(1250, 1400, 3, Purpose::wait, "main", "cudaStreamSynchronize");
  Wait wait{1250, 1400, 3};
  wait.type = Wait::kHostForStream;
  wait.stream = job.process.stream(kStream);
  job.process.trace.waits.push_back(wait);
  EXPECT_THAT(lines(pattern(job)), Contains("wait 1 gap 40 call 150"));
}

TEST(StepPattern, WaitsThatAreNotToldAreForTheStreamThatWasDoneLast) {
  Job job = Job()
                .call(1100, 1110, 1)
                .kernel(1120, 3000, 1, kOther)
                .call(1200, 1210, 2)
                .kernel(1220, 1300, 2)
                .call(1250, 1400, 3, Purpose::wait, "main", "cudaStreamSynchronize");
  const Pattern found = pattern(job);
  EXPECT_THAT(lines(found), Contains("wait 1 gap 40 call 150")) << "the other one is not done";
  EXPECT_THAT(
      found.origin.remarks,
      Contains(HasSubstr(
          "waits for a stream or an event that is not told, now for what was done last: 1")));
}

TEST(StepPattern, WaitsInTheMiddleOfAStreamAreForItsLastWorkThatWasDone) {
  Job job = Job()
                .call(1100, 1110, 1)
                .kernel(1120, 1300, 1)
                .call(1120, 1130, 2)
                .kernel(1300, 9000, 2)
                .call(1250, 1400, 3, Purpose::wait, "main", "cudaEventSynchronize");
  EXPECT_THAT(lines(pattern(job)),
              ElementsAre("kernel 0 gap 100 call 10 device 180",
                          "record_event 0 number 1",
                          "kernel 0 gap 10 call 10 device 7700",
                          "wait 0 gap 120 call 150 number 1"));
}

TEST(StepPattern, EventsThatAreToldAreRecordedAndWaitedForAgain) {
  Job job = Job()
                .call(1100, 1110, 1)
                .kernel(1120, 1300, 1)
                .call(1120, 1130, 2, Purpose::other, "main", "cudaEventRecord")
                .call(1140, 1150, 3, Purpose::other, "main", "cudaStreamWaitEvent")
                .call(1200, 1210, 4)
                .kernel(1300, 1400, 4, kOther)
                .call(1250, 1400, 5, Purpose::wait, "main", "cudaEventSynchronize");
  Wait stream_waits{1140, 1150, 3};
  stream_waits.type = Wait::kStreamForEvent;
  stream_waits.stream = job.process.stream(kOther);
  stream_waits.event_stream = job.process.stream(kStream);
  stream_waits.recorded_by = 2;
  Wait host_waits = stream_waits;
  host_waits.correlation = 5;
  host_waits.type = Wait::kHostForEvent;
  job.process.trace.waits = {stream_waits, host_waits};
  const Pattern found = pattern(job, 1000, 1400);
  EXPECT_THAT(lines(found),
              ElementsAre("kernel 0 gap 100 call 10 device 180",
                          "record_event 0 number 1",
                          "wait_event 1 gap 30 call 10 number 1",
                          "kernel 1 gap 50 call 10 device 100",
                          "wait 0 gap 40 call 150 number 1"));
  EXPECT_THAT(found.origin.remarks, IsEmpty());
}

TEST(StepPattern, EventsThatAreNotToldAreSaid) {
  Job job = Job().call(1100, 1110, 1).kernel(1120, 1300, 1);
  job.call(1140, 1150, 3, Purpose::other, "main", "cudaStreamWaitEvent");
  EXPECT_THAT(pattern(job).origin.remarks,
              Contains(HasSubstr("waits of streams for an event that is not told, left out: 1")));
}

TEST(StepPattern, BlocksAreAllocatedAndGivenBackAgain) {
  Job job = Job().call(1050, 1060, 9).kernel(1070, 1080, 9);
  const auto memory = [&](std::int64_t at,
                          std::uint32_t correlation,
                          bool release,
                          std::uint64_t address,
                          std::uint32_t kind = 3) {
    const char* const name = release ? "cudaFree" : "cudaMalloc";
    job.call(
        at, at + 10, correlation, release ? Purpose::release : Purpose::allocate, "main", name);
    job.process.trace.memory.push_back({at, address, 4096, 0, correlation, kind, release, 0});
  };
  memory(1100, 1, false, 0x1000);
  memory(1200, 2, true, 0x9000);
  memory(1300, 3, true, 0x1000);
  memory(1400, 4, false, 0x1000);
  memory(1500, 5, false, 0x2000, 2);
  const Pattern found = pattern(job);
  EXPECT_THAT(lines(found),
              ElementsAre("kernel 0 gap 50 call 10 device 10",
                          "allocate 0 gap 40 call 10 bytes 4096 number 1",
                          "release 0 gap 190 call 10 bytes 4096 number 1",
                          "allocate 0 gap 90 call 10 bytes 4096 number 2"));
  EXPECT_THAT(
      found.origin.remarks,
      Contains(HasSubstr("blocks of memory from before that are given back, a gap now: 1")));
}

TEST(StepPattern, BlocksOfAPoolAreOfAPoolAgain) {
  Job job = Job().call(1050, 1060, 9).kernel(1070, 1080, 9);
  job.call(1100, 1110, 1, Purpose::allocate, "main", "cudaMallocAsync");
  job.process.trace.memory.push_back({1100, 0x1000, 4096, 0, 1, 3, false, 0});
  EXPECT_THAT(lines(pattern(job)), Contains(StartsWith("allocate_pooled 0")));
}

TEST(StepPattern, CopiesOfAGraphArePartOfIt) {
  Job job = Job()
                .call(1100, 1200, 1, Purpose::launch_graph, "main", "cudaGraphLaunch")
                .kernel(1300, 1400, 1)
                .transfer(1400, 1700, false, kStream, 1)
                .kernel(1700, 1800, 1);
  EXPECT_THAT(lines(pattern(job)),
              ElementsAre("kernel 0 gap 100 call 100 device 100 number 1",
                          "copy 0 device 300 bytes 1024 number 1",
                          "kernel 0 device 100 number 1"));
}

TEST(StepPattern, AnEventIsNeverRecordedWithinAGraph) {
  Job job = Job()
                .call(1100, 1110, 1, Purpose::launch_graph, "main", "cudaGraphLaunch")
                .kernel(1120, 1300, 1)
                .kernel(1310, 1400, 1, kOther)
                .call(1120, 1130, 2)
                .kernel(1300, 9000, 2)
                .call(1250, 1305, 3, Purpose::wait, "main", "cudaEventSynchronize");
  const auto found = lines(pattern(job));
  EXPECT_THAT(found, Contains("record_event 0 number 1"));
  EXPECT_LT(std::ranges::find(found, "kernel 1 device 90 number 1"),
            std::ranges::find(found, "record_event 0 number 1"));
}

TEST(StepPattern, WorkFromBeforeIsAheadAsLongAsItIsBusy) {
  Job job =
      Job().kernel(900, 1100, 7).kernel(9000, 9001, 8).call(1100, 1200, 2).kernel(9500, 9600, 2);
  EXPECT_THAT(lines(pattern(job, 1000, 9700)), Contains("ahead 0 device 101"));
}

TEST(StepPattern, AWaitForWorkFromBeforeIsForItsStream) {
  Job job = Job()
                .call(500, 600, 1)
                .kernel(700, 20'000, 1, kOther)
                .call(1100, 1200, 2)
                .kernel(1300, 1400, 2)
                .call(1500, 20'010, 3, Purpose::wait, "main", "cudaStreamSynchronize");
  EXPECT_THAT(lines(pattern(job)),
              ElementsAre("ahead 1 device 19000",
                          "kernel 0 gap 100 call 100 device 100",
                          "wait 1 gap 300 call 18510"));
  EXPECT_EQ(pattern(job).origin.incomplete, "");
}

TEST(StepPattern, AWaitForWhatIsNotOfTheStepLeavesItIncomplete) {
  Job job = Job()
                .call(500, 600, 1)
                .kernel(700, 20'000, 1)
                .call(510, 610, 2)
                .kernel(20'000, 60'000, 2)
                .call(1100, 20'010, 3, Purpose::wait, "main", "cudaEventSynchronize")
                .call(20'100, 20'200, 4)
                .kernel(60'000, 60'100, 4);
  const Pattern found = pattern(job);
  EXPECT_EQ(found.origin.incomplete, "it waited for what is not of the step");
  EXPECT_THAT(found.origin.remarks, Contains("waits for what is not of the step, a gap now: 1"));
  EXPECT_EQ(found.origin.other_calls_ns, 18'910);
}

TEST(StepPattern, WithoutOneClockNothingIsAheadAndNoTimeTellsWhatWaited) {
  Job job = Job()
                .call(500, 600, 1)
                .kernel(700, 2'000'000'000, 1)
                .call(1100, 1200, 2, Purpose::copy, "main", "cudaMemcpyAsync")
                .transfer(800, 900, false, kStream, 2)
                .call(1300, 1400, 3)
                .kernel(2'000'000'000, 2'000'001'000, 3)
                .call(1500, 1600, 4, Purpose::wait, "main", "cudaStreamSynchronize");
  job.process.trace.transfers.back().from_host = true;
  const Pattern found = pattern_of(job.process, {}, {1000, 2000, false});
  EXPECT_THAT(lines(found),
              ElementsAre("copy_to_device 0 gap 100 call 100 device 100 bytes 1024",
                          "kernel 0 gap 100 call 100 device 1000",
                          "wait_all 0 gap 100 call 100"));
  EXPECT_EQ(found.origin.recorded_ns, 600);
  EXPECT_THAT(found.origin.incomplete, HasSubstr("the clocks of its host and its GPU disagree"));
}

TEST(StepPattern, IsIncompleteWhereMuchIsLost) {
  Job lost = Job().call(1100, 1200, 1).kernel(1300, 1400, 1).call(1300, 1400, 2);
  EXPECT_EQ(pattern(lost).origin.incomplete, "the kernels of some of its launches are lost");
  Job orphans = Job().call(1100, 1200, 1).kernel(1300, 1400, 1).kernel(2000, 3000, 77);
  EXPECT_EQ(pattern(orphans).origin.incomplete, "calls of some of its kernels are lost");
  Job several = Job().call(1100, 1200, 1).kernel(1300, 1400, 1).call(1300, 1400, 2);
  several.kernel(1500, 1600, 2, kOtherGpu).call(1500, 1600, 3).kernel(1700, 1800, 3);
  EXPECT_EQ(pattern(several).origin.incomplete, "it works on several GPUs");
}

TEST(StepPattern, IsOfTheGpuThatWorkedMost) {
  Job job = Job()
                .call(1100, 1110, 1)
                .kernel(1120, 1130, 1, kOtherGpu)
                .call(1200, 1210, 2)
                .kernel(1220, 1230, 2)
                .call(1300, 1310, 3)
                .kernel(1320, 1330, 3);
  Gpu gpus[2];
  gpus[0].name = "first";
  gpus[1].number = 1;
  const Pattern found = pattern_of(job.process, gpus, {1000, 2000});
  EXPECT_EQ(found.origin.gpu, "first");
  EXPECT_THAT(found.operations, SizeIs(2));
  EXPECT_THAT(found.origin.remarks, Contains(HasSubstr("launches for other GPUs, left out: 1")));
}

TEST(StepPattern, RefusesWhatCannotBeDoneAgain) {
  EXPECT_THAT([] { pattern(Job().call(1100, 1200, 1)); },
              ThrowsMessage<Error>(HasSubstr("it has no kernels")));
  Job long_job = Job().call(1100, 1200, 1).kernel(1300, 4'000'000'000'000, 1);
  EXPECT_THAT([&] { pattern(long_job); }, ThrowsMessage<Error>(HasSubstr("a pattern may last")));
  Job many = Job();
  for (std::uint32_t i = 0; i < 2000; ++i) {
    many.call(1100 + 10 * i, 1105 + 10 * i, i + 1);
    many.kernel(1106 + 10 * i, 1110 + 10 * i, i + 1, Stream{0, 1, i});
  }
  EXPECT_THAT([&] { pattern(many); }, ThrowsMessage<Error>(HasSubstr("there may be 128")));
}

TEST(WantedStep, IsANumberANameOrBoth) {
  const auto parts = [](std::string_view text) {
    const WantedStep step = WantedStep::parse(text);
    return std::pair(step.name, step.number);
  };
  EXPECT_THAT(parts(""), Pair("", std::nullopt));
  EXPECT_THAT(parts("12"), Pair("", Optional(12)));
  EXPECT_THAT(parts("train"), Pair("train", std::nullopt));
  EXPECT_THAT(parts("train#7"), Pair("train", Optional(7)));
  EXPECT_THAT(parts("a#b"), Pair("a#b", std::nullopt));
}

}  // namespace
}  // namespace launchgap::recording
