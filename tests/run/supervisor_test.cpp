#include "harness/run/supervisor.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>

namespace launchgap {
namespace {

using ::testing::ElementsAreArray;

constexpr double kTimeoutS = 100;

// --- events, in few words ---

RunEvent begins(const char* name) {
  return event::Said{message::CaseBegun{name}};
}
RunEvent ends(const char* name, Status status = Status::ok, const char* reason = "") {
  return event::Said{message::CaseEnded{name, status, reason, false, false}};
}
RunEvent ends_sticky(const char* name, const char* reason) {
  return event::Said{message::CaseEnded{name, Status::failed, reason, true, false}};
}
RunEvent ends_of_trace(const char* name, Status status, const char* reason) {
  return event::Said{message::CaseEnded{name, status, reason, false, true}};
}
RunEvent block() {
  return event::Said{message::BlockDone{0}};
}
RunEvent says(const char* error) {
  return event::Said{message::Failed{error, false}};
}
RunEvent exits(int code = 0) {
  return event::Ended{{.exit_code = code}, ""};
}
RunEvent crashes(const char* output = "") {
  return event::Ended{{.signal = SIGSEGV}, output};
}

/// An event, or time that passes before a tick.
struct Step {
  Step(RunEvent event, double after_s = 0)  // NOLINT(google-explicit-constructor)
      : event(std::move(event)), after_s(after_s) {}
  explicit Step(double after_s) : event(event::Tick{}), after_s(after_s) {}

