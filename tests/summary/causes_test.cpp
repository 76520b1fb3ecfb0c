#include "harness/summary/causes.h"

#include <algorithm>
#include <cmath>
#include <random>

#include <gmock/gmock.h>

#include "harness/record/records.h"
#include "tests/sentences/said.h"
#include "tests/summary/written_session.h"

namespace launchgap {
namespace {

using namespace testing;

/// What a recorded process shows; nothing is wrong with it until something is put in.
struct RecordedRun {
  std::string device = "GPU-1";
  int replicate = 0;
  double length_ns = 1e9, idle_share = 0.1, program_ns = 5e7, starting_ns = 0, queued_ns = 0;
  std::size_t on_idle = 100, on_busy = 900, graphs = 0;
  double call_ns = 5000, between_ns = 5000, kernel_ns = 50'000, delay_ns = 7000;
  /// Calls end 1 µs after their kernels, of which some take three times as long.
  bool blocking = false;
  std::size_t not_blocking = 0;  // the first of a state's calls end 1 µs before
  std::size_t long_kernels = 0;  // the first of a state's take 50 µs
  std::vector<CountedKernels> kernels{};
  std::vector<double> steps{}, collectives{};
  JobRecord job{};
  RecordingRecord recording{};
};

struct Causes : WrittenSession {
  void write(RecordedRun run) {
    RecordWriter writer = begin_run(run.device, "recorded", "recorded", run.replicate);
    if (run.recording.file.empty()) run.recording.file = "rank0.json";
    run.recording.pid = 1;
    writer.write(record_to_json(run.recording));
    TraceRecord trace;
    trace.case_name = "recorded/launch";
    trace.state = "recorded";
    trace.kernels = run.kernels;
    writer.write(record_to_json(trace));
    writer.write(record_to_json(run.job));
    const auto of_case = [&](const std::string& name, const std::vector<Column>& values) {
      columns(writer, name, values);
      summary(writer, name, "ok");
    };
    const auto launches = [&](const char* state, std::size_t n) {
      if (n == 0) return;
      std::vector<double> calls(n, run.call_ns), kernels(n, run.kernel_ns);
      std::fill_n(kernels.begin(), std::min(n, run.long_kernels), 50'000);
      for (std::size_t i = 0; run.blocking && i < n; ++i) {
        if (i % 3 == 0) kernels[i] *= 3;
        calls[i] = run.delay_ns + kernels[i] + (i < run.not_blocking ? -1000 : 1000);
      }
      of_case(std::string("recorded/launch/stream:") + state,
              {{"api_record_ns", calls},
               {"since_last_ns", std::vector<double>(n, run.between_ns)},
               {"launch_ns", std::vector<double>(n, run.delay_ns)},
               {"kernel_ns", kernels}});
    };
    launches("idle", run.on_idle);
    launches("busy", run.on_busy);
    if (run.graphs > 0) {
      of_case("recorded/graph/stream:idle",
              {{"api_record_ns", std::vector<double>(run.graphs, run.call_ns)},
               {"since_last_ns", std::vector<double>(run.graphs, run.between_ns)}});
    }
    of_case("recorded/job",
            {{"step_ns", {run.length_ns}},
             {"gpu_idle_share", {run.idle_share}},
             {"idle_program_ns", {run.program_ns}},
             {"idle_launch_ns", {run.starting_ns}},
             {"idle_queued_ns", {run.queued_ns}},
             {"idle_calling_ns", {0}}});
    if (!run.steps.empty()) {
      std::vector<Column> of_steps = {{"step_ns", run.steps}};
      if (!run.collectives.empty()) of_steps.push_back({"collectives_ns", run.collectives});
      of_case("recorded/step", of_steps);
    }
    end(writer, 1);
  }

  /// What is found in what was written, in words: "act slow-host: …", its evidence and its remedy.
  std::vector<std::string> causes_found() {
    found = said(causes(read()));
    std::vector<std::string> words;
    for (const Finding& cause : found) {
      std::string& text = words.emplace_back(in_words(cause) + "\n");
      for (const Evidence& part : cause.evidence) text += text_of(part) + "; ";
      text += "\n" + cause.remedy;
    }
    return words;
  }
  std::vector<std::string> causes_of(const RecordedRun& run) {
    write(run);
    return causes_found();
  }
  /// What is found in a run that is written beside those before it; null if nothing is.
  const Finding* cause_of(const RecordedRun& run) {
    causes_of(run);
    const auto own = std::ranges::find(found, std::optional(run.replicate), &Finding::replicate);
    return own == found.end() ? nullptr : &*own;
  }

  std::vector<Finding> found;
};

/// That there is one, and has all of this in its words.
auto only_cause(const auto&... parts) {
  return ElementsAre(AllOf(HasSubstr(std::string(parts))...));
}

CountedKernels a_kernel(const char* name, std::uint64_t total_ns = 500'000'000) {
  return {.name = name, .grid = {1, 1, 1}, .block = {1, 1, 1}, .count = 1000, .total_ns = total_ns};
}
/// That takes longer or shorter in the later half.
CountedKernels a_changed_kernel(const char* name, double early_ns, double late_ns) {
  CountedKernels kernel = a_kernel(name);
  kernel.repeats = 40;
  kernel.early_ns = early_ns;
  kernel.late_ns = late_ns;
  kernel.change_chance = 1e-5;
  return kernel;
}
CountedKernels a_kernel_with_modes(const char* name,
                                   double fast_ns = 400'000,
                                   std::uint64_t total_ns = 500'000'000) {
  CountedKernels kernel = a_kernel(name, total_ns);
  kernel.slow_mode_share = 0.3;
  kernel.fast_mode_ns = fast_ns;
  kernel.modes_apart_ns = fast_ns / 2;
  return kernel;
}

/// Where the time of launch calls went: of so many in all, in so much time.
JobRecord with_tail(std::uint64_t launches, std::int64_t time_ns, std::vector<TailPart> parts) {
  JobRecord job;
  job.extent_ns = 1'000'000'000;
  job.tail.emplace();
  job.tail->launches = launches;
  job.tail->time_ns = time_ns;
  job.tail->p50_ns = 3916;
  job.tail->parts = std::move(parts);
  return job;
}

TEST_F(Causes, AreNoneOfAJobThatKeepsItsDeviceBusy) {
  EXPECT_THAT(causes_of({.kernels = {a_kernel("gemm", 900'000'000)}}), IsEmpty());
}

TEST_F(Causes, AreNotLookedForWithoutAJobRecord) {
  RecordWriter writer = begin_run("GPU-1", "recorded", "recorded", 0);
  end(writer);
  EXPECT_THAT(causes_found(), IsEmpty()) << "as older versions wrote it";
}

TEST_F(Causes, StallsAreToldFromAShareOfTheRecordingOn) {
  RecordedRun run;
  run.job.stalls = {{"wait", "cudaStreamSynchronize", 250, 30'000'000, 60'000'000, 3'000'000},
                    {"wait", "cudaEventSynchronize", 3, 1000, 1000, 900},
                    {"allocate", "cudaMalloc", 90, 40'000'000, 49'000'000, 2'000'000}};
  ASSERT_THAT(
      causes_of(run),
      only_cause("act wait-stalls: ",
                 "up to 60.0 ms of idle time is avoidable, 6 % of the recording",
                 "cudaStreamSynchronize: the next kernel arrived late 250 times, 60.0 ms in "
                 "all, at most 3.00 ms; cudaEventSynchronize: the next kernel arrived late 3 "
                 "times"))
      << "allocating costs 4.9 %";
  EXPECT_NEAR(*found[0].share, 0.06, 1e-4);
}

TEST_F(Causes, AllocationHasACodeOfItsOwn) {
  RecordedRun run;
  run.job.stalls = {{"allocate", "cudaFree", 90, 40'000'000, 80'000'000, 2'000'000}};
  EXPECT_THAT(causes_of(run), only_cause(" allocation-stalls: "));
}

TEST_F(Causes, PausesAreToldFromAHostThatIsSlowAtEachLaunch) {
  RecordedRun run = {
      .idle_share = 0.5, .program_ns = 4.5e8, .on_idle = 900, .on_busy = 100, .between_ns = 60'000};
  write(run);
  run.replicate = 1;
  run.job.pauses = {4, 400'000'000, 150'000'000, ""};
  ASSERT_THAT(
      causes_of(run),
      ElementsAre(
          AllOf(HasSubstr(" slow-host: "),
                HasSubstr("it spends 60.0 µs from one launch call to the next")),
          AllOf(HasSubstr(" program-pauses: "),
                HasSubstr("pauses of 1 ms or more outside of CUDA: 4; the longest: 150 ms"))));
  EXPECT_EQ(found[0].replicate, 0);
}

TEST_F(Causes, ShortKernelsAreHalfOfThem) {
  RecordedRun run = {.idle_share = 0.6,
                     .program_ns = 1e8,
                     .starting_ns = 5e8,
                     .on_idle = 1000,
                     .on_busy = 0,
                     .kernel_ns = 2000,
                     .long_kernels = 501};
  EXPECT_THAT(causes_of(run), Not(Contains(HasSubstr("short-kernels"))));
  run.replicate = 1;
  run.long_kernels = 500;
  EXPECT_THAT(causes_of(run),
              Contains(AllOf(HasSubstr(" short-kernels: "),
                             HasSubstr("50 % of the kernels are shorter than a launch call "
                                       "(5.00 µs)"))));
}

TEST_F(Causes, ShortKernelsAskForACostAndForManyLaunches) {
  RecordedRun run = {
      .idle_share = 0.6, .program_ns = 1e8, .starting_ns = 0.04e9, .kernel_ns = 2000};
  EXPECT_THAT(causes_of(run), IsEmpty()) << "launching costs 4 %";
  run.replicate = 1;
  run.starting_ns = 5e8;
  run.on_idle = 16;
  run.on_busy = 0;
  EXPECT_THAT(causes_of(run), IsEmpty()) << "16 launches are no habit";
  run.replicate = 2;
  run.on_idle = 1000;
  run.job.late_starts = {2, 480'000'000, 300'000'000, ""};
  EXPECT_THAT(causes_of(run), IsEmpty()) << "two of them are nearly all of it";
  run.job.late_starts = {};
  for (const int launches : {99, 100}) {
    ++run.replicate;
    run.on_idle = static_cast<std::size_t>(launches);
    const bool told = std::ranges::any_of(causes_of(run), [](const std::string& cause) {
      return cause.find("short-kernels") != std::string::npos;
    });
    EXPECT_EQ(told, launches == 100) << launches;
  }
}

TEST_F(Causes, LaunchesThatBlockAreNotTakenForShortKernels) {
  EXPECT_THAT(
      causes_of(
          {.idle_share = 0.6, .starting_ns = 5e8, .on_idle = 1000, .on_busy = 0, .blocking = true}),
      only_cause(" blocking-launches: Each launch call returns when its kernel has ended"));
}

RecordedRun with_calls_that_do_not_block(std::size_t count) {
  return {.idle_share = 0.6,
          .starting_ns = 5e8,
          .on_idle = 1000,
          .on_busy = 0,
          .blocking = true,
          .not_blocking = count};
}

TEST_F(Causes, LaunchesBlockWhereNineteenInTwentyDo) {
  EXPECT_THAT(causes_of(with_calls_that_do_not_block(50)), only_cause(" blocking-launches: "));
}

TEST_F(Causes, LaunchesDoNotBlockWhereFewerDo) {
  EXPECT_THAT(causes_of(with_calls_that_do_not_block(51)),
              Not(Contains(HasSubstr("blocking-launches"))));
}

TEST_F(Causes, AGpuThatWaitsForEachLaunchIsToldAlsoWhereKernelsAreLong) {
  EXPECT_THAT(causes_of({.idle_share = 0.77,
                         .program_ns = 1e8,
                         .starting_ns = 6.1e8,
                         .on_idle = 410,
                         .on_busy = 590}),
              only_cause(" launch-gaps: ", "61 % of the time between a launch call"));
}

TEST_F(Causes, KernelsThatBeginLateAreToldAndNotTheWaits) {
  EXPECT_THAT(causes_of({.idle_share = 0.9, .starting_ns = 8e8, .delay_ns = 4.4e6}),
              only_cause(" late-kernels: A kernel begins 4.40 ms after its launch call"));
}

TEST_F(Causes, KernelsAreNotLateWhereItIsTheCallThatTakesLong) {
  EXPECT_THAT(
      causes_of({.idle_share = 0.67, .starting_ns = 6.6e8, .call_ns = 2e6, .delay_ns = 2.001e6}),
      only_cause(" late-kernels: A launch call takes 2.00 ms (p50) although its "
                 "stream is idle; 2 to 30 µs are usual.\n",
                 "what the driver does in the call"));
}

TEST_F(Causes, OneLongCallIsACauseOfItsOwn) {
  RecordedRun run = {
      .length_ns = 1.912e9, .idle_share = 0.9, .program_ns = 1.495e9, .between_ns = 597'000};
  run.job.long_calls = {1, 1'455'000'000, 1'455'000'000, "cuModuleLoadData"};
  EXPECT_THAT(causes_of(run),
              only_cause(" long-call: One call of cuModuleLoadData took 1.46 s of 1.91 s"));
}

TEST_F(Causes, LongCallsAreCountedAndTheLongestNamed) {
  RecordedRun run;
  run.job.long_calls = {12, 300'000'000, 80'000'000, "cuModuleLoadData"};
  EXPECT_THAT(causes_of(run),
              only_cause(" long-call: 12 long calls took 300 ms of 1.00 s, and the GPU was idle "
                         "meanwhile; the longest is cuModuleLoadData, 80.0 ms.\n"));
}

TEST_F(Causes, OneLongCallOfTheAllocatorMakesTheContext) {
  RecordedRun run;
  run.job.stalls = {{"allocate", "cudaFree", 1, 407'000'000, 407'000'000, 407'000'000}};
  EXPECT_THAT(causes_of(run),
              only_cause("note context-creation: One call of cudaFree took 407 ms"));
  for (const std::int64_t lost_ns : {29'999'999, 30'000'000}) {
    ++run.replicate;
    run.length_ns = 1e8;
    run.job.stalls = {{"allocate", "cudaFree", 1, lost_ns, lost_ns, lost_ns}};
    const Finding* const told = cause_of(run);
    ASSERT_NE(told, nullptr);
    EXPECT_EQ(told->code == "context-creation", lost_ns == 30'000'000) << told->code;
  }
}

TEST_F(Causes, PythonThatIsTracedExcusesAHost) {
  RecordedRun run = {.idle_share = 0.6, .program_ns = 5e8, .between_ns = 60'000};
  run.job.python_calls = 15'230;
  ASSERT_THAT(causes_of(run),
              only_cause("note slow-host: ",
                         "the recorder traced Python too",
                         "Python calls that were traced: 1.523e+04"));
  EXPECT_FALSE(found[0].unknown.empty());
}

TEST_F(Causes, QueuedWorkThatWaitsIsAQuestion) {
  RecordedRun run = {.idle_share = 0.64, .program_ns = 1e7, .queued_ns = 5.6e8};
  EXPECT_THAT(causes_of(run),
              only_cause("open queued-work-waits: ",
                         "it waits for another stream, a copy or another GPU."));
}

TEST_F(Causes, QueuedWorkOfAGraphMayBeKernelsWithoutARecord) {
  RecordedRun run = {.idle_share = 0.64, .program_ns = 1e7, .queued_ns = 5.6e8};
  run.job.queued_graph_ns = 200'000'000;
  EXPECT_THAT(causes_of(run),
              only_cause(" queued-work-waits: ",
                         "it waits for another stream",
                         "idle before queued work of a graph: 200 ms"));
  run.replicate = 1;
  run.job.queued_graph_ns = 500'000'000;
  const Finding* const mostly = cause_of(run);
  ASSERT_TRUE(mostly);
  EXPECT_EQ(
      mostly->sentence,
      "The GPU idles 56 % of the time although work is queued: 50 % before work of a graph, of "
      "which kernels may lack a record.");
  EXPECT_THAT(mostly->unknown, HasSubstr("whether all of its kernels have a record"));
  EXPECT_THAT(mostly->remedy, HasSubstr("--cuda-graph-trace=node"));
}

TEST_F(Causes, FromOneInAHundredUnknownOnNothingRestsOnIdleness) {
  RecordedRun run = {.idle_share = 0.8, .program_ns = 7e8, .between_ns = 60'000};
  run.job.stalls = {{"wait", "cudaStreamSynchronize", 250, 300'000'000, 600'000'000, 3'000'000}};
  run.job.pauses = {4, 100'000'000, 50'000'000, ""};
  run.job.all_launches = 1000;
  run.job.unknown_launches = 9;
  run.job.unknown_ns = 9'000'000;
  EXPECT_THAT(causes_of(run), Contains(HasSubstr(" wait-stalls: "))) << "0.9 % unknown";
  for (const auto& [launches, ns] : {std::pair(10u, 0), std::pair(0u, 10'000'000)}) {
    ++run.replicate;
    run.job.unknown_launches = launches;
    run.job.unknown_ns = ns;
    EXPECT_FALSE(cause_of(run)) << launches << " launches, " << ns << " ns";
  }
}

TEST_F(Causes, AHostIsNotSlowWhereItsLaunchesFindWork) {
  EXPECT_THAT(causes_of({.idle_share = 0.5, .program_ns = 4.5e8, .kernel_ns = 2000}), IsEmpty())
      << "90 % of the launches queue";
}

TEST_F(Causes, FirstLaunchesAreToldWhereTheyCostOrExplainTheTail) {
  const struct {
    const char* what;
    FirstLaunches firsts;
    bool told;
  } cases[] = {
      {"they cost 2 %", {20, 1e-9, 40'000, 5000, 5000, 20'000'000, 50, 5}, true},
      {"little, and explain the tail", {20, 1e-9, 20'000, 5000, 5000, 300'000, 50, 20}, true},
      {"little, and explain little", {20, 1e-9, 20'000, 5000, 5000, 300'000, 50, 5}, false},
      {"they take a hundred times as long", {2, 1e-3, 500'000, 5000, 5000, 1'000'000, 50, 2}, true},
      {"chance explains them", {20, 0.02, 40'000, 5000, 5000, 20'000'000, 50, 20}, false},
      {"so are those right after them", {20, 1e-9, 40'000, 5000, 35'000, 20'000'000, 50, 5}, false},
      {"they are hardly slower", {20, 1e-9, 7000, 5000, 5000, 20'000'000, 50, 20}, false},
  };
  RecordedRun run;
  for (const auto& [what, firsts, told] : cases) {
    run.job.first_launches = firsts;
    const Finding* const cause = cause_of(run);
    EXPECT_EQ(cause && cause->code == "first-launches", told) << what;
    ++run.replicate;
  }
}

TEST_F(Causes, FewFirstLaunchesAreToldByTheirNumberAndNotByTheirMedian) {
  RecordedRun run;
  run.job = with_tail(8190,
                      35'300'000,
                      {{"first-launch", 2, 1'574'000, 1'554'000, 2, "Fan1"},
                       {"usual", 8188, 33'726'000, 6'000, 8190, ""}});
  run.job.first_launches = {2, 1e-3, 787'000, 3880, 3880, 1'566'000, 82, 2};
  EXPECT_THAT(causes_of(run),
              only_cause("note first-launches: 2 of 8,190 launches took 1.57 ms, 4.5 % "
                         "of all launch time, both among the first 2: first launches, "
                         "which probably loaded code.\n"));
}

TEST_F(Causes, FirstLaunchesOfOneKernelAreSaidInTheSingular) {
  RecordedRun run;
  run.job.first_launches = {1, 1e-3, 700'000, 3880, 3880, 6'000'000, 82, 1};
  EXPECT_THAT(causes_of(run),
              only_cause(" first-launches: ", "6.00 ms more in all, for 1 kernel."));
}

TEST_F(Causes, AKernelIsNamedOfTwoLongLaunchesAndOfHalfOfTheirTime) {
  RecordedRun run;
  const auto cause = [&](std::uint64_t launches, std::int64_t of_it_ns) {
    run.job = with_tail(
        1000,
        40'000'000,
        {{"unexplained", launches, 10'000'000, 6'000'000, 900, "gomory<int>(int*)", 0, of_it_ns},
         {"usual", 1000 - launches, 30'000'000, 6'000, 1000, ""}});
    ++run.replicate;
    const Finding* const own = cause_of(run);
    return own ? own->sentence + text_of(own->evidence.back()) : "no cause";
  };
  const std::string named = cause(80, 8'000'000);
  EXPECT_THAT(named,
              HasSubstr("80 of 1,000 launches took 10.0 ms, 25 % of all launch time: nothing in "
                        "the recording says why; launches of gomory<int> are 80 % of it."));
  EXPECT_THAT(cause(2, 5'000'000), HasSubstr("; launches of gomory<int> are 50 % of it."));
  EXPECT_THAT(cause(2, 4'999'999), HasSubstr("nothing in the recording says why."));
  EXPECT_THAT(cause(1, 10'000'000), HasSubstr("nothing in the recording says why."));
}

TEST_F(Causes, AHostThatLaunchesGraphsAloneMayBeSlowToo) {
  EXPECT_THAT(causes_of({.idle_share = 0.83,
                         .program_ns = 5.7e8,
                         .on_idle = 0,
                         .on_busy = 0,
                         .graphs = 300,
                         .call_ns = 9000,
                         .between_ns = 51'000}),
              ElementsAre(AllOf(HasSubstr(" slow-host: "),
                                HasSubstr("51.0 µs from one launch call to the next"),
                                Not(HasSubstr("kernel, p50")))))
      << "kernels of graphs are not launched";
}

TEST_F(Causes, CallsOfSeveralThreadsHaveAShareOfTheTimeAtMost) {
  RecordedRun run;
  run.job = with_tail(1600,
                      2'800'000'000,
                      {{"first-launch", 1600, 2'800'000'000, 360'000'000, 1600, "", 400'000'000}});
  run.job.tail->covered_ns = 400'000'000;
  ASSERT_THAT(causes_of(run), only_cause(" first-launches: "));
  EXPECT_DOUBLE_EQ(*found[0].share, 0.4);
}

TEST_F(Causes, LongLaunchesAreToldByWhatMadeThemLong) {
  RecordedRun run;
  run.job = with_tail(9628,
                      950'000'000,
                      {{"first-launch", 2, 836'000'000, 726'000'000, 4, "gemm"},
                       {"unexplained", 94, 4'000'000, 100'000, 9000, "gemm"},
                       {"usual", 9532, 110'000'000, 40'000, 9628, ""}});
  run.job.extent_ns = 2'000'000'000;
  run.job.tail->p99_ns = 40'000;
  ASSERT_THAT(causes_of(run),
              only_cause("act first-launches: 2 of 9,628 launches took 836 ms, 88 % of all "
                         "launch time, both among the first 4: first launches, which probably "
                         "loaded code.\n",
                         "Warm up"));
  EXPECT_NEAR(*found[0].share, 0.418, 1e-9);
  const struct {
    const char *cause, *code;
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
    run.job.tail->parts[0] = {cause, 20, 836'000'000, 726'000'000, 9000, "cudaMalloc"};
    const Finding* const own = cause_of(run);
    ASSERT_TRUE(own) << cause;
    EXPECT_EQ(own->code, code);
    EXPECT_EQ(own->severity, severity) << cause;
    EXPECT_THAT(own->sentence, HasSubstr(says));
  }
}

TEST_F(Causes, AKernelThatChangedIsTold) {
  EXPECT_THAT(causes_of({.kernels = {a_changed_kernel("gemm\x1b[31m", 10e6, 13e6),
                                     a_kernel("other", 100'000'000)}}),
              ElementsAre(AllOf(StartsWith("act kernel-changed: "),
                                HasSubstr("takes 13.0 ms in the later half"),
                                Not(HasSubstr("\x1b")))))
      << "names are others' text";
}

TEST_F(Causes, AKernelThatGrowsAllTheWayIsNothingToActOn) {
  CountedKernels grows = a_changed_kernel("attention", 10e6, 13e6);
  grows.ramp = true;
  EXPECT_THAT(causes_of({.kernels = {grows}}),
              only_cause("note kernel-changed: ", "with the same name and grid", "all the way"));
}

TEST_F(Causes, WhatBecameFasterIsOnlyToKnow) {
  ASSERT_THAT(causes_of({.kernels = {a_changed_kernel("gemm", 13e6, 10e6)}}),
              only_cause("note kernel-changed: "));
  EXPECT_EQ(found[0].share, std::nullopt);
}

TEST_F(Causes, AKernelWithTwoModesIsToldIfItTakesTime) {
  EXPECT_THAT(causes_of({.kernels = {a_kernel_with_modes("softmax"),
                                     a_kernel_with_modes("small", 1000, 1'000'000)}}),
              only_cause(" kernel-modes: softmax takes 400 µs or 600 µs at the same "
                         "place of the same work: its times form two clusters."));
}

TEST_F(Causes, CollectivesAreNotToldToWatchClocks) {
  ASSERT_THAT(
      causes_of({.kernels = {a_kernel_with_modes("ncclDevKernel_AllReduce_Sum_f16_RING_LL")}}),
      only_cause("note kernel-modes: "));
  EXPECT_THAT(found[0].remedy, Not(HasSubstr("clocks")));
  EXPECT_THAT(found[0].remedy, HasSubstr("which rank comes late"));
}

// Ranks

struct Ranks : Causes {
  /// Of the process with this number, which has a GPU of its own.
  RecordedRun run_of(int index) {
    RecordedRun run = {.device = "GPU-" + std::to_string(index + 1)};
    if (index > 0) add_device(run.device);
    run.recording.file = "rank" + std::to_string(index) + ".json";
    run.recording.clock = clock;
    if (ranked) run.recording.rank = index;
    run.recording.ranks = ranks;
    return run;
  }
  enum class Waits { no, for_all, for_others };
  /// Steps of 100 ms from number `first` on, of which this rank takes some longer. If it waits for
  /// all, each step is of one length with that; if for others, a tenth longer than its own.
  void rank(int index, std::size_t steps, std::uint64_t first, double longer, Waits waits) {
    RecordedRun run = run_of(index);
    std::mt19937_64 random(static_cast<std::uint64_t>(index));
    std::normal_distribution<> normal;
    for (std::size_t i = 0; i < steps; ++i) {
      run.job.steps.push_back(first + i);
      const double own = 1e8 * (1 + longer) * std::exp(0.01 * normal(random));
      const double whole = waits == Waits::no ? own : waits == Waits::for_all ? 1.2e8 : 1.1 * own;
      run.steps.push_back(whole);
      if (waits != Waits::no) run.collectives.push_back(whole - own);
    }
    write(run);
  }
  /// Four, one of which takes half as long again in each step; they wait for each other until it
  /// has taken this long, or not at all.
  void ranks_in_turn(double whole_ns) {
    for (int index = 0; index < 4; ++index) {
      RecordedRun run = run_of(index);
      for (int i = 0; i < 40; ++i) {
        run.job.steps.push_back(static_cast<std::uint64_t>(i));
        const double own = i % 4 == index ? 1.5e8 : 1e8 + 1000.0 * index;
        run.steps.push_back(whole_ns > 0 ? whole_ns : own);
        if (whole_ns > 0) run.collectives.push_back(whole_ns - own);
      }
      write(run);
    }
  }
  /// Of a second, without steps, in which it waits in collectives for so long each.
  void rank_in_collectives(int index, const std::vector<std::int64_t>& ns) {
    RecordedRun run = run_of(index);
    run.job.extent_ns = 1'000'000'000;
    CollectiveRecord& own = run.job.collectives.emplace_back();
    own.name = "ncclDevKernel_AllReduce";
    own.ns.assign(ns.begin(), ns.end());
    write(run);
  }
  /// Of steps of 100 ms, or before each of as many collectives: of that this rank takes some longer
  /// in each of these parts. All wait for each other until 200 ms.
  void rank_of_parts(int index,
                     bool by_steps,
                     const std::vector<std::pair<StretchPart, std::int64_t>>& longer) {
    RecordedRun run = run_of(index);
    run.job.extent_ns = 4'000'000'000;
    StretchParts parts;
    std::int64_t own = 100'000'000;
    for (auto& part : parts.ns) part.assign(20, 0);
    parts.ns[static_cast<std::size_t>(StretchPart::kernels)].assign(20, own);
    for (const auto& [part, ns] : longer) {
      own += ns;
      for (std::int64_t& one : parts.ns[static_cast<std::size_t>(part)]) one += ns;
    }
    if (by_steps) {
      for (std::uint64_t i = 0; i < 20; ++i) run.job.steps.push_back(i);
      run.steps.assign(20, 2e8);
      run.collectives.assign(20, 2e8 - static_cast<double>(own));
      run.job.step_parts = parts;
    } else {
      CollectiveRecord& collective = run.job.collectives.emplace_back();
      collective.name = "ncclDevKernel_AllReduce";
      collective.ns.assign(20, 200'000'000 - own);
      collective.before = parts;
    }
    write(run);
  }
  void forget() {
    for (const auto& before : std::filesystem::directory_iterator(path / "records"))
      std::filesystem::remove(before);
  }
  bool ranked = true;
  std::optional<std::int64_t> ranks;
  std::string clock = "Unix time";
};

TEST_F(Ranks, APersistentStragglerIsNamedWithItsDevice) {
  for (int index = 0; index < 4; ++index) rank(index, 20, 5, index == 2 ? 0.1 : 0, Waits::for_all);
  ASSERT_THAT(causes_found(),
              only_cause("act persistent-straggler: ",
                         "The ranks wait for rank 2: it is the slowest of 4 in 20 of 20",
                         "excluding NCCL time, with which the steps are of one length"));
  EXPECT_EQ(found[0].device, "GPU-3");
}

TEST_F(Ranks, WhereNothingShowsThatTheOthersWaitASlowOneIsANote) {
  for (int index = 0; index < 4; ++index) rank(index, 20, 5, index == 2 ? 0.1 : 0, Waits::no);
  ASSERT_THAT(causes_found(),
              only_cause("note slow-rank: ",
                         "rank 2 is the slowest of 4 in 20 of 20 steps",
                         "nothing shows that they wait for it"));
  EXPECT_THAT(found[0].unknown, HasSubstr("no collectives"));
  EXPECT_EQ(found[0].share, std::nullopt) << "nothing is known to be lost";
}

TEST_F(Ranks, WhoHasCollectivesWithOthersAndShorterStepsDoesNotWait) {
  for (int index = 0; index < 4; ++index)
    rank(index, 20, 5, index == 2 ? 0.1 : 0, Waits::for_others);
  ASSERT_THAT(causes_found(), only_cause("note slow-rank: ", "nothing shows that they wait"));
  EXPECT_THAT(found[0].unknown, HasSubstr("with all collectives"));
}

TEST_F(Ranks, AStepThatARankLacksAtAnEndMakesNoStraggler) {
  rank(0, 20, 5, 0, Waits::for_all);
  rank(1, 15, 8, 0, Waits::for_all);
  rank(2, 20, 4, 0, Waits::for_all);
  EXPECT_THAT(causes_found(), IsEmpty());
}

TEST_F(Ranks, FilesThatNothingTiesTogetherAreNoRanks) {
  ranked = false;
  for (int index = 0; index < 4; ++index) rank(index, 20, 5, index == 2 ? 0.1 : 0, Waits::for_all);
  EXPECT_THAT(causes_found(), IsEmpty());
}

TEST_F(Ranks, ThatRanAtTheSameTimeForHalfOfTheShortestAreOfOneJob) {
  ranked = false;
  const auto told = [&](std::int64_t later_ns) {
    forget();
    for (int index = 0; index < 4; ++index) {
      begins_ns = 1'700'000'000'000'000'000 + (index == 2 ? later_ns : 0);
      rank(index, 20, 5, index == 2 ? 0.1 : 0, Waits::for_all);
    }
    return !causes_found().empty();
  };
  EXPECT_TRUE(told(0));
  EXPECT_TRUE(told(500'000'000)) << "of a second";
  EXPECT_FALSE(told(501'000'000));
  clock = "unknown";
  EXPECT_FALSE(told(0)) << "their times say nothing of each other";
}

TEST_F(Ranks, WithoutStepsTheOneThatComesLastToCollectivesIsNamed) {
  for (const int index : {0, 1}) {
    std::vector<std::int64_t> ns;
    // Rank 1 is short, since it comes last, in all but two of them.
    for (int i = 0; i < 30; ++i)
      ns.push_back((i % 15 != 7) == (index == 1) ? 1'000'000 : 4'000'000);
    rank_in_collectives(index, ns);
  }
  EXPECT_THAT(causes_found(),
              only_cause("act late-to-collectives: ",
                         "rank 1 comes last to 28 of 30 collectives, and the others wait there "
                         "for 84.0 ms, 8.4 % of the recording"));
}

TEST_F(Ranks, ComeLateToCollectivesFromAFiftiethOfTheRecordingOn) {
  rank_in_collectives(0, std::vector<std::int64_t>(20, 2'000'000));
  rank_in_collectives(1, std::vector<std::int64_t>(20, 1'000'000));
  EXPECT_THAT(causes_found(), only_cause("act late-to-collectives: ", "2 % of the recording"));
}

TEST_F(Ranks, AreSaidToBeLateByThePartThatExplainsMost) {
  const struct {
    StretchPart part;
    const char* words;
  } cases[] = {{StretchPart::kernels, "Its kernels take longer"},
               {StretchPart::copies, "Its copies take longer"},
               {StretchPart::input, "Its input takes longer"},
               {StretchPart::program, "Its GPU waits longer for the program, outside of CUDA"},
               {StretchPart::launches, "Its launches take longer"},
               {StretchPart::waits, "Its program waits longer for the GPU"},
               {StretchPart::allocations, "Its allocations take longer"},
               {StretchPart::calls, "Its other calls of CUDA take longer"}};
  for (const bool by_steps : {true, false}) {
    for (const auto& [part, words] : cases) {
      forget();
      for (int index = 0; index < 3; ++index)
        rank_of_parts(index,
                      by_steps,
                      {{part, index == 2 ? 20'000'000 : 0}, {StretchPart::queued, 1'000 * index}});
      EXPECT_THAT(
          causes_found(),
          only_cause(
              by_steps ? "act persistent-straggler: " : "act late-to-collectives: ",
              std::string(words) + ", which explains 100 % of that.",
              by_steps ? "steps take 4.00 s, and would take 3.60 s if in each all ranks took their "
                         "median: 1.11 times as long"
                       : "of 20 collectives: " + std::string(name_of(part)) + " 100 %"));
    }
  }
}

TEST_F(Ranks, ThatAreLateByMoreThanOneThingHaveNoReasonOrTheHost) {
  const auto told = [&](const std::vector<std::pair<StretchPart, std::int64_t>>& longer) {
    forget();
    rank_of_parts(0, true, {});
    rank_of_parts(1, true, longer);
    return causes_found();
  };
  EXPECT_THAT(told({{StretchPart::kernels, 8'000'000},
                    {StretchPart::copies, 7'000'000},
                    {StretchPart::program, 5'000'000}}),
              only_cause("persistent-straggler: ", "kernels 40 %, copies 35 %, program 25 %"));
  EXPECT_THAT(found[0].unknown, HasSubstr("no part of its time makes half"));
  EXPECT_THAT(told({{StretchPart::launches, 8'000'000},
                    {StretchPart::allocations, 7'000'000},
                    {StretchPart::program, 5'000'000}}),
              only_cause("persistent-straggler: ",
                         "Its GPU waits longer for the host, for more than one thing, which "
                         "explains 100 % of that."));
}

TEST_F(Ranks, ThatCannotBeComparedAreSaidNotToBe) {
  ranked = false;
  clock = "since the machine started";
  for (const int index : {0, 1}) rank_of_parts(index, false, {});
  EXPECT_THAT(causes_found(),
              only_cause("note ranks-not-compared: ",
                         "Nothing tells that rank0.json and rank1.json are ranks of one job, so "
                         "they are not compared."));
}

TEST_F(Ranks, OfOneNumberAreNotCompared) {
  for (const int index : {0, 1}) rank_of_parts(index, false, {});
  RecordedRun run = run_of(2);
  run.recording.rank = 1;
  write(run);
  EXPECT_THAT(causes_found(),
              only_cause("note ranks-not-compared: ",
                         "Several recordings say that they are rank 1, so no rank is compared"));
}

TEST_F(Ranks, OfOtherTimesAreNotCompared) {
  for (const int index : {0, 1}) {
    begins_ns = 1'700'000'000'000'000'000 + index * 5'000'000'000;
    rank_of_parts(index, false, {{StretchPart::kernels, index * 50'000'000}});
  }
  EXPECT_THAT(causes_found(),
              only_cause("note ranks-not-compared: ",
                         "The recordings of rank 0 and rank 1 have no time in common, so they are "
                         "not compared."));
}

TEST_F(Ranks, WithoutStepsAndCollectivesInCommonAreNotCompared) {
  rank_in_collectives(0, {1'000'000, 2'000'000});
  rank_in_collectives(1, {1'000'000});
  EXPECT_THAT(
      causes_found(),
      only_cause("note ranks-not-compared: ",
                 "The recordings of rank 0 and rank 1 have no steps in common and not the same "
                 "collectives, so who is late is not known.",
                 "rank 0: 0 steps, 2 collectives; rank 1: 0 steps, 1 collective"));
}

TEST_F(Ranks, ThatAreMissingAreNamed) {
  for (const int index : {0, 1, 3})
    rank_of_parts(index, true, {{StretchPart::kernels, index == 3 ? 20'000'000 : 0}});
  EXPECT_THAT(causes_found(),
              ElementsAre(AllOf(HasSubstr("persistent-straggler: "),
                                HasSubstr("slowest of 3 in 20 of 20 steps"),
                                Not(HasSubstr("would take"))),
                          HasSubstr("note ranks-missing: 3 of 4 ranks were recorded: rank 2 is "
                                    "missing, and who is last is said of the others alone.")));
  ranks = 64;
  forget();
  for (const int index : {0, 1, 3}) rank_of_parts(index, true, {});
  EXPECT_THAT(causes_found(),
              Contains(HasSubstr("3 of 64 ranks were recorded: rank 2, rank 4, rank 5 and 58 more "
                                 "are missing")));
}

TEST_F(Ranks, ThatAreSlowInTurnWaitForADifferentOneEachTime) {
  ranks_in_turn(1.6e8);
  EXPECT_THAT(causes_found(),
              only_cause(" rotating-straggler: The 4 ranks wait for a different one"));
}

TEST_F(Ranks, ThatAreSlowInTurnAreNothingWhereNothingShowsThatTheyWait) {
  ranks_in_turn(0);
  EXPECT_THAT(causes_found(), IsEmpty());
}

TEST_F(Ranks, ThatAreAlikeHaveNoStraggler) {
  for (int index = 0; index < 8; ++index) rank(index, 40, 0, 0, Waits::for_all);
  EXPECT_THAT(causes_found(), IsEmpty());
}

}  // namespace
}  // namespace launchgap
