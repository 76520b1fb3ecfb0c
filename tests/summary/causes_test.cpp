#include "harness/summary/causes.h"

#include <cmath>
#include <functional>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/record/records.h"
#include "tests/summary/written_session.h"

namespace launchgap {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// What a recorded process shows; nothing is wrong with it until something is put in.
struct RecordedRun {
  std::string device = "GPU-1";
  int replicate = 0;
  RecordingRecord recording;
  JobRecord job;
  std::vector<CountedKernels> kernels;
  double length_ns = 1e9, idle_share = 0.1, program_ns = 5e7;
  std::size_t on_idle = 100, on_busy = 900;
  double call_ns = 5000, between_ns = 5000, kernel_ns = 50'000;
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
      of_case(writer,
              std::string("recorded/launch/stream:") + state,
              {{"api_record_ns", std::vector<double>(n, run.call_ns)},
               {"since_last_ns", std::vector<double>(n, run.between_ns)},
               {"launch_ns", std::vector<double>(n, 7000)},
               {"kernel_ns", std::vector<double>(n, run.kernel_ns)}});
    };
    launches("idle", run.on_idle);
    launches("busy", run.on_busy);
    of_case(writer,
            "recorded/job",
            {{"step_ns", {run.length_ns}},
             {"gpu_idle_share", {run.idle_share}},
             {"idle_program_ns", {run.program_ns}},
             {"idle_calling_ns", {0}}});
    if (!run.steps.empty()) {
      std::vector<Column> columns = {{"step_ns", run.steps}};
      if (!run.collectives.empty()) columns.push_back({"collectives_ns", run.collectives});
      of_case(writer, "recorded/step", columns);
    }
    end(writer);
  }

  std::vector<std::string> codes() {
    found = causes(read());
    std::vector<std::string> names;
    for (const Finding& cause : found) names.emplace_back(cause.code);
    return names;
  }
  std::vector<std::string> codes(const RecordedRun& run) {
    write(run);
    return codes();
  }

  std::vector<Finding> found;

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
  EXPECT_THAT(found[0].sentence, HasSubstr("up to 60.0 ms less, 6 % of the recording"));
  EXPECT_THAT(text_of(found[0].evidence.at(0)),
              HasSubstr("cudaStreamSynchronize: work came late 250 times, 60.0 ms in all, at most "
                        "3.00 ms; cudaEventSynchronize: work came late 3 times"));
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
  pausing.job.pauses = {4, 400'000'000, 150'000'000};
  write(run);
  write(pausing);
  ASSERT_THAT(codes(), ElementsAre("slow-host", "program-pauses"));
  EXPECT_THAT(found[0].sentence, HasSubstr("between two launches it spends 60.0 µs outside of them"));
  EXPECT_EQ(found[0].replicate, 0);
  EXPECT_THAT(text_of(found[1].evidence.at(0)),
              HasSubstr("4 pauses in no call of CUDA; the longest takes 150 ms"));
}

TEST_F(Causes, KernelsThatAreShorterThanALaunchAreTold) {
  RecordedRun run;
  run.idle_share = 0.6;
  run.program_ns = 1e8;
  run.on_idle = 900;
  run.on_busy = 100;
  run.kernel_ns = 2000;
  ASSERT_THAT(codes(run), ElementsAre("short-kernels"));
  EXPECT_THAT(found[0].sentence,
              HasSubstr("100 % of the kernels are shorter than a launch call, 5.00 µs"));
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
  EXPECT_THAT(found[0].sentence, HasSubstr("softmax takes 400 µs or 200 µs longer: one of 1 kernels"));
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
  EXPECT_THAT(text_of(found[0].evidence.at(0)), HasSubstr("without the time in which a GPU only talks to others"));
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

TEST_F(Ranks, ThatAreAlikeHaveNoStraggler) {
  for (int index = 0; index < 8; ++index) rank(index, 40, 0, 0);
  EXPECT_THAT(codes(), IsEmpty());
}

}  // namespace
}  // namespace launchgap