  RunEvent event;
  double after_s = 0;
};

Step after(double seconds) {
  return Step(seconds);
}
const Step kHangs = after(kTimeoutS + 1);
const Step kIsGone = RunEvent(event::Killed{true});
const Step kStays = RunEvent(event::Killed{false});

// --- actions, in few words ---

std::string in_words(const EventRecord& record) {
  return fmt::format("{}{}", record.event, record.case_name ? " in " + *record.case_name : "");
}
std::string in_words(const SummaryRecord& record) {
  return fmt::format("{} {}", record.case_name, name_of(record.status));
}
std::string in_words(const EndRecord& record) {
  EXPECT_EQ(record.written_by, "parent");
  return "end " + record.status;
}

std::string in_words(const action::Start& start) {
  std::vector<std::string> skipped;
  for (const SkippedCase& left_out : start.skipped) skipped.push_back(left_out.case_name);
  return fmt::format("start #{}: {}{}",
                     start.attempt,
                     fmt::join(start.cases, " "),
                     skipped.empty() ? "" : fmt::format(" without {}", fmt::join(skipped, " ")));
}
std::string in_words(const action::Kill&) {
  return "kill";
}
std::string in_words(const action::Abandon&) {
  return "abandon";
}
std::string in_words(const action::Write& write) {
  std::vector<std::string> records;
  for (const auto& record : write.records)
    records.push_back(std::visit([](const auto& known) { return in_words(known); }, record));
  return fmt::format("write #{}: {}", write.attempt, fmt::join(records, ", "));
}
std::string in_words(const action::GiveUpDevice&) {
  return "give up the device";
}
std::string in_words(const action::Fail& failure) {
  return "fail: " + failure.line;
}
std::string in_words(const action::Say& remark) {
  return "say: " + remark.line;
}
std::string in_words(const action::Advance&) {
  return "advance";
}
std::string in_words(const action::EndSession& end) {
  return "end the session: " + end.error;
}
std::string in_words(const action::Finish&) {
  return "finish";
}

/// Two cases on a GPU, which take 1 s and 40 s.
PlannedRun two_cases(ProcessConfig process_config = "launch",
                     Arm arm = Arm::plain,
                     int replicate = 0) {
  return {"GPU-1", std::move(process_config), arm, replicate, {{"a", 1}, {"b", 40}}};
}

/// What a run's supervisor asks for, from its start on. Fails if it is not at its end, or if cases
/// that are done with, however they ended, are not the progress that was made.
std::vector<std::string> play(const std::vector<Step>& steps,
                              Quarantine& quarantine,
                              PlannedRun run = two_cases()) {
  RunSupervisor supervisor(std::move(run), "A100 (0)", kTimeoutS, quarantine);
  std::int64_t now_ns = 0;
  std::vector<std::string> words;
  double progress_s = 0;
  bool stopped = false;
  const auto add = [&](const Actions& actions) {
    for (const Action& action : actions) {
      if (const auto* advance = std::get_if<action::Advance>(&action)) {
        progress_s += advance->seconds;
        continue;
      }
      words.push_back(std::visit([](const auto& known) { return in_words(known); }, action));
      stopped |= words.back().ends_with("end stopped") || words.back().starts_with("end the ses");
    }
  };
  add(supervisor.begin());
  for (const Step& step : steps) {
    EXPECT_FALSE(supervisor.over()) << fmt::format("{}", fmt::join(words, "\n"));
    now_ns += static_cast<std::int64_t>(step.after_s * 1e9);
    add(supervisor.handle(step.event, now_ns));
  }
  EXPECT_TRUE(supervisor.over()) << fmt::format("{}", fmt::join(words, "\n"));
  EXPECT_EQ(progress_s, stopped ? 0 : 41) << fmt::format("{}", fmt::join(words, "\n"));
  return words;
}

// --- docs/architecture.md, "How failures travel", row by row ---

struct Row {
  const char* documented;  // the first column
  std::vector<Step> steps;
  std::vector<std::string> actions;  // between "start #0: a b" and "finish"
};

const std::vector<Row>& rows() {
  static const std::vector<Row> all = {
      {"a call fails, the context is intact",
       {begins("a"), ends("a", Status::failed, "cuMemAlloc: 2"), begins("b"), ends("b"), exits()},
       {"fail: A100 (0): a: failed: cuMemAlloc: 2"}},
      {"work fails that nobody waited for",
       {begins("a"), ends("a"), begins("b"), ends("b", Status::failed, "lost"), exits()},
       {"fail: A100 (0): b: failed: lost"}},
      {"a sticky error (illegal address, launch failed, ECC, …)",
       {begins("a"), ends_sticky("a", "700"), exits(), begins("b"), ends("b"), exits()},
       {"fail: A100 (0): a: failed: 700", "start #1: b"}},
      {"a sticky error (illegal address, launch failed, ECC, …)",
       {begins("a"), ends("a"), begins("b"), ends_sticky("b", "700"), exits()},
       {"fail: A100 (0): b: failed: 700"}},
      {"a sticky error (illegal address, launch failed, ECC, …)",  // and it does not end cleanly
       {begins("a"), ends_sticky("a", "700"), crashes(), begins("b"), ends("b"), exits()},
       {"fail: A100 (0): a: failed: 700", "start #1: b"}},
      {"wrong result",
       {begins("a"), ends("a", Status::failed, "1 of 3"), begins("b"), ends("b"), exits()},
       {"fail: A100 (0): a: failed: 1 of 3"}},
      {"device or library cannot",
       {begins("a"), ends("a", Status::unsupported, "no"), begins("b"), ends("b"), exits()},
       {}},
      {"a sample proves nothing (`InvalidMeasurement`)",
       {begins("a"), ends("a", Status::invalid, "0 ns"), begins("b"), ends("b"), exits()},
       {"fail: A100 (0): a: invalid: 0 ns"}},
      {"it needs more memory than is free (`TooLarge`)",
       {begins("a"), ends("a", Status::skipped, "3 MiB"), begins("b"), ends("b"), exits()},
       {}},
      {"the worker crashes in a case",
       {begins("a"), block(), crashes("boom"), begins("b"), ends("b"), exits()},
       {"fail: A100 (0): a: failed: the process was killed by SIGSEGV: boom",
        "write #0: worker-crashed in a, a failed, end failed",
        "start #1: b"}},
      {"the worker crashes in a case",  // in its last one
       {begins("a"), ends("a"), begins("b"), crashes()},
       {"fail: A100 (0): b: failed: the process was killed by SIGSEGV",
        "write #0: worker-crashed in b, b failed, end failed"}},
      {"the worker crashes in a case",  // and so does the next one
       {begins("a"), crashes(), begins("b"), crashes()},
       {"fail: A100 (0): a: failed: the process was killed by SIGSEGV",
        "write #0: worker-crashed in a, a failed, end failed",
        "start #1: b",
        "fail: A100 (0): b: failed: the process was killed by SIGSEGV",
        "write #1: worker-crashed in b, b failed, end failed"}},
      {"the worker ends with 0 and has work left: a library ended the process",
       {begins("a"), exits(), begins("b"), ends("b"), exits()},
       {"fail: A100 (0): a: failed: the process exited with 0",
        "write #0: worker-crashed in a, a failed, end failed",
        "start #1: b"}},
      {"the worker ends with 0 and has work left: a library ended the process",  // between two
       {begins("a"), ends("a"), exits()},
       {"fail: A100 (0): launch r0: not measured: the process exited with 0",
        "write #0: b failed, end failed"}},
      {"the worker crashes before its first case or between two",
       {crashes()},
       {"fail: A100 (0): launch r0: not measured: the process was killed by SIGSEGV",
        "write #0: a failed, b failed, end failed"}},
      {"the worker crashes before its first case or between two",  // it says why
       {says("no device"), exits(3)},
       {"fail: A100 (0): launch r0: not measured: no device",
        "write #0: a failed, b failed, end failed"}},
      {"the worker crashes before its first case or between two",  // after a crash in a case
       {begins("a"), crashes(), crashes()},
       {"fail: A100 (0): a: failed: the process was killed by SIGSEGV",
        "write #0: worker-crashed in a, a failed, end failed",
        "start #1: b",
        "fail: A100 (0): launch r0: not measured: the process was killed by SIGSEGV",
        "write #1: b failed, end failed"}},
      {"the worker hangs before its first case or between two",
       {kHangs, kIsGone},
       {"kill",
        "fail: A100 (0): launch r0: not measured: the worker did not begin within 100 s: it hung",
        "write #0: a failed, b failed, end failed"}},
      {"tracing does not work",
       {begins("a"),
        ends_of_trace("a", Status::invalid, "invalid:dropped: 3"),
        begins("b"),
        ends_of_trace("b", Status::failed, "unavailable:cupti_not_found: none"),
        exits()},
       {"fail: A100 (0): a: invalid:dropped: 3",
        "fail: A100 (0): b: failed: unavailable:cupti_not_found: none"}},
      {"tracing does not work",
       {begins("a"),
        ends_of_trace("a", Status::unsupported, "degraded:unknown: 1"),
        begins("b"),
        ends_of_trace("b", Status::unsupported, "degraded:unknown: 1"),
        exits()},
       {}},
      {"the worker cannot be started",
       {RunEvent(event::CannotStart{"no processes left"})},
       {"fail: A100 (0): launch r0: not measured: no processes left",
        "write #0: a failed, b failed, end failed"}},
      {"the worker cannot be started",  // after a crash
       {begins("a"), crashes(), RunEvent(event::CannotStart{"no processes left"})},
       {"fail: A100 (0): a: failed: the process was killed by SIGSEGV",
        "write #0: worker-crashed in a, a failed, end failed",
        "start #1: b",
        "fail: A100 (0): launch r0: not measured: no processes left",
        "write #1: b failed, end failed"}},
      {"the worker crashes or hangs after its last case",
       {begins("a"), ends("a"), begins("b"), ends("b"), crashes()},
       {"write #0: worker-ended-badly, end ok",
        "say: A100 (0): launch r0: after its last case the process was killed by SIGSEGV"}},
      {"the worker crashes or hangs after its last case",
       {begins("a"), ends("a"), begins("b"), ends("b"), kHangs, kIsGone},
       {"kill",
        "write #0: worker-ended-badly, end ok",
        "say: A100 (0): launch r0: after its last case the worker did not end within 100 s: it "
        "hung"}},
      {"no message for `--timeout` seconds, or five times the case's estimate if that is longer",
       {begins("a"), kHangs, kIsGone, begins("b"), ends("b"), exits()},
       {"kill",
        "fail: A100 (0): a: failed: no block was finished within 100 s: it hung",
        "write #0: worker-hung in a, a failed, end failed",
        "start #1: b"}},
      {"no message for `--timeout` seconds, or five times the case's estimate if that is longer",
       {begins("a"), ends("a"), begins("b"), after(199), after(2), kIsGone},
       {"kill",
        "fail: A100 (0): b: failed: no block was finished within 200 s: it hung",
        "write #0: worker-hung in b, b failed, end failed"}},
      {"no message for `--timeout` seconds, or five times the case's estimate if that is longer",
       {begins("a"),
        after(99),
        block(),
        after(99),
        block(),
        ends("a"),
        begins("b"),
        ends("b"),
        exits()},
       {}},
      {"no message for `--timeout` seconds, or five times the case's estimate if that is longer",
       {Step(RunEvent(event::Started{}), 300),  // what comes before is not the worker's
        after(99),
        begins("a"),
        ends("a"),
        begins("b"),
        ends("b"),
        exits()},
       {}},
      {"SIGKILL does not end it within 10 s: stuck in the kernel",
       {begins("a"), kHangs, kStays},
       {"kill",
        "abandon",
        "give up the device",
        "fail: A100 (0): a: failed: no block was finished within 100 s: it hung",
        "write #1: worker-hung in a, a failed, b failed, end failed"}},
      {"SIGKILL does not end it within 10 s: stuck in the kernel",  // the second worker of the run
       {begins("a"), kHangs, kIsGone, begins("b"), after(201), kStays},
       {"kill",
        "fail: A100 (0): a: failed: no block was finished within 100 s: it hung",
        "write #0: worker-hung in a, a failed, end failed",
        "start #1: b",
        "kill",
        "abandon",
        "give up the device",
        "fail: A100 (0): b: failed: no block was finished within 200 s: it hung",
        "write #2: worker-hung in b, b failed, end failed"}},
      {"SIGKILL does not end it within 10 s: stuck in the kernel",  // before its first case
       {kHangs, kStays},
       {"kill", "abandon", "give up the device", "write #1: a failed, b failed, end failed"}},
      {"SIGKILL does not end it within 10 s: stuck in the kernel",  // after its last case
       {begins("a"), ends("a"), begins("b"), ends("b"), kHangs, kStays},
       {"kill",
        "abandon",
        "give up the device",
        "write #1: worker-ended-badly, end ok",
        "say: A100 (0): launch r0: after its last case the worker did not end within 100 s: it "
        "hung"}},
      {"SIGINT, SIGTERM or SIGHUP",
       {begins("a"), RunEvent(event::Stopped{}), kIsGone},
       {"kill", "write #0: end stopped"}},
      {"SIGINT, SIGTERM or SIGHUP",
       {begins("a"), RunEvent(event::Stopped{}), kStays},
       {"kill", "abandon", "write #1: end stopped"}},
      {"the disk is full, or `records` is gone",
       {begins("a"),
        RunEvent(event::Said{message::Failed{"r.jsonl cannot be written", true}}),
        exits(3)},
       {"end the session: r.jsonl cannot be written"}},
  };
  return all;
}

TEST(Supervisor, DoesWhatIsDocumentedWithEachFailure) {
  for (const Row& row : rows()) {
    SCOPED_TRACE(row.documented);
    Quarantine quarantine;
    std::vector<std::string> actions = {"start #0: a b"};
    actions.insert(actions.end(), row.actions.begin(), row.actions.end());
    actions.emplace_back("finish");
    EXPECT_THAT(play(row.steps, quarantine), ElementsAreArray(actions));
  }
}

TEST(Supervisor, IsTestedForEachFailureThatIsDocumented) {
  std::set<std::string> tested = {"the parent is killed"};  // then nobody is there to do anything
  for (const Row& row : rows()) tested.insert(row.documented);
  std::ifstream file(std::filesystem::path(LAUNCHGAP_SOURCE_FOLDER) / "docs/architecture.md");
  std::set<std::string> documented;
  bool here = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("## ")) here = line == "## How failures travel";
    if (!here || !line.starts_with("| ") || line.starts_with("| ---")) continue;
    documented.insert(line.substr(2, line.find(" | ") - 2));
  }
  documented.erase("what happens");
  EXPECT_THAT(tested, ElementsAreArray(documented));
}

