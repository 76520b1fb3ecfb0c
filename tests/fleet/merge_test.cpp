#include "harness/fleet/merge.h"

#include <algorithm>
#include <random>
#include <set>

#include <gmock/gmock.h>

#include "harness/core/clock.h"
#include "harness/record/records.h"
#include "tests/device/a_device.h"

namespace launchgap::fleet {
namespace {

using namespace testing;

const std::filesystem::path kOutput = "/night/merged";

/// A session of one GPU that measured all of its plan, in /night/NODE.GPU.TASK.
FoundSession session(const std::string& node, const std::string& gpu, int task = 0) {
  FoundSession found;
  found.folder = fmt::format("/night/{}.{}.{}", node, gpu, task);
  SessionRecord& record = found.record;
  record.session_id = fmt::format("{}-{}-{}", node, gpu, task);
  record.begin_utc = fmt::format("2026-11-28T03:0{}:00Z", task);
  record.end_utc = fmt::format("2026-11-28T03:0{}:30Z", task);
  record.state = "complete";
  record.host.node = node;
  record.launchgap_version = "0.1.0";
  record.devices = {a_device(gpu, "NVIDIA H100")};
  record.plan = {{gpu, 0, "plain", {}, {"launch/null"}}};
  found.records_files = {records_file_name(node, gpu, record.plan[0], 0)};
  found.record_bytes = 1000;
  return found;
}

FoundSession ranked(FoundSession found, int rank, int ranks, const std::string& job = "7") {
  found.record.rank = RankFacts{.launcher = "Slurm",
                                .rank = rank,
                                .ranks = ranks,
                                .local_rank = rank,
                                .local_ranks = ranks,
                                .cluster = "",
                                .job = job,
                                .array_task = std::nullopt,
                                .step = "0",
                                .restarts = std::nullopt,
                                .nodes = ""};
  return found;
}

SessionRecord merged(std::vector<FoundSession> sessions, const MergeOptions& options = {}) {
  return merge({std::move(sessions), {}}, options, kOutput);
}

std::vector<std::string> missing(const SessionRecord& merged) {
  std::vector<std::string> all;
  for (const MissingPart& one : merged.missing)
    all.push_back(fmt::format("{} {}: {}", one.node, one.device, one.reason));
  return all;
}

std::vector<std::string> counted(const SessionRecord& merged) {
  std::vector<std::string> all;
  for (const SessionPart& part : *merged.parts) {
    if (part.left_out.empty()) all.push_back(part.session_id);
  }
  return all;
}

std::vector<std::string> left_out(const SessionRecord& merged) {
  std::vector<std::string> all;
  for (const SessionPart& part : *merged.parts) {
    if (!part.left_out.empty()) all.push_back(part.folder + ": " + part.left_out);
  }
  return all;
}

std::vector<std::string> notes(const SessionRecord& merged) {
  std::vector<std::string> all;
  for (const Note& one : merged.notes) all.push_back(one.text);
  return all;
}

TEST(Merge, ReferstoEachSessionFromTheResultsFolder) {
  const SessionRecord all = merged({session("n2", "GPU-2"), session("n1", "GPU-1")});
  ASSERT_THAT(*all.parts, SizeIs(2));
  EXPECT_EQ((*all.parts)[0].folder, "../n1.GPU-1.0");
  EXPECT_THAT(counted(all), ElementsAre("n1-GPU-1-0", "n2-GPU-2-0"));
  EXPECT_EQ(all.state, "complete");
  EXPECT_EQ(all.begin_utc, "2026-11-28T03:00:00Z");
  EXPECT_THAT(missing(all), IsEmpty());
}

TEST(Merge, NamesWhatDidNotEnd) {
  FoundSession running = session("n1", "GPU-1"), stopped = session("n2", "GPU-2");
  running.record.state = "running";
  stopped.record.state = "stopped";
  const SessionRecord now = merged({running, stopped});
  EXPECT_EQ(now.state, "running");
  EXPECT_THAT(missing(now),
              ElementsAre("n1 GPU-1: it still runs, or was killed",
                          "n2 GPU-2: it was stopped before its end"));
  const SessionRecord later = merged({running, stopped}, {true, {}, {}});
  EXPECT_EQ(later.state, "complete");
  EXPECT_THAT(missing(later), Contains("n1 GPU-1: it was killed before its end"));
}

TEST(Merge, NamesRanksOfWhichThereIsNothing) {
  const SessionRecord all = merged({ranked(session("n1", "GPU-1"), 0, 4),
                                    ranked(session("n1", "GPU-2"), 2, 4),
                                    ranked(session("n2", "GPU-3"), 0, 1, "8")});
  EXPECT_THAT(missing(all), ElementsAre(" : of job 7 there is nothing of ranks 1, 3 of 4"));
}

TEST(Merge, NamesRecordsThatWereLostAndDevicesThatWereNotMeasured) {
  FoundSession half_copied = session("n1", "GPU-1"), held = session("n1", "GPU-2");
  half_copied.records_files.clear();
  held.records_files.clear();
  held.record.devices[0].usable = false;
  held.record.devices[0].reason = "another session is measuring it";
  EXPECT_THAT(
      missing(merged({half_copied, held})),
      ElementsAre("n1 GPU-1: 1 of its records files is not there: was all of ../n1.GPU-1.0 copied?",
                  "n1 GPU-2: not measured: another session is measuring it"));
}

TEST(Merge, NamesRecordsThatEndBeforeTheirRun) {
  FoundSession torn = session("n1", "GPU-1");
  torn.unended_files = {"x.jsonl"};
  EXPECT_THAT(
      missing(merged({torn})),
      ElementsAre("n1 GPU-1: x.jsonl ends before its run did: its process crashed, or half of "
                  "it was copied"));
}

TEST(Merge, OfNoSessionAllOfThePlanIsMissing) {
  MergeOptions options;
  options.plan = FleetPlan{{{"n1", 2}}, 1};
  const SessionRecord none = merged({}, options);
  EXPECT_THAT(missing(none), ElementsAre("n1 : nothing of it is there"));
  EXPECT_TRUE(none.parts);
}

TEST(Merge, NamesWhatIsMissingOfThePlan) {
  MergeOptions options;
  options.plan = FleetPlan{{{"n1", 2}, {"n2", 1}, {"n3", 1}, {"n4", 1}}, 2};
  options.absent = {{"n4", "drained (bad fan)"}};
  EXPECT_THAT(missing(merged(
                  {session("n1", "GPU-1", 0), session("n1", "GPU-1", 1), session("n2", "GPU-2", 0)},
                  options)),
              ElementsAre("n1 : 1 of its 2 GPUs are there",
                          "n2 GPU-2: 1 of 2 sessions are there",
                          "n3 : nothing of it is there",
                          "n4 : nothing of it is there: drained (bad fan)"));
}

TEST(Merge, ACopyCountsOnceAndTheOneWithTheMostRecords) {
  FoundSession whole = session("n1", "GPU-1"), torn = whole, older = whole;
  whole.folder = "/b";
  torn.folder = "/a";
  torn.record_bytes = 10;  // half-copied: session.json says that it is complete
  older.folder = "/c";
  older.record.state = "running";
  const SessionRecord all = merged({torn, older, whole});
  EXPECT_THAT(counted(all), ElementsAre("n1-GPU-1-0"));
  EXPECT_THAT(
      left_out(all),
      UnorderedElementsAre("../../a: it is a copy of ../../b", "../../c: it is a copy of ../../b"));
  older.record_bytes = 500;
  whole.record_bytes = 20;
  EXPECT_THAT(left_out(merged({torn, older, whole})), Contains("../../b: it is a copy of ../../c"));
}

TEST(Merge, TwoSessionsThatClaimOneIdBothCountUnderIdsOfTheirOwn) {
  FoundSession one = session("n1", "GPU-1"), other = session("n2", "GPU-2"),
               third = session("n2", "GPU-3");
  other.record.session_id = third.record.session_id = one.record.session_id;
  const SessionRecord all = merged({one, other, third});
  EXPECT_THAT(counted(all),
              UnorderedElementsAre("n1-GPU-1-0@n1", "n1-GPU-1-0@n2", "n1-GPU-1-0@n2.2"));
  EXPECT_THAT(notes(all), Each(StartsWith("Several sessions claim the id n1-GPU-1-0.")));
  EXPECT_THAT(notes(all), SizeIs(3));
}

TEST(Merge, OfARankThatBeganTheSameAgainWhatDidNotEndIsLeftOut) {
  FoundSession first = ranked(session("n1", "GPU-1", 0), 0, 1),
               second = ranked(session("n1", "GPU-1", 1), 0, 1);
  first.record.state = "running";
  EXPECT_THAT(counted(merged({first, second})), ElementsAre("n1-GPU-1-1"));
  first.record.state = "complete";
  second.record.state = "running";
  second.record_bytes = 5000;
  const SessionRecord all = merged({first, second});
  EXPECT_THAT(counted(all), ElementsAre("n1-GPU-1-0")) << "the one that ended";
  EXPECT_THAT(left_out(all),
              ElementsAre("../n1.GPU-1.1: rank 0 of job 7 was started again, and ../n1.GPU-1.0 "
                          "counts in its place"));
  first.record.state = "stopped";
  EXPECT_THAT(counted(merged({first, second})), ElementsAre("n1-GPU-1-1")) << "what has more";
  second.record.rank->step = "1";
  EXPECT_THAT(counted(merged({first, second})), SizeIs(2)) << "another step of the job";
}

TEST(Merge, TwoSessionsOfARankThatEndedAreTwoMeasurements) {
  FoundSession first = ranked(session("n1", "GPU-1", 0), 0, 1),
               second = ranked(session("n1", "GPU-1", 1), 0, 1);
  EXPECT_THAT(counted(merged({first, second})), SizeIs(2));
  second.record.filter = "matmul";
  second.record.state = "stopped";
  EXPECT_THAT(counted(merged({first, second})), SizeIs(2)) << "it was to measure something else";
}

TEST(Merge, JobsOfOneNumberOnTwoClustersAreTwo) {
  FoundSession here = ranked(session("n1", "GPU-1"), 0, 2),
               there = ranked(session("n2", "GPU-2"), 1, 2);
  EXPECT_THAT(missing(merged({here, there})), IsEmpty());
  here.record.rank->cluster = "a";
  there.record.rank->cluster = "b";
  EXPECT_THAT(missing(merged({here, there})), SizeIs(2));
}

TEST(Merge, SaysWhatLooksOdd) {
  FoundSession one = session("n1", "GPU-1"), other = session("n1", "GPU-2");
  one.record.host.machine_id = "aaaa";
  other.record.host.machine_id = "bbbb";
  other.record.launchgap_version = "0.2.0";
  other.written_s = *parse_utc(*other.record.end_utc) - 300;
  one.written_s = *parse_utc(*one.record.end_utc) + 300;  // copied since
  FoundSession moved = session("n2", "GPU-1", 1);
  EXPECT_THAT(notes(merged({one, other, moved})),
              ElementsAre("2 machines are called n1: their devices are told apart by UUID.",
                          "GPU-1 was seen on n1 and n2: it counts as one device.",
                          "Several versions of launchgap measured: 0.1.0 on 2 of the nodes, 0.2.0 "
                          "on 1 of the nodes.",
                          "The clock of n1 is 300 s ahead of the file system's."));
}

TEST(Merge, PublishedValuesAreNoMeasurements) {
  FoundSession published = session("published", "GPU-1");
  published.record.source = "published";
  EXPECT_THAT(left_out(merged({published})), SizeIs(1));
}

/// Any sessions: copies, clashes, restarts, some running, some without records.
std::vector<FoundSession> any_sessions(std::mt19937& random) {
  std::vector<FoundSession> all;
  for (int i = 0; i < 12; ++i) {
    FoundSession one = session("n" + std::to_string(random() % 3),
                               "GPU-" + std::to_string(random() % 4),
                               static_cast<int>(random() % 3));
    one.folder = fmt::format("/night/s{}.", i);
    if (random() % 2 == 0) one = ranked(std::move(one), static_cast<int>(random() % 3), 4);
    if (random() % 3 == 0) one.record.state = random() % 2 == 0 ? "running" : "stopped";
    if (random() % 4 == 0) one.record.session_id = "same";
    if (random() % 4 == 0) one.records_files.clear();
    one.record_bytes = random() % 3;
    all.push_back(std::move(one));
  }
  return all;
}

TEST(Merge, DoesNotDependOnTheOrder) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::vector<FoundSession> sessions = any_sessions(random);
    const Json expected = record_to_json(merged(sessions));
    std::ranges::shuffle(sessions, random);
    ASSERT_TRUE(record_to_json(merged(sessions)) == expected) << "round " << round;
  }
}

TEST(Merge, LosesNothingAndCountsNothingTwice) {
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    const std::vector<FoundSession> sessions = any_sessions(random);
    const SessionRecord all = merged(sessions);
    std::set<std::string> folders, ids;
    for (const SessionPart& part : *all.parts) {
      EXPECT_TRUE(folders.insert(part.folder).second) << "each is named once";
      EXPECT_TRUE(!part.left_out.empty() || ids.insert(part.session_id).second);
    }
    EXPECT_THAT(folders, SizeIs(sessions.size()));
    // Whatever is left out has another in its place, and that one counts or has one itself.
    for (const SessionPart& left : *all.parts) {
      const SessionPart* part = &left;
      for (std::size_t hops = 0; !part->left_out.empty() && hops <= sessions.size(); ++hops) {
        const auto other = std::ranges::find_if(*all.parts, [&](const SessionPart& one) {
          return &one != part &&
                 part->left_out.find(fmt::format(" {}", one.folder)) != std::string::npos;
        });
        ASSERT_NE(other, all.parts->end()) << part->left_out;
        part = &*other;
      }
      EXPECT_THAT(part->left_out, IsEmpty());
    }
  }
}

}  // namespace
}  // namespace launchgap::fleet
