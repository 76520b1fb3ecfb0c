#include "harness/summary/job_answer.h"

#include <sstream>

#include <gmock/gmock.h>

#include "harness/record/records.h"
#include "harness/summary/causes.h"
#include "tests/sentences/said.h"
#include "tests/summary/made_process.h"
#include "tests/summary/written_session.h"

namespace launchgap {
namespace {

using namespace testing;

using Idle = std::map<std::string, double>;

/// A recorded process, and for how much of the time its GPU idles, by metric.
struct Recorded {
  Idle idle;
  RecordingRecord recording;
  JobRecord job;
  TraceCounts counts;
  std::string device = "GPU-1";
  std::size_t idle_launches = 0;  // on an idle stream
  double length_ns = 1e9;

  explicit Recorded(Idle idle = {}) : idle(std::move(idle)) {
    recording.file = "job.json";
    counts.launches = 1000;
    counts.kernels = 1000;
    LaunchTail& tail = job.tail.emplace();
    tail.launches = 1000;
    tail.time_ns = 5'000'000;
    tail.p50_ns = 4000;
    tail.p99_ns = 9000;
    tail.parts = {{"first-launch", 2, 1'000'000, 900'000, 4, "gemm"},
                  {"usual", 998, 4'000'000, 9000, 1000, ""}};
    job.extent_ns = 1'000'000'000;
    job.all_launches = 1000;
    job.unknown_launches = 0;
  }
};

class Answers : public WrittenSession {
 protected:
  void write(const Recorded& run, int replicate = 0) {
    RecordWriter writer = begin_run(run.device, "recorded", "recorded", replicate);
    writer.write(record_to_json(run.recording));
    TraceRecord trace;
    trace.case_name = "recorded/launch";
    trace.state = "recorded";
    trace.counts = run.counts;
    trace.kernels = {{"k", {1, 1, 1}, {32, 1, 1}, 1, 100'000'000, 100'000'000, 100'000'000}};
    writer.write(record_to_json(trace));
    if (run.idle_launches > 0) {
      const char* const on_idle = "recorded/launch/stream:idle";
      columns(writer, on_idle, {{"api_record_ns", std::vector<double>(run.idle_launches, 4000)}});
      summary(writer, on_idle, "ok");
    }
    writer.write(record_to_json(run.job));
    if (!run.idle.empty()) {
      double all = 0;
      std::vector<Column> of_job = {{"step_ns", {run.length_ns}}};
      for (const auto& [metric, share] : run.idle) {
        of_job.push_back({metric, {share * run.length_ns}});
        all += share;
      }
      of_job.push_back({"gpu_idle_share", {all}});
      columns(writer, "recorded/job", of_job);
      summary(writer, "recorded/job", "ok");
    }
    end(writer);
  }
  JobAnswer answer(const Recorded& run) {
    write(run, replicate_);
    const SessionData session = read();
    JobAnswer found;
    for (const RecordedProcess& process : recorded_processes(session)) {
      if (process.info.replicate == replicate_) found = answer_of(process);
    }
    ++replicate_;
    said("job", name_of(found.verdict), found.sentence);
    said("job", "launches", found.launches);
    return found;
  }
  /// The line of the terminal's text that begins so.
  std::string sentence_with(const std::string& begin) {
    const std::string text = job_text(read(), 12, 1000);
    const std::size_t at = text.find(begin);
    return at == std::string::npos ? "" : text.substr(at, text.find('\n', at) - at);
  }