TEST(Supervisor, AdvancesByACaseWhenItEnds) {
  Quarantine quarantine;
  RunSupervisor supervisor(two_cases(), "A100 (0)", kTimeoutS, quarantine);
  const auto advanced_s = [](const Actions& actions) {
    double seconds = 0;
    for (const Action& action : actions) {
      if (const auto* advance = std::get_if<action::Advance>(&action)) seconds += advance->seconds;
    }
    return seconds;
  };
  EXPECT_EQ(advanced_s(supervisor.begin()), 0);
  EXPECT_EQ(advanced_s(supervisor.handle(begins("a"), 0)), 0);
  EXPECT_EQ(advanced_s(supervisor.handle(ends("a"), 0)), 1);
  EXPECT_EQ(advanced_s(supervisor.handle(begins("b"), 0)), 0);
  EXPECT_EQ(advanced_s(supervisor.handle(crashes(), 0)), 40);
}

// --- what later runs leave out ---

TEST(Quarantine, HasTheCasesThatCrashedOrHung) {
  Quarantine quarantine;
  play({begins("a"), crashes(), begins("b"), ends("b"), exits()}, quarantine);
  const PlannedRun next = two_cases("launch", Arm::plain, 1);
  ASSERT_NE(quarantine.find(next, "a"), nullptr);
  EXPECT_EQ(*quarantine.find(next, "a"), "it failed in run r0: the process was killed by SIGSEGV");
  EXPECT_EQ(quarantine.find(next, "b"), nullptr);
  EXPECT_THAT(play({begins("b"), ends("b"), exits()}, quarantine, next),
              ElementsAreArray({"start #0: b without a", "finish"}));
}

