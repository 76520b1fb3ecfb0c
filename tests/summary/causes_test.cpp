#include "harness/summary/causes.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/record/records.h"
#include "tests/sentences/said.h"
#include "tests/summary/written_session.h"

namespace launchgap {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// What a recorded process shows; nothing is wrong with it until something is put in.
struct RecordedRun {
  std::string device = "GPU-1";
  int replicate = 0;
  RecordingRecord recording;
  JobRecord job;
  std::vector<CountedKernels> kernels;
  double length_ns = 1e9, idle_share = 0.1, program_ns = 5e7, starting_ns = 0, queued_ns = 0;
  std::size_t on_idle = 100, on_busy = 900, graphs = 0;
  double call_ns = 5000, between_ns = 5000, kernel_ns = 50'000, delay_ns = 7000;
  bool blocking =
      false;  // calls end 1 µs after their kernels, of which some take three times as long
  std::size_t long_kernels = 0;  // the first of a state's take 50 µs
  std::vector<double> steps, collectives;

  RecordedRun() {
    recording.file = "rank0.json";
    recording.pid = 1;
  }
};

class Causes : public WrittenSession {
 protected:
  void write(const RecordedRun& run) {
    RecordWriter writer = begin_run(run.device, "recorded", "recorded", run.replicate);
    writer.write(record_to_json(run.recording));
    TraceRecord trace;
    trace.case_name = "recorded/launch";
    trace.state = "recorded";
    trace.kernels = run.kernels;
    writer.write(record_to_json(trace));
    writer.write(record_to_json(run.job));
    const auto launches = [&](const char* state, std::size_t n) {
      if (n == 0) return;
      std::vector<double> calls(n, run.call_ns), kernels(n, run.kernel_ns);
      std::fill_n(kernels.begin(), std::min(n, run.long_kernels), 50'000);
      for (std::size_t i = 0; run.blocking && i < n; ++i) {
        if (i % 3 == 0) kernels[i] *= 3;
        calls[i] = run.delay_ns + kernels[i] + 1000;
      }
      of_case(writer,
              std::string("recorded/launch/stream:") + state,
              {{"api_record_ns", calls},
               {"since_last_ns", std::vector<double>(n, run.between_ns)},
               {"launch_ns", std::vector<double>(n, run.delay_ns)},
               {"kernel_ns", kernels}});
    };
    launches("idle", run.on_idle);
    launches("busy", run.on_busy);
    if (run.graphs > 0) {
      of_case(writer,
              "recorded/graph/stream:idle",
              {{"api_record_ns", std::vector<double>(run.graphs, run.call_ns)},
               {"since_last_ns", std::vector<double>(run.graphs, run.between_ns)}});
    }
    of_case(writer,
            "recorded/job",
            {{"step_ns", {run.length_ns}},
             {"gpu_idle_share", {run.idle_share}},
             {"idle_program_ns", {run.program_ns}},
             {"idle_launch_ns", {run.starting_ns}},
             {"idle_queued_ns", {run.queued_ns}},
             {"idle_calling_ns", {0}}});
    if (!run.steps.empty()) {
      std::vector<Column> columns = {{"step_ns", run.steps}};
      if (!run.collectives.empty()) columns.push_back({"collectives_ns", run.collectives});
      of_case(writer, "recorded/step", columns);
    }
    end(writer);
  }

  std::vector<std::string> codes() {
    found = said(causes(read()));
    std::vector<std::string> names;
    for (const Finding& cause : found) names.emplace_back(cause.code);
    return names;
  }
  std::vector<std::string> codes(const RecordedRun& run) {
    write(run);
    return codes();
  }

  std::vector<Finding> found;
  /// All of one's evidence.
  std::string evidence(std::size_t i) const {
    std::string text;
    for (const Evidence& part : found[i].evidence) text += text_of(part) + "; ";
    return text;
  }

 private:
  static void of_case(RecordWriter& writer,
                      const std::string& name,
                      const std::vector<Column>& columns) {
    Block block({}, columns.front().values.size());
    for (std::size_t i = 0; i < columns.front().values.size(); ++i) block.keep(0);
    block.close();
    writer.write_samples(name, 0, 0, block, columns);
    summary(writer, name, "ok");
  }
};

CountedKernels a_kernel(const char* name, std::uint64_t total_ns) {
  CountedKernels kernel;
  kernel.name = name;
  kernel.grid = kernel.block = {1, 1, 1};
  kernel.count = 1000;
  kernel.total_ns = total_ns;
  return kernel;
}

TEST_F(Causes, AreNoneOfAJobThatKeepsItsDeviceBusy) {
  RecordedRun run;
  run.kernels = {a_kernel("gemm", 900'000'000)};
  EXPECT_THAT(codes(run), IsEmpty());
}

TEST_F(Causes, AreNotLookedForWithoutAJobRecord) {
  RecordWriter writer = begin_run("GPU-1", "recorded", "recorded", 0);
  end(writer);
  EXPECT_THAT(codes(), IsEmpty()) << "as older versions wrote it";
}

TEST_F(Causes, StallsAreToldFromAShareOfTheRecordingOn) {
  RecordedRun run;
  run.job.stalls = {{"wait", "cudaStreamSynchronize", 250, 30'000'000, 60'000'000, 3'000'000},
                    {"wait", "cudaEventSynchronize", 3, 1000, 1000, 900},
                    {"allocate", "cudaMalloc", 90, 40'000'000, 49'000'000, 2'000'000}};
  ASSERT_THAT(codes(run), ElementsAre("wait-stalls")) << "allocating costs 4.9 %";
  EXPECT_EQ(found[0].severity, Severity::act);
  EXPECT_THAT(found[0].sentence,
              HasSubstr("up to 60.0 ms of idle time is avoidable, 6 % of the recording"));
  EXPECT_THAT(
      evidence(0),
      HasSubstr("cudaStreamSynchronize: the next kernel arrived late 250 times, 60.0 ms in all, "
                "at most 3.00 ms; cudaEventSynchronize: the next kernel arrived late 3 times"));
  EXPECT_NEAR(*found[0].share, 0.06, 1e-4);
}

TEST_F(Causes, AllocationHasACodeOfItsOwn) {
  RecordedRun run;
  run.job.stalls = {{"allocate", "cudaFree", 90, 40'000'000, 80'000'000, 2'000'000}};
  EXPECT_THAT(codes(run), ElementsAre("allocation-stalls"));
}

TEST_F(Causes, PausesAreToldFromAHostThatIsSlowAtEachLaunch) {
  RecordedRun run;
  run.idle_share = 0.5;
  run.program_ns = 4.5e8;
  run.on_idle = 900;
  run.on_busy = 100;
  run.between_ns = 60'000;
  RecordedRun pausing = run;
  pausing.replicate = 1;
  pausing.job.pauses = {4, 400'000'000, 150'000'000, ""};
  write(run);
  write(pausing);
  ASSERT_THAT(codes(), ElementsAre("slow-host", "program-pauses"));
  EXPECT_THAT(found[0].sentence, HasSubstr("it spends 60.0 µs from one launch call to the next"));
  EXPECT_EQ(found[0].replicate, 0);
  EXPECT_THAT(evidence(1),
              HasSubstr("pauses of 1 ms or more outside of CUDA: 4; the longest: 150 ms"));
}

TEST_F(Causes, KernelsThatAreShorterThanALaunchAreTold) {
  RecordedRun run;
  run.idle_share = 0.6;
  run.program_ns = 1e8;
  run.on_idle = 900;
  run.on_busy = 100;
  run.kernel_ns = 2000;
  run.starting_ns = 3e8;
  ASSERT_THAT(codes(run), ElementsAre("short-kernels"));
  EXPECT_THAT(found[0].sentence,
              HasSubstr("100 % of the kernels are shorter than a launch call (5.00 µs)"));
}

TEST_F(Causes, ShortKernelsAreHalfOfThem) {
  RecordedRun run;
  run.idle_share = 0.6;
  run.program_ns = 1e8;
  run.on_idle = 1000;
  run.on_busy = 0;
  run.kernel_ns = 2000;
  run.starting_ns = 0.5 * run.length_ns;
  run.long_kernels = 501;
  write(run);
  const auto is_short = testing::Field(&Finding::code, "short-kernels");
  EXPECT_THAT(causes(read()), Not(Contains(is_short)));
  run.replicate = 1;
  run.long_kernels = 500;
  write(run);
  EXPECT_THAT(causes(read()), Contains(is_short));
}

TEST_F(Causes, ShortKernelsAskForACostAndForManyLaunches) {
  RecordedRun run;
  run.idle_share = 0.6;
  run.program_ns = 1e8;
  run.kernel_ns = 2000;
  run.starting_ns = 0.04 * run.length_ns;
  EXPECT_THAT(codes(run), IsEmpty()) << "launching costs 4 %";
  run.replicate = 1;
  run.starting_ns = 0.5 * run.length_ns;
  run.on_idle = 16;
  run.on_busy = 0;
  EXPECT_THAT(codes(run), IsEmpty()) << "16 launches are no habit";
  run.replicate = 2;
  run.on_idle = 1000;
  run.job.late_starts = {2, 480'000'000, 300'000'000, ""};
  EXPECT_THAT(codes(run), IsEmpty()) << "two of them are nearly all of it";
}

TEST_F(Causes, LaunchesThatBlockAreNotTakenForShortKernels) {
  RecordedRun run;
  run.idle_share = 0.6;
  run.starting_ns = 0.5 * run.length_ns;
  run.on_idle = 1000;
  run.on_busy = 0;
  run.blocking = true;
  ASSERT_THAT(codes(run), ElementsAre("blocking-launches"));
  EXPECT_THAT(found[0].sentence, HasSubstr("Each launch call returns when its kernel has ended"));
}

TEST_F(Causes, AGpuThatWaitsForEachLaunchIsToldAlsoWhereKernelsAreLong) {
  RecordedRun run;
  run.idle_share = 0.77;
  run.program_ns = 1e8;
  run.starting_ns = 0.61 * run.length_ns;
  run.on_idle = 410;
  run.on_busy = 590;
  ASSERT_THAT(codes(run), ElementsAre("launch-gaps"));
  EXPECT_THAT(found[0].sentence, HasSubstr("61 % of the time between a launch call"));
}

TEST_F(Causes, KernelsThatBeginLateAreToldAndNotTheWaits) {
  RecordedRun run;
  run.idle_share = 0.9;
  run.starting_ns = 0.8 * run.length_ns;
  run.delay_ns = 4.4e6;
  ASSERT_THAT(codes(run), ElementsAre("late-kernels"));
  EXPECT_THAT(found[0].sentence, HasSubstr("A kernel begins 4.40 ms after its launch call"));
}

TEST_F(Causes, KernelsAreNotLateWhereItIsTheCallThatTakesLong) {
  RecordedRun run;
  run.idle_share = 0.67;
  run.starting_ns = 0.66 * run.length_ns;
  run.call_ns = 2e6;
  run.delay_ns = 2.001e6;
  ASSERT_THAT(codes(run), ElementsAre("late-kernels"));
  EXPECT_EQ(found[0].sentence,
            "A launch call takes 2.00 ms (p50) although its stream is idle; 2 to 30 µs are usual.");
  EXPECT_THAT(found[0].remedy, HasSubstr("what the driver does in the call"));
}

TEST_F(Causes, OneLongCallIsACauseOfItsOwn) {
  RecordedRun run;
  run.length_ns = 1.912e9;
  run.idle_share = 0.9;
  run.program_ns = 1.455e9 + 4e7;
  run.between_ns = 597'000;
  run.job.long_calls = {1, 1'455'000'000, 1'455'000'000, "cuModuleLoadData"};
  ASSERT_THAT(codes(run), ElementsAre("long-call"));
  EXPECT_THAT(found[0].sentence, HasSubstr("One call of cuModuleLoadData took 1.46 s of 1.91 s"));
}

TEST_F(Causes, LongCallsAreCountedAndTheLongestNamed) {
  RecordedRun run;
  run.job.long_calls = {12, 300'000'000, 80'000'000, "cuModuleLoadData"};
  ASSERT_THAT(codes(run), ElementsAre("long-call"));
  EXPECT_EQ(found[0].sentence,
            "12 long calls took 300 ms of 1.00 s, and the GPU was idle meanwhile; the longest is "
            "cuModuleLoadData, 80.0 ms.");
}

TEST_F(Causes, OneLongCallOfTheAllocatorMakesTheContext) {
  RecordedRun run;
  run.job.stalls = {{"allocate", "cudaFree", 1, 407'000'000, 407'000'000, 407'000'000}};
  ASSERT_THAT(codes(run), ElementsAre("context-creation"));
  EXPECT_EQ(found[0].severity, Severity::note);
  EXPECT_THAT(found[0].sentence, HasSubstr("One call of cudaFree took 407 ms"));
}

TEST_F(Causes, PythonThatIsTracedExcusesAHost) {
  RecordedRun run;
  run.idle_share = 0.6;
  run.program_ns = 5e8;
  run.between_ns = 60'000;
  run.job.python_calls = 15'230;
  ASSERT_THAT(codes(run), ElementsAre("slow-host"));
  EXPECT_EQ(found[0].severity, Severity::note);
  EXPECT_THAT(found[0].sentence, HasSubstr("the recorder traced Python too"));
  EXPECT_THAT(evidence(0), HasSubstr("Python calls that were traced: 1.523e+04"));
  EXPECT_FALSE(found[0].unknown.empty());
}

TEST_F(Causes, QueuedWorkThatWaitsIsAQuestion) {
  RecordedRun run;
  run.idle_share = 0.64;
  run.program_ns = 1e7;
  run.queued_ns = 0.56 * run.length_ns;
  ASSERT_THAT(codes(run), ElementsAre("queued-work-waits"));
  EXPECT_EQ(found[0].severity, Severity::open);
  EXPECT_THAT(found[0].sentence, HasSubstr("it waits for another stream, a copy or another GPU."));
}

TEST_F(Causes, QueuedWorkOfAGraphMayBeKernelsWithoutARecord) {
  RecordedRun run;
  run.idle_share = 0.64;
  run.program_ns = 1e7;
  run.queued_ns = 0.56 * run.length_ns;
  run.job.queued_graph_ns = 500'000'000;
  ASSERT_THAT(codes(run), ElementsAre("queued-work-waits"));
  EXPECT_EQ(
      found[0].sentence,
      "The GPU idles 56 % of the time although work is queued: 50 % before work of a graph, of "
      "which kernels may lack a record.");
  EXPECT_THAT(found[0].unknown, HasSubstr("whether all of its kernels have a record"));
  EXPECT_THAT(found[0].remedy, HasSubstr("--cuda-graph-trace=node"));
}

TEST_F(Causes, QueuedWorkThatIsSeldomOfAGraphWaitsForSomethingElse) {
  RecordedRun run;
  run.idle_share = 0.64;
  run.program_ns = 1e7;
  run.queued_ns = 0.56 * run.length_ns;
  run.job.queued_graph_ns = 200'000'000;
  ASSERT_THAT(codes(run), ElementsAre("queued-work-waits"));
  EXPECT_THAT(found[0].sentence, HasSubstr("it waits for another stream"));
  EXPECT_THAT(evidence(0), HasSubstr("idle before queued work of a graph: 200 ms"));
}

TEST_F(Causes, FromOneInAHundredUnknownOnNothingRestsOnIdleness) {
  RecordedRun run;
  run.idle_share = 0.8;
  run.program_ns = 7e8;
  run.between_ns = 60'000;
  run.job.stalls = {{"wait", "cudaStreamSynchronize", 250, 300'000'000, 600'000'000, 3'000'000}};
  run.job.pauses = {4, 100'000'000, 50'000'000, ""};
  run.job.all_launches = 1000;
  run.job.unknown_launches = 9;
  run.job.unknown_ns = 9'000'000;
  EXPECT_THAT(codes(run), Contains("wait-stalls")) << "0.9 % unknown";
  for (const auto& [launches, ns] : {std::pair(10u, 0), std::pair(0u, 10'000'000)}) {
    ++run.replicate;
    run.job.unknown_launches = launches;
    run.job.unknown_ns = ns;
    write(run);
    codes();
    EXPECT_TRUE(std::ranges::none_of(
        found, [&](const Finding& cause) { return cause.replicate == run.replicate; }))
        << launches << " launches, " << ns << " ns";
  }
}

TEST_F(Causes, AHostIsNotSlowWhereItsLaunchesFindWork) {
  RecordedRun run;
  run.idle_share = 0.5;
  run.program_ns = 4.5e8;
  run.kernel_ns = 2000;
  EXPECT_THAT(codes(run), IsEmpty()) << "90 % of the launches queue";
}

TEST_F(Causes, FirstLaunchesAreToldWhereTheyCostOrExplainTheTail) {
  const struct {
    const char* what;
    FirstLaunches firsts;
    bool told;
  } cases[] = {
      {"they cost 2 %", {20, 1e-9, 40'000, 5000, 5000, 20'000'000, 50, 5}, true},
      {"they cost little, and explain the tail",
       {20, 1e-9, 20'000, 5000, 5000, 300'000, 50, 20},
       true},
      {"they cost little and explain little",
       {20, 1e-9, 20'000, 5000, 5000, 300'000, 50, 5},
       false},
      {"they take a hundred times as long", {2, 1e-3, 500'000, 5000, 5000, 1'000'000, 50, 2}, true},
      {"chance explains them", {20, 0.02, 40'000, 5000, 5000, 20'000'000, 50, 20}, false},
      {"so are those right after them", {20, 1e-9, 40'000, 5000, 35'000, 20'000'000, 50, 5}, false},
      {"they are hardly slower", {20, 1e-9, 7000, 5000, 5000, 20'000'000, 50, 20}, false},
  };
  int replicate = 0;
  for (const auto& [what, firsts, told] : cases) {
    RecordedRun run;
    run.replicate = replicate++;
    run.job.first_launches = firsts;
    write(run);
    codes();
    const bool is_told = std::ranges::any_of(found, [&](const Finding& cause) {
      return cause.replicate == run.replicate && cause.code == "first-launches";
    });
    EXPECT_EQ(is_told, told) << what;
  }
}

TEST_F(Causes, FewFirstLaunchesAreToldByTheirNumberAndNotByTheirMedian) {
  RecordedRun run;
  run.job.extent_ns = 1'000'000'000;
  run.job.first_launches = {2, 1e-3, 787'000, 3880, 3880, 1'566'000, 82, 2};
  LaunchTail& tail = run.job.tail.emplace();
  tail.launches = 8190;
  tail.time_ns = 35'300'000;
  tail.p50_ns = 3916;
  tail.parts = {{"first-launch", 2, 1'574'000, 1'554'000, 2, "Fan1"},
                {"usual", 8188, 33'726'000, 6'000, 8190, ""}};
  ASSERT_THAT(codes(run), ElementsAre("first-launches"));
  EXPECT_EQ(found[0].sentence,
            "2 of 8,190 launches took 1.57 ms, 4.5 % of all launch time, both among the first 2: "
            "first launches, which probably loaded code.");
  EXPECT_EQ(found[0].severity, Severity::note);
}

TEST_F(Causes, FirstLaunchesOfOneKernelAreSaidInTheSingular) {
  RecordedRun run;
  run.job.first_launches = {1, 1e-3, 700'000, 3880, 3880, 6'000'000, 82, 1};
  ASSERT_THAT(codes(run), ElementsAre("first-launches"));
  EXPECT_THAT(found[0].sentence, HasSubstr("6.00 ms more in all, for 1 kernel."));
}

TEST_F(Causes, LongLaunchesThatNothingExplainsNameTheKernelThatMostAreOf) {
  RecordedRun run;
  run.job.extent_ns = 1'000'000'000;
  LaunchTail& tail = run.job.tail.emplace();
  tail.launches = 8190;
  tail.time_ns = 40'000'000;
  tail.p50_ns = 3916;
  tail.parts = {{"unexplained", 80, 10'000'000, 600'000, 8000, "gomory<int>(int*)", 0, 8'000'000},
                {"usual", 8110, 30'000'000, 6'000, 8190, ""}};
  ASSERT_THAT(codes(run), ElementsAre("unexplained-launches"));
  EXPECT_EQ(
      found[0].sentence,
      "80 of 8,190 launches took 10.0 ms, 25 % of all launch time: nothing in the recording says "
      "why; launches of gomory<int> are 80 % of it.");
  EXPECT_THAT(evidence(0), HasSubstr("most of it: gomory<int>, 8.00 ms"));
}

TEST_F(Causes, AKernelIsNamedOfTwoLongLaunchesAndOfHalfOfTheirTime) {
  RecordedRun run;
  run.job.extent_ns = 1'000'000'000;
  LaunchTail& tail = run.job.tail.emplace();
  tail.launches = 1000;
  tail.time_ns = 40'000'000;
  tail.p50_ns = 4000;
  const auto names_it = [&](std::uint64_t launches, std::int64_t of_it_ns) {
    tail.parts = {{"unexplained", launches, 10'000'000, 6'000'000, 900, "gemm", 0, of_it_ns},
                  {"usual", 1000 - launches, 30'000'000, 6'000, 1000, ""}};
    ++run.replicate;
    write(run);
    for (const Finding& cause : causes(read())) {
      if (cause.replicate == run.replicate)
        return cause.sentence.find("; launches of gemm are") != std::string::npos;
    }
    ADD_FAILURE() << "no cause of run " << run.replicate;
    return false;
  };
  EXPECT_TRUE(names_it(2, 5'000'000));
  EXPECT_FALSE(names_it(2, 4'999'999));
  EXPECT_FALSE(names_it(1, 10'000'000));
}

TEST_F(Causes, AHostThatLaunchesGraphsAloneMayBeSlowToo) {
  RecordedRun run;
  run.idle_share = 0.83;
  run.program_ns = 5.7e8;
  run.on_idle = run.on_busy = 0;
  run.graphs = 300;
  run.call_ns = 9000;
  run.between_ns = 51'000;
  ASSERT_THAT(codes(run), ElementsAre("slow-host"));
  EXPECT_THAT(found[0].sentence, HasSubstr("51.0 µs from one launch call to the next"));
  EXPECT_THAT(evidence(0), Not(HasSubstr("kernel, p50"))) << "kernels of graphs are not launched";
}

TEST_F(Causes, CallsOfSeveralThreadsHaveAShareOfTheTimeAtMost) {
  RecordedRun run;
  run.job.extent_ns = 1'000'000'000;
  LaunchTail& tail = run.job.tail.emplace();
  tail.launches = 1600;
  tail.time_ns = 2'800'000'000;
  tail.covered_ns = 400'000'000;
  tail.parts = {{"first-launch", 1600, 2'800'000'000, 360'000'000, 1600, "", 400'000'000}};
  ASSERT_THAT(codes(run), ElementsAre("first-launches"));
  EXPECT_DOUBLE_EQ(*found[0].share, 0.4);
}

TEST_F(Causes, AKernelThatChangedIsTold) {
  RecordedRun run;
  CountedKernels changed = a_kernel("gemm\x1b[31m", 500'000'000);
  changed.repeats = 40;
  changed.early_ns = 10e6;
  changed.late_ns = 13e6;
  changed.change_chance = 1e-5;
  run.kernels = {changed, a_kernel("other", 100'000'000)};
  ASSERT_THAT(codes(run), ElementsAre("kernel-changed"));
  EXPECT_EQ(found[0].severity, Severity::act);
  EXPECT_THAT(found[0].sentence, HasSubstr("takes 13.0 ms in the later half"));
  EXPECT_THAT(found[0].sentence, Not(HasSubstr("\x1b"))) << "names are others' text";
}

TEST_F(Causes, LongLaunchesAreToldByWhatMadeThemLong) {
  RecordedRun run;
  run.job.extent_ns = 2'000'000'000;
  LaunchTail& tail = run.job.tail.emplace();
  tail.launches = 9628;
  tail.time_ns = 950'000'000;
  tail.p50_ns = 9000;
  tail.p99_ns = 40'000;
  tail.parts = {{"first-launch", 2, 836'000'000, 726'000'000, 4, "gemm"},
                {"unexplained", 94, 4'000'000, 100'000, 9000, "gemm"},
                {"usual", 9532, 110'000'000, 40'000, 9628, ""}};
  ASSERT_THAT(codes(run), ElementsAre("first-launches"));
  EXPECT_EQ(found[0].severity, Severity::act);
  EXPECT_EQ(
      found[0].sentence,
      "2 of 9,628 launches took 836 ms, 88 % of all launch time, both among the first 4: first "
      "launches, which probably loaded code.");
  EXPECT_THAT(found[0].remedy, HasSubstr("Warm up"));
  EXPECT_NEAR(*found[0].share, 0.418, 1e-9);
  const struct {
    const char* cause;
    const char* code;
    Severity severity;
    const char* says;
  } others[] = {
      {"queue-full", "queue-full", Severity::note, "waiting for room in the GPU's queue"},
      {"overlapping-call", "overlapping-calls", Severity::act, "another thread was in cudaMalloc"},
      {"recorder", "recorder-overhead", Severity::note, "the recorder took this time"},
      {"host-pause", "host-pauses", Severity::act, "off its CPU"},
      {"slow-kernel", "slow-launching-kernel", Severity::note, "launches of cudaMalloc always"},
      {"unexplained", "unexplained-launches", Severity::open, "nothing in the recording says why"},
  };
  for (const auto& [cause, code, severity, says] : others) {
    ++run.replicate;
    tail.parts[0] = {cause, 20, 836'000'000, 726'000'000, 9000, "cudaMalloc"};
    write(run);
    codes();
    const auto own = std::ranges::find(found, std::optional(run.replicate), &Finding::replicate);
    ASSERT_NE(own, found.end()) << cause;
    EXPECT_EQ(own->code, code);
    EXPECT_EQ(own->severity, severity) << cause;
    EXPECT_THAT(own->sentence, HasSubstr(says));
  }
}

TEST_F(Causes, AKernelThatGrowsAllTheWayIsNothingToActOn) {
  RecordedRun run;
  CountedKernels grows = a_kernel("attention", 500'000'000);
  grows.repeats = 40;
  grows.early_ns = 10e6;
  grows.late_ns = 13e6;
  grows.change_chance = 1e-5;
  grows.ramp = true;
  run.kernels = {grows};
  ASSERT_THAT(codes(run), ElementsAre("kernel-changed"));
  EXPECT_EQ(found[0].severity, Severity::note);
  EXPECT_THAT(found[0].sentence, HasSubstr("with the same name and grid"));
  EXPECT_THAT(found[0].sentence, HasSubstr("all the way"));
}

TEST_F(Causes, CollectivesAreNotToldToWatchClocks) {
  RecordedRun run;
  CountedKernels modal = a_kernel("ncclDevKernel_AllReduce_Sum_f16_RING_LL", 500'000'000);
  modal.slow_mode_share = 0.3;
  modal.fast_mode_ns = 400'000;
  modal.modes_apart_ns = 200'000;
  run.kernels = {modal};
  ASSERT_THAT(codes(run), ElementsAre("kernel-modes"));
  EXPECT_EQ(found[0].severity, Severity::note);
  EXPECT_THAT(found[0].remedy, Not(HasSubstr("clocks")));
  EXPECT_THAT(found[0].remedy, HasSubstr("which rank comes late"));
}

TEST_F(Causes, WhatBecameFasterIsOnlyToKnow) {
  RecordedRun run;
  CountedKernels changed = a_kernel("gemm", 500'000'000);
  changed.repeats = 40;
  changed.early_ns = 13e6;
  changed.late_ns = 10e6;
  changed.change_chance = 1e-5;
  run.kernels = {changed};
  ASSERT_THAT(codes(run), ElementsAre("kernel-changed"));
  EXPECT_EQ(found[0].severity, Severity::note);
  EXPECT_EQ(found[0].share, std::nullopt);
}

TEST_F(Causes, OfManyKernelsOneThatDiffersByChanceIsNotNamed) {
  // Chances as they are where nothing changes: uniform.
  std::mt19937_64 random(4);
  std::uniform_real_distribution<> uniform;
  int told = 0;
  constexpr int kSessions = 300;
  for (int i = 0; i < kSessions; ++i) {
    RecordedRun run;
    run.replicate = i;
    for (int k = 0; k < 60; ++k) {
      CountedKernels& kernel = run.kernels.emplace_back(a_kernel("k", 15'000'000));
      kernel.grid = {static_cast<std::uint64_t>(k + 1), 1, 1};
      kernel.repeats = 40;
      kernel.early_ns = 1e6;
      kernel.late_ns = 1.2e6;
      kernel.change_chance = uniform(random);
    }
    write(run);
  }
  codes();
  for (const Finding& cause : found) told += cause.code == "kernel-changed" ? 1 : 0;
  EXPECT_LE(told, 9) << "1 in 100 sessions, of " << kSessions;
}

TEST_F(Causes, AKernelWithTwoModesIsToldIfItTakesTime) {
  RecordedRun run;
  CountedKernels modal = a_kernel("softmax", 500'000'000);
  modal.slow_mode_share = 0.3;
  modal.fast_mode_ns = 400'000;
  modal.modes_apart_ns = 200'000;
  CountedKernels small = a_kernel("small", 1'000'000);
  small.slow_mode_share = 0.3;
  small.fast_mode_ns = 1000;
  small.modes_apart_ns = 500;
  run.kernels = {modal, small};
  ASSERT_THAT(codes(run), ElementsAre("kernel-modes"));
  EXPECT_THAT(
      found[0].sentence,
      HasSubstr(
          "softmax takes 400 µs or 600 µs at the same place of the same work: its times form two "
          "clusters."));
}

// Ranks

class Ranks : public Causes {
 protected:
  /// Steps of 100 ms from number `first` on, of which this rank takes some longer.
  void rank(int index, std::size_t steps, std::uint64_t first, double longer, double waits = -1) {
    RecordedRun run;
    run.device = index == 0 ? "GPU-1" : "GPU-" + std::to_string(index + 1);
    if (index > 0) add_device(run.device);
    run.recording.file = "rank" + std::to_string(index) + ".json";
    if (ranked) run.recording.rank = index;
    std::mt19937_64 random(static_cast<std::uint64_t>(index));
    std::normal_distribution<> normal;
    for (std::size_t i = 0; i < steps; ++i) {
      run.job.steps.push_back(first + i);
      const double own = 1e8 * (1 + longer) * std::exp(0.01 * normal(random));
      run.steps.push_back(waits < 0 ? own : 1.2e8);
      if (waits >= 0) run.collectives.push_back(1.2e8 - own);
    }
    write(run);
  }
  bool ranked = true;
};

TEST_F(Ranks, APersistentStragglerIsNamedWithItsDevice) {
  for (int index = 0; index < 4; ++index) rank(index, 20, 5, index == 2 ? 0.1 : 0);
  ASSERT_THAT(codes(), ElementsAre("persistent-straggler"));
  EXPECT_EQ(found[0].device, "GPU-3");
  EXPECT_THAT(found[0].sentence,
              HasSubstr("The ranks wait for rank 2: it is the slowest of 4 in 20 of 20"));
}

TEST_F(Ranks, WhatRanksWaitForEachOtherIsNotTheirOwn) {
  for (int index = 0; index < 4; ++index) rank(index, 20, 5, index == 2 ? 0.1 : 0, 1);
  ASSERT_THAT(codes(), ElementsAre("persistent-straggler"))
      << "all steps are of one length, since all wait for rank 2";
  EXPECT_THAT(evidence(0), HasSubstr("excluding NCCL time"));
}

TEST_F(Ranks, AStepThatARankLacksAtAnEndMakesNoStraggler) {
  rank(0, 20, 5, 0);
  rank(1, 15, 8, 0);
  rank(2, 20, 4, 0);
  EXPECT_THAT(codes(), IsEmpty());
}

TEST_F(Ranks, FilesThatNothingTiesTogetherAreNoRanks) {
  ranked = false;
  for (int index = 0; index < 4; ++index) rank(index, 20, 5, index == 2 ? 0.1 : 0);
  EXPECT_THAT(codes(), IsEmpty());
}

TEST_F(Ranks, WithoutStepsTheOneThatComesLastToCollectivesIsNamed) {
  const auto rank_with = [&](int index, std::size_t n, std::size_t last) {
    RecordedRun run;
    run.device = index == 0 ? "GPU-1" : "GPU-2";
    if (index > 0) add_device(run.device);
    run.recording.file = "rank" + std::to_string(index) + ".json";
    run.recording.rank = index;
    run.job.extent_ns = 1'000'000'000;
    CollectiveRecord& own = run.job.collectives.emplace_back();
    own.name = "ncclDevKernel_AllReduce";
    // Rank 1 is short, since it comes last, in the first `last` of them.
    for (std::size_t i = 0; i < n; ++i)
      own.ns.push_back((i < last) == (index == 1) ? 1'000'000 : 4'000'000);
    write(run);
  };
  rank_with(0, 30, 28);
  rank_with(1, 30, 28);
  ASSERT_THAT(codes(), ElementsAre("late-to-collectives"));
  EXPECT_EQ(found[0].severity, Severity::act);
  EXPECT_THAT(found[0].sentence,
              HasSubstr("rank 1 comes last to 28 of 30 collectives, and the others wait there for "
                        "84.0 ms, 8.4 % of the recording"));
}

TEST_F(Ranks, ThatAreSlowInTurnWaitForADifferentOneEachTime) {
  constexpr int kRanks = 4, kSteps = 40;
  for (int index = 0; index < kRanks; ++index) {
    RecordedRun run;
    run.device = index == 0 ? "GPU-1" : "GPU-" + std::to_string(index + 1);
    if (index > 0) add_device(run.device);
    run.recording.file = "rank" + std::to_string(index) + ".json";
    run.recording.rank = index;
    for (int i = 0; i < kSteps; ++i) {
      run.job.steps.push_back(static_cast<std::uint64_t>(i));
      run.steps.push_back(i % kRanks == index ? 1.5e8 : 1e8 + 1000.0 * index);
    }
    write(run);
  }
  ASSERT_THAT(codes(), ElementsAre("rotating-straggler"));
  EXPECT_THAT(found[0].sentence, HasSubstr("The 4 ranks wait for a different one"));
}

TEST_F(Ranks, ThatAreAlikeHaveNoStraggler) {
  for (int index = 0; index < 8; ++index) rank(index, 40, 0, 0);
  EXPECT_THAT(codes(), IsEmpty());
}

}  // namespace
}  // namespace launchgap