 private:
  int replicate_ = 0;
};

TEST_F(Answers, TheVerdictIsWhatTheGpuWaitsForMost) {
  const struct {
    Idle idle;
    const char *verdict, *says;
  } cases[] = {
      {{{"idle_launch_ns", 0.05}, {"idle_program_ns", 0.02}}, "device-bound", "works 93 % of the"},
      {{{"idle_launch_ns", 0.5}, {"idle_program_ns", 0.1}},
       "launch-bound",
       "idle 60 % of the time, 50 % between a launch call and the start"},
      {{{"idle_program_ns", 0.5}, {"idle_launch_ns", 0.1}}, "program-bound", "outside of CUDA."},
      {{{"idle_queued_ns", 0.5}}, "held up", "50 % with work queued"},
      {{{"idle_waiting_ns", 0.3}}, "wait-bound", "30 % while the thread that launches waits"},
      {{{"idle_allocating_ns", 0.3}}, "allocation-bound", "allocates or frees memory"},
      {{{"idle_calling_ns", 0.3}},
       "call-bound",
       "30 % while the thread that launches is in other calls"},
      {{{"idle_unknown_ns", 0.3}}, "not known", "nobody launched in the recording"},
      {{{"idle_launch_ns", 0.2}, {"idle_program_ns", 0.15}, {"idle_calling_ns", 0.1}},
       "mixed",
       "for several causes, 20 % between a launch call"},
  };
  for (const auto& [idle, verdict, says] : cases) {
    const JobAnswer found = answer(Recorded(idle));
    EXPECT_EQ(name_of(found.verdict), verdict);
    EXPECT_THAT(found.sentence, HasSubstr(says));
    ASSERT_TRUE(found.idle_share);
  }
}

TEST_F(Answers, LaunchesSayHowManyHowLongAndWhereTheirTimeGoes) {
  Recorded run(Idle{{"idle_launch_ns", 0.05}});
  EXPECT_EQ(
      answer(run).launches,
      "1,000 launch calls take 5.00 ms, 0.5 % of the recording (a call: p50 4.00 µs, p99 9.00 "
      "µs): usual calls 80 %, first launches 20 % (2).");
}

TEST_F(Answers, OneLaunchTakesAndCallsOfSeveralThreadsGoOn) {
  Recorded run(Idle{{"idle_launch_ns", 0.05}});
  run.job.tail->launches = 1;
  run.job.tail->parts = {{"usual", 1, 5'000'000, 5'000'000, 1, ""}};
  EXPECT_THAT(answer(run).launches, HasSubstr("1 launch call takes 5.00 ms, 0.5 % of the"));
  // Of eight threads whose calls overlap.
  run.job.tail->launches = 1600;
  run.job.tail->time_ns = 7'600'000'000;
  run.job.tail->covered_ns = 950'000'000;
  const JobAnswer found = answer(run);
  EXPECT_DOUBLE_EQ(*found.launch_share, 0.95);
  EXPECT_THAT(found.launches,
              HasSubstr("1,600 launch calls take 7.60 s, and one or more go on for 95 % of the "
                        "recording (a call"));
}

TEST_F(Answers, OfAGpuThatWorksForAPartOfTheRecordingThePartIsSaid) {
  Recorded run(Idle{{"idle_program_ns", 0.6}});
  run.job.extent_ns = 10'000'000'000;
  EXPECT_THAT(
      answer(run).sentence,
      HasSubstr("From its first work to its last, 1.00 s of the 10.0 s recorded, the GPU is "
                "idle 60 % of the time, 60 % while the program"));
  run.idle = {{"idle_program_ns", 0.06}};
  EXPECT_THAT(answer(run).sentence, HasSubstr("recorded, the GPU works 94 % of the time and is"));
}

TEST_F(Answers, QueuedWorkOfGraphsIsNotSaidToWait) {
  Recorded run(Idle{{"idle_queued_ns", 0.5}});
  run.job.queued_graph_ns = 300'000'000;
  EXPECT_EQ(answer(run).sentence,
            "The GPU is idle 50 % of the time, 50 % with work queued, mostly of graphs.");
}

TEST_F(Answers, OfIdlenessWithoutItsPartsNothingElseIsSaid) {
  const Recorded run(Idle{{"launch_ns", 0.3}});
  EXPECT_EQ(answer(run).sentence, "The GPU is idle 30 % of the time, and nothing tells for what.");
}

TEST_F(Answers, OneKernelIsTooShortForAVerdict) {
  Recorded run(Idle{{"idle_program_ns", 0}});
  run.counts.kernels = run.counts.launches = 1;
  const JobAnswer found = answer(run);
  EXPECT_EQ(name_of(found.verdict), "too short");
  EXPECT_EQ(found.idle_share, std::nullopt);
  EXPECT_THAT(found.sentence, HasSubstr("The GPU ran one kernel, for 1.00 s"));
}

TEST_F(Answers, WhatHasNoLaunchesSaysNothingOfTheirTime) {
  Recorded copies(Idle{{"idle_unknown_ns", 0.8}});
  copies.job.tail.reset();
  copies.counts.launches = copies.counts.kernels = 0;
  write(copies);
  const std::string text = job_text(read(), 10);
  said("job", "no launches", sentence_with("It launches nothing"));
  EXPECT_THAT(text, HasSubstr("It launches nothing: all that its GPU does is copies and fills."));
  EXPECT_THAT(text, HasSubstr("the GPU is idle 80 % of the time."));
  EXPECT_THAT(text, Not(HasSubstr("launch calls take")));
}

TEST_F(Answers, OfCopiesWithoutIdleTimeNothingIsKnown) {
  Recorded copies;
  copies.length_ns = 0;
  copies.job.tail.reset();
  copies.job.all_launches = copies.job.unknown_launches = std::nullopt;
  copies.counts.launches.reset();
  copies.counts.kernels = 0;
  const JobAnswer found = answer(copies);
  EXPECT_EQ(found.verdict, JobVerdict::no_kernels);
  EXPECT_EQ(found.idle_share, std::nullopt);
  EXPECT_EQ(found.sentence,
            "The recording has copies and no kernels: whether the GPU was idle is not known.");
}

TEST_F(Answers, WhatIsNotKnownHasNoVerdictAndNoIdleShare) {
  Recorded run(Idle{{"idle_launch_ns", 0.5}});
  run.job.unknown_launches = 9;
  EXPECT_EQ(answer(run).verdict, JobVerdict::launch_bound);
  run.job.unknown_launches = 10;
  const JobAnswer lost = answer(run);
  EXPECT_EQ(lost.verdict, JobVerdict::not_known);
  EXPECT_EQ(lost.idle_share, std::nullopt);
  EXPECT_NEAR(*lost.unknown_share, 0.01, 1e-12);
  EXPECT_THAT(lost.sentence, HasSubstr("kernels of 1 % of the launches are lost or impossible"));
  run.job.unknown_launches = 1;
  run.job.unknown_ns = 300'000'000;
  EXPECT_THAT(answer(run).sentence, HasSubstr("around 30 % of the time"));
  run.job.all_launches = run.job.unknown_launches = std::nullopt;
  run.job.unknown_ns = std::nullopt;
  run.counts.launches_without_kernel = 460;
  EXPECT_EQ(answer(run).verdict, JobVerdict::not_known) << "of an older version's import";
}

TEST_F(Answers, WhatLacksLaunchesKernelsOrClocksSaysSo) {
  Recorded calls;
  calls.counts.kernels = 0;
  EXPECT_EQ(answer(calls).verdict, JobVerdict::no_kernels);
  Recorded clocks(Idle{{"idle_unknown_ns", 0.5}});
  clocks.recording.clock_problem = "the GPU's clock is ahead of the host's, by 133 s at most";
  const JobAnswer found = answer(clocks);
  EXPECT_EQ(found.verdict, JobVerdict::clocks_disagree);
  EXPECT_THAT(found.sentence, HasSubstr("133 s"));
  EXPECT_TRUE(found.idle_share) << "the GPU's own times are its own";
  Recorded kernels;
  kernels.job.tail.reset();
  kernels.counts.launches = 0;
  EXPECT_EQ(answer(kernels).verdict, JobVerdict::no_launches);
  kernels.counts.kernels = 0;
  kernels.recording.allocations = 12;
  EXPECT_EQ(answer(kernels).verdict, JobVerdict::allocations_only);
}

TEST_F(Answers, AJobOfManyProcessesStandsOnOneScreen) {
  for (int i = 0; i < 40; ++i) {
    Recorded run;
    run.recording.file = "a-rather-long-name-of-a-file-of-rank-" + std::to_string(i) + ".json.gz";
    run.recording.rank = i;
    run.idle = {{"idle_launch_ns", 0.3 + 0.01 * i}};
    write(run, i);
  }
  const std::string text = job_text(read(), 10);
  EXPECT_LE(std::ranges::count(text, '\n'), 10);
  EXPECT_THAT(text, HasSubstr("rank 39: launch-bound, GPU idle 69 %")) << "the most idle first";
  EXPECT_THAT(text, HasSubstr("and 37 more: recordings.csv."));
  EXPECT_THAT(text, HasSubstr("[first-launches]")) << "a finding has room all the same";
  EXPECT_THAT(text, HasSubstr("and 39 more: findings.csv."));
}

TEST_F(Answers, EachGpusRowsHaveItsOwnLaunchesAndShares) {
  add_device("GPU-2");
  for (const int gpu : {1, 2}) {
    Recorded run(Idle{{"idle_launch_ns", 0.5}});
    run.device = "GPU-" + std::to_string(gpu);
    run.idle_launches = gpu == 1 ? 3 : 6;
    run.length_ns = 1e9 / gpu;
    run.counts.joined = 500;
    run.counts.kernels = gpu == 1 ? 0 : 1000;
    write(run);
  }
  const SessionData session = read();
  const auto column = [&](const char* table, std::string_view key) {
    const Table& found = table_named(table);
    const auto at = std::ranges::find(found.columns, key, &ColumnInfo::key) - found.columns.begin();
    std::vector<std::string> cells;
    for (const auto& line : lines_of(found, session))
      cells.push_back(line.at(static_cast<std::size_t>(at - 1)));  // without the session's id
    return cells;
  };
  EXPECT_THAT(column("recordings.csv", "device_id"), ElementsAre("GPU-1", "GPU-2"));
  EXPECT_THAT(column("recordings.csv", "idle_launches"), ElementsAre("3", "6"));
  EXPECT_THAT(column("recordings.csv", "joined_share"), ElementsAre("", "0.5"));
  EXPECT_THAT(column("kernels.csv", "gpu_share"), ElementsAre("0.1", "0.2"));
}

TEST_F(Answers, EachProcessHasItsOwnCounts) {
  Recorded run;
  for (int i = 0; i < 3; ++i) {
    run.counts.launches = 1000 + static_cast<std::uint64_t>(i);
    run.job.all_launches = 2000 + i;
    write(run, i);
  }
  Recorded
      of_before;  // without `all_launches`, and without a count of launches that have no kernel
  of_before.job.all_launches.reset();
  write(of_before, 3);
  const SessionData session = read();
  for (const RecordedProcess& process : recorded_processes(session)) {
    EXPECT_EQ(process.unknown_launches(), 0);
    if (process.info.replicate == 3) continue;
    EXPECT_EQ(process.counts.launches, 1000u + process.info.replicate);
    EXPECT_EQ(process.job.all_launches, 2000 + process.info.replicate);
  }
}

TEST_F(Answers, NothingGraveIsOneSentenceWithItsFigures) {
  Recorded run(Idle{{"idle_program_ns", 0.081}});
  run.job.tail->parts = {{"usual", 1000, 5'000'000, 9000, 1000, ""}};
  write(run);
  said("job", "nothing grave", sentence_with("Nothing grave"));
  EXPECT_THAT(job_text(read(), 10),
              HasSubstr("Nothing grave: the GPU is idle 8.1 % and launch calls take 0.5 % of the "
                        "time."));
}

TEST_F(Answers, OfAGpuThatIdlesAFifthNothingGraveIsSaidBesideAFinding) {
  const auto says = [this](double idle_share) {
    Recorded run;
    run.idle = {{"idle_program_ns", idle_share}};
    for (const auto& before : std::filesystem::directory_iterator(path / "records"))
      std::filesystem::remove(before);
    write(run);
    EXPECT_THAT(causes(read()), SizeIs(1)) << "of first launches";
    return job_text(read(), 10);
  };
  EXPECT_THAT(says(0.2), HasSubstr("Nothing grave: the GPU is idle 20 %"));
  EXPECT_THAT(says(0.201), Not(HasSubstr("Nothing grave")));
}

TEST_F(Answers, WithoutACauseSayThatNoneShows) {
  Recorded idle(Idle{{"idle_queued_ns", 0.15}, {"idle_program_ns", 0.1}});
  idle.job.tail->parts = {{"usual", 1000, 5'000'000, 9000, 1000, ""}};
  write(idle);
  EXPECT_THAT(sentence_with("No cause"), HasSubstr("of the idle time shows: the GPU is idle 25 %"));
  said("job", "no cause", sentence_with("No cause"));
}

TEST_F(Answers, OfLostKernelsSayThatNothingRestsOnIdleness) {
  Recorded lost(Idle{{"idle_queued_ns", 0.15}, {"idle_program_ns", 0.1}});
  lost.job.unknown_launches = 500;
  write(lost);
  EXPECT_THAT(sentence_with("No cause"), HasSubstr("that rests on idle time"));
  said("job", "no cause", sentence_with("No cause"));
}

TEST_F(Answers, WithoutALaunchThatHasItsKernelSayThatIdlenessIsNotKnown) {
  EXPECT_THAT(answer(Recorded()).sentence,
              HasSubstr("No launch was found together with its kernel"));
}

TEST_F(Answers, TheSameStandsInTheJson) {
  Recorded run(Idle{{"idle_launch_ns", 0.5}});
  write(run);
  const Json found = job_json(read());
  const Json& job = found["jobs"][0];
  EXPECT_EQ(job["verdict"], "launch-bound");
  EXPECT_DOUBLE_EQ(job["gpu_idle_share"].get<double>(), 0.5);
  EXPECT_DOUBLE_EQ(job["tail"][0]["share"].get<double>(), 0.2);
  EXPECT_TRUE(found["findings"].is_array());
}

// --- Which lines fit ----------------------------------------------------------------------------

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

auto begin_with(const std::vector<std::string>& begins) {
  std::vector<Matcher<std::string>> matchers;
  for (const std::string& begin : begins) matchers.push_back(StartsWith(begin));
  return ElementsAreArray(matchers);
}

/// Whose launches are all usual, so that no cause shows.
Recorded usual_run(double program_share) {
  Recorded run(Idle{{"idle_program_ns", program_share}});
  run.job.tail->parts = {{"usual", 1000, 5'000'000, 9000, 1000, ""}};
  return run;
}

TEST_F(Answers, UpToThreeProcessesStandInTheOrderOfTheirNames) {
  for (const int rank : {2, 0, 1}) {
    Recorded run = usual_run(0.05 * rank);
    run.recording.rank = rank;
    run.recording.pid = 100 + static_cast<std::uint64_t>(rank);
    write(run, rank);
  }
  EXPECT_THAT(lines_of(job_text(read(), 12, 1000)),
              begin_with({"rank 0: device-bound, GPU idle 0 %; launch calls 5.00 ms, 0.5 % of the "
                          "time: usual calls 100 %.",
                          "rank 1: device-bound, GPU idle 5 %",
                          "rank 2: device-bound, GPU idle 10 %",
                          "Nothing grave: the GPU is idle 10 % and launch calls take 0.5 % of the "
                          "time at most."}));
}

TEST_F(Answers, OfFourProcessesTheMostIdleAreShown) {
  for (const int rank : {0, 1, 2, 3}) {
    Recorded run = usual_run(0.05 * (rank % 3));
    run.recording.rank = rank;
    run.recording.pid = 100 + static_cast<std::uint64_t>(rank);
    if (rank == 3) run.idle = {};
    write(run, rank);
  }
  EXPECT_THAT(lines_of(job_text(read(), 12, 1000)),
              begin_with({"rank 2: device-bound, GPU idle 10 %",
                          "rank 1: device-bound, GPU idle 5 %",
                          "rank 0: device-bound, GPU idle 0 %",
                          "and 1 more: recordings.csv.",
                          "Nothing grave: the GPU is idle 10 %"}));
}

TEST_F(Answers, AProcessStandsThereIfWhatIsSaidOfAllHasRoomBeside) {
  for (const int rank : {0, 1}) {
    Recorded run = usual_run(0.05);
    run.recording.rank = rank;
    run.recording.pid = 100 + static_cast<std::uint64_t>(rank);
    write(run, rank);
  }
  const SessionData session = read();
  EXPECT_THAT(lines_of(job_text(session, 4, 1000)),
              begin_with({"rank 0: ", "rank 1: ", "Nothing grave: "}));
  EXPECT_THAT(lines_of(job_text(session, 3, 1000)), begin_with({"rank 0: ", "Nothing grave: "}));
  EXPECT_THAT(lines_of(job_text(session, 2, 1000)), begin_with({"Nothing grave: "}));
  EXPECT_THAT(lines_of(job_text(session, 1, 1000)), begin_with({"Nothing grave: "}));
  EXPECT_THAT(job_text(session, 0, 1000), IsEmpty());
}

TEST_F(Answers, WhoIsLateIsSaidThoughThreeCausesAreGraver) {
  for (int rank = 0; rank < 4; ++rank) {
    Recorded run(Idle{{"idle_program_ns", 0.25}});
    run.job.tail->parts[0].time_ns = 2'000'000;
    run.job.tail->time_ns = 5'000'000;
    run.job.extent_ns = 100'000'000;
    run.length_ns = 1e8;
    run.recording.rank = rank;
    run.recording.pid = 100 + static_cast<std::uint64_t>(rank);
    CollectiveRecord& own = run.job.collectives.emplace_back();
    own.name = "ncclA";
    own.ns.assign(2, rank == 3 ? 1'000'000 : 4'000'000);
    write(run, rank);
  }
  const std::vector<std::string> lines = lines_of(job_text(read(), 12, 1000));
  ASSERT_EQ(lines.size(), 8u);
  EXPECT_THAT(lines[4], StartsWith("act   rank 0: 2 of 1,000 launches"));
  EXPECT_THAT(lines[6], StartsWith("note  rank 3 comes last"));
  EXPECT_THAT(lines[6], HasSubstr("[late-to-collectives]"));
  EXPECT_THAT(lines[7], "and 2 more: findings.csv.");
}

TEST_F(Answers, ThreeCausesAreShownAndTheOthersCounted) {
  const auto text_of = [this](int processes, std::size_t most_lines) {
    for (const auto& before : std::filesystem::directory_iterator(path / "records"))
      std::filesystem::remove(before);
    for (int rank = 0; rank < processes; ++rank) {
      Recorded run(Idle{{"idle_program_ns", 0.25}});
      run.job.tail->parts[0].time_ns = 2'000'000 - rank;
      run.job.tail->time_ns = 5'000'000;
      run.job.extent_ns = 100'000'000;
      run.length_ns = 1e8;
      run.recording.rank = rank;
      run.recording.pid = 100 + static_cast<std::uint64_t>(rank);
      write(run, rank);
    }
    return lines_of(job_text(read(), most_lines, 1000));
  };
  const std::vector<std::string> causes = {
      "act   rank 0: 2 of 1,000 launches took 2.00 ms", "act   rank 1: ", "act   rank 2: "};
  EXPECT_THAT(text_of(3, 6),
              begin_with({"rank 0: ", "rank 1: ", "rank 2: ", causes[0], causes[1], causes[2]}));
  EXPECT_THAT(
      text_of(3, 5),
      begin_with({"rank 0: ", "rank 1: ", "rank 2: ", causes[0], "and 2 more: findings.csv."}));
  EXPECT_THAT(text_of(4, 8),
              begin_with({"rank 0: ",
                          "rank 1: ",
                          "rank 2: ",
                          "and 1 more: recordings.csv.",
                          causes[0],
                          causes[1],
                          causes[2],
                          "and 1 more: findings.csv."}));
  EXPECT_THAT(text_of(1, 6),
              begin_with({"job.json: program-bound. ",
                          "1,000 launch calls",
                          "act   2 of 1,000 launches took 2.00 ms"}))
      << "of one process nobody asks which";
}

TEST_F(Answers, WhatBeginsWithItsProcessSaysItOnce) {
  for (const int rank : {0, 1}) {
    Recorded run = usual_run(0.05);
    run.recording.rank = rank;
    run.recording.pid = 100 + static_cast<std::uint64_t>(rank);
    run.job.collectives = {{"reduce", std::vector<std::int64_t>(20, rank == 0 ? 2'000'000 : 1000)}};
    write(run, rank);
  }
  EXPECT_THAT(lines_of(job_text(read(), 12, 1000)),
              begin_with({"rank 0: ", "rank 1: ", "act   rank 1 comes last to 20 of 20"}));
}

TEST_F(Answers, OfAProcessWithoutAJobRecordNothingGraveIsSaid) {
  RecordWriter writer = begin_run("GPU-1", "recorded", "recorded", 5);
  writer.write(record_to_json(Recorded().recording));
  end(writer);
  EXPECT_THAT(lines_of(job_text(read(), 12, 1000)),
              ElementsAre("job.json: no launches. It launches nothing: all that its GPU does is "
                          "copies and fills."));
  write(usual_run(0.05));
  EXPECT_THAT(job_text(read(), 12, 1000),
              HasSubstr("Nothing grave: the GPU is idle 5 % and launch calls take 0.5 % of the "
                        "time at most."));
}

TEST_F(Answers, OneProcessThatIsNotKnownLeavesAllCausesOpen) {
  Recorded known = usual_run(0.05), lost = usual_run(0.05);
  lost.job.unknown_launches = 500;
  write(lost, 0);
  write(known, 1);
  EXPECT_THAT(sentence_with("No cause"), StartsWith("No cause is told that rests on idle time"));
}

// --- Of a process that is put together here -----------------------------------------------------

/// Of 1024 ns, with a thousand launches and kernels.
struct AProcess : MadeProcess {
  explicit AProcess(const Idle& waits = {}) : MadeProcess(waits, 1024), own(process()) {
    own.counts.launches = own.counts.kernels = 1000;
  }
  RecordedProcess own;
};

TEST(AnswerOf, IdlenessHasItsLimits) {
  const struct {
    Idle waits;
    double idle;
    std::int64_t kernels, of_graphs;
    const char *verdict, *sentence;
  } cases[] = {
      {{},
       0,
       1,
       0,
       "too short",
       "The GPU ran one kernel, for 1.02 µs: there is no time between two in which it could be "
       "idle."},
      {{}, 0, 2, 0, "device-bound", "The GPU works 100 % of the time and is idle 0 %."},
      {{}, 0.2, 1, 0, "device-bound", "The GPU works 80 % of the time and is idle 20 %."},
      {{}, 0.3, 9, 0, "mixed", "The GPU is idle 30 % of the time, and nothing tells for what."},
      {{{"idle_launch_ns", 256}, {"idle_program_ns", 256}},
       0.5,
       9,
       0,
       "launch-bound",
       "The GPU is idle 50 % of the time, 25 % between a launch call and the start of its work."},
      {{{"idle_launch_ns", 255}, {"idle_program_ns", 254}},
       0.5,
       9,
       0,
       "mixed",
       "The GPU is idle 50 % of the time for several causes, 25 % between a launch call and the "
       "start of its work."},
      {{{"idle_program_ns", 512}},
       0.5,
       1,
       0,
       "program-bound",
       "The GPU is idle 50 % of the time, 50 % while the program is outside of CUDA."},
      {{{"idle_queued_ns", 512}},
       0.5,
       9,
       256,
       "held up",
       "The GPU is idle 50 % of the time, 50 % with work queued, mostly of graphs."},
      {{{"idle_queued_ns", 512}},
       0.5,
       9,
       255,
       "held up",
       "The GPU is idle 50 % of the time, 50 % with work queued that waits for something else."},
      {{{"idle_launch_ns", 512}},
       0.5,
       9,
       512,
       "launch-bound",
       "The GPU is idle 50 % of the time, 50 % between a launch call and the start of its work."},
  };
  for (const auto& [waits, idle, kernels, of_graphs, verdict, sentence] : cases) {
    AProcess made(waits);
    made.own.idle_share = idle;
    made.own.counts.kernels = kernels;
    made.own.job.queued_graph_ns = of_graphs;
    const JobAnswer found = answer_of(made.own);
    EXPECT_EQ(name_of(found.verdict), verdict);
    EXPECT_EQ(found.sentence, sentence);
  }
}

TEST(AnswerOf, FromATenthOfTheRecordingWithoutWorkOnThatIsSaid) {
  const struct {
    std::optional<double> length_ns;
    std::optional<std::int64_t> extent_ns;
    const char* begins;
  } cases[] = {
      {9, 10, "The GPU works"},
      {0, 10, "The GPU works"},
      {{}, 10, "The GPU works"},
      {9, {}, "The GPU works"},
      {0, 0, "The GPU works"},
      {8.875, 10, "From its first work to its last, 8.88 ns of the 10 ns recorded, the GPU works"},
      {1, 10, "From its first work to its last, 1 ns of the 10 ns recorded, the GPU works"},
  };
  for (const auto& [length_ns, extent_ns, begins] : cases) {
    AProcess made;
    made.own.idle_share = 0.1;
    made.own.length_ns = length_ns;
    made.own.job.extent_ns = extent_ns;
    EXPECT_THAT(answer_of(made.own).sentence, StartsWith(begins));
  }
}

TEST(AnswerOf, WithoutWhatAVerdictRestsOnItSaysWhatIsMissing) {
  const struct {
    bool tail;
    TraceCounts::Count launches, kernels;
    std::optional<std::uint64_t> allocations;
    const char *clock_problem, *verdict, *says;
    bool idle_share;
  } cases[] = {
      {false,
       0,
       0,
       7,
       "",
       "allocations only",
       "The recording has allocations and no launches",
       false},
      {false, {}, {}, 7, "", "allocations only", "The recording has allocations", false},
      {false, 0, 3, 7, "", "no launches", "Nothing tells when its kernels were launched", true},
      {false, 0, 0, {}, "", "no launches", "It launches nothing", true},
      {false, 2, 0, 7, "", "no kernels", "The recording has calls and no kernels", false},
      {true, 0, 0, 7, "", "no kernels", "The recording has calls and no kernels", false},
      {true, {}, 3, {}, "", "device-bound", "The GPU works 90 %", true},
      {false, 1, 3, {}, "late", "clocks disagree", "Why the GPU is idle is not known: late.", true},
  };
  for (const auto& [tail,
                    launches,
                    kernels,
                    allocations,
                    clock_problem,
                    verdict,
                    says,
                    idle_share] : cases) {
    AProcess made;
    made.own.idle_share = 0.1;
    if (tail) made.own.job.tail.emplace();
    made.own.counts.launches = launches;
    made.own.counts.kernels = kernels;
    made.session.recordings[0].record.allocations = allocations;
    made.session.recordings[0].record.clock_problem = clock_problem;
    const JobAnswer found = answer_of(made.own);
    EXPECT_EQ(name_of(found.verdict), verdict);
    EXPECT_THAT(found.sentence, StartsWith(says));
    EXPECT_EQ(found.idle_share.has_value(), idle_share) << verdict;
  }
}

TEST(AnswerOf, WhereClocksDisagreeAndKernelsAreLostNoIdleShareIsSaid) {
  AProcess made;
  made.own.idle_share = 0.1;
  made.session.recordings[0].record.clock_problem = "late";
  made.own.job.all_launches = 100;
  made.own.job.unknown_launches = 1;
  EXPECT_EQ(answer_of(made.own).idle_share, std::nullopt);
}

TEST(AnswerOf, WhatIsUnknownIsAShareOfLaunchesThatWereCounted) {
  AProcess made;
  EXPECT_EQ(answer_of(made.own).unknown_share, 0);
  made.own.counts.launches.reset();
  EXPECT_EQ(answer_of(made.own).unknown_share, std::nullopt);
  made.own.job.all_launches = 4;
  made.own.job.unknown_launches = 1;
  EXPECT_EQ(answer_of(made.own).unknown_share, 0.25);
}

TEST(AnswerOf, LaunchCallsGoOnTogetherWhereTheyCoverLessThanTheirTime) {
  AProcess made;
  LaunchTail& tail = made.own.job.tail.emplace();
  made.own.job.extent_ns = 8;
  tail.launches = 2;
  tail.time_ns = 4;
  tail.p50_ns = 2;
  tail.parts = {{"usual", 2, 4, 3, 2, ""}};
  const auto launches = [&](std::int64_t covered_ns) {
    tail.covered_ns = covered_ns;
    return answer_of(made.own).launches;
  };
  EXPECT_EQ(launches(0),
            "2 launch calls take 4 ns, 50 % of the recording (a call: p50 2 ns): usual calls 100 "
            "%.");
  EXPECT_EQ(launches(4), launches(0));
  EXPECT_THAT(launches(1),
              StartsWith("2 launch calls take 4 ns, and one or more go on for 12 % of the "
                         "recording (a call: p50 2 ns)"));
  tail.p99_ns = 1;
  EXPECT_THAT(launches(0), HasSubstr("(a call: p50 2 ns, p99 1 ns)"));
}

TEST(TailText, HasTheLongestFirstAndNothingThatIsUnknown) {
  LaunchTail tail;
  tail.time_ns = 1000;
  tail.parts = {{"recorder", 3, 50, 0, 0, ""},
                {"first-launch", 1234, 50, 0, 0, ""},
                {"cosmic rays", 1, 500, 0, 0, ""},
                {"usual", 9000, 400, 0, 0, ""}};
  EXPECT_EQ(tail_text(tail), "usual calls 40 %, recorder 5 % (3), first launches 5 % (1,234)");
}

}  // namespace
}  // namespace launchgap