TEST(Quarantine, OfEveryCaseNeedsNoWorkerToSaySo) {
  Quarantine quarantine;
  play({kHangs, kIsGone}, quarantine);
  EXPECT_THAT(play({}, quarantine, two_cases("launch", Arm::plain, 1)),
              ElementsAreArray({"write #0: a skipped, b skipped, end ok", "finish"}));
}

TEST(Quarantine, IsRecordedWhereTheWorkerEndedBeforeItCould) {
  Quarantine quarantine;
  play({begins("a"), crashes(), begins("b"), ends("b"), exits()}, quarantine);
  const PlannedRun next = two_cases("launch", Arm::plain, 1);
  EXPECT_THAT(play({crashes()}, quarantine, next),
              ElementsAreArray({"start #0: b without a",
                                "fail: A100 (0): launch r1: not measured: the process was killed "
                                "by SIGSEGV",
                                "write #0: a skipped, b failed, end failed",
                                "finish"}));
}

TEST(Quarantine, IsOfADeviceAnArmAndALevelOfTracing) {
  Quarantine quarantine;
  const PlannedRun run = two_cases("launch+trace_level=kernels", Arm::traced);
  play({begins("a"), crashes(), begins("b"), crashes()}, quarantine, run);
  EXPECT_NE(quarantine.find(run, "a"), nullptr);
  EXPECT_NE(quarantine.find(two_cases("matmul+trace_level=kernels", Arm::traced), "a"), nullptr);
  EXPECT_EQ(quarantine.find(two_cases("launch+trace_level=all", Arm::traced), "a"), nullptr);
  EXPECT_EQ(quarantine.find(two_cases("launch", Arm::traced), "a"), nullptr);
  EXPECT_EQ(quarantine.find(two_cases("launch"), "a"), nullptr);
  PlannedRun elsewhere = run;
  elsewhere.device = "GPU-2";
  EXPECT_EQ(quarantine.find(elsewhere, "a"), nullptr);
}

TEST(Quarantine, DoesNotGrowByFailuresThatAreTheCasesOwn) {
  Quarantine quarantine;
  play({begins("a"), ends_sticky("a", "700"), exits(), begins("b"), ends("b"), exits()},
       quarantine);
  play({crashes()}, quarantine);
  EXPECT_EQ(quarantine.find(two_cases(), "a"), nullptr);
}

// --- messages that make no sense ---

TEST(Supervisor, IsNotConfusedByWhatAWorkerShouldNotSay) {
  Quarantine quarantine;
  EXPECT_THAT(play({begins("c"),
                    ends("c", Status::failed),
                    block(),
                    begins("a"),
                    ends("a"),
                    begins("b"),
                    ends("b"),
                    exits()},
                   quarantine),
              ElementsAreArray({"start #0: a b", "finish"}));
}

TEST(Supervisor, SaysWhichArmAndConfigurationACaseFailedIn) {
  Quarantine quarantine;
  const auto first_failure = [&](ProcessConfig process_config) {
    return play({begins("a"), ends("a", Status::failed, "no"), begins("b"), ends("b"), exits()},
                quarantine,
                two_cases(std::move(process_config), Arm::traced))[1];
  };
  EXPECT_EQ(first_failure("launch"), "fail: A100 (0), traced: a: failed: no");
  EXPECT_EQ(first_failure("launch+trace_level=all"),
            "fail: A100 (0), traced, launch+trace_level=all: a: failed: no");
}

}  // namespace
}  // namespace launchgap
