#include "harness/regression/history.h"

#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>

#include <gmock/gmock.h>

#include "harness/core/output_file.h"
#include "tests/error_of.h"

/// Whether the file system has no links, as FAT has none.
static bool without_links = false;

/// The system's in all of this program.
extern "C" int link(const char* from, const char* to) noexcept {
  if (!without_links) return linkat(AT_FDCWD, from, AT_FDCWD, to, 0);
  errno = EPERM;
  return -1;
}

namespace launchgap::regression {
namespace {

using testing::HasSubstr;

TEST(History, IsMadeOnAFileSystemWithoutLinks) {
  const TemporaryFolder folder("history-test");
  without_links = true;
  { const History made(folder.path() / "nights.db", History::Use::write); }
  without_links = false;
  EXPECT_THAT(History(folder.path() / "nights.db", History::Use::read).sessions(),
              testing::IsEmpty());
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(History, FindsAFingerprintThatAnotherProcessHasAddedSince) {
  const TemporaryFolder folder("history-test");
  const std::filesystem::path file = folder.path() / "nights.db";
  HistoryDatabase other(file, History::Use::write);
  other.statement("INSERT INTO fingerprints (keys) VALUES ('{\"a\":1}')").run();
  const History history(file, History::Use::read);
  ASSERT_EQ(history.fingerprints().size(), 1u);
  const Fingerprint& first = history.fingerprint(1);
  other.statement("INSERT INTO fingerprints (keys) VALUES ('{\"a\":2}')").run();
  EXPECT_EQ(history.fingerprint(2).size(), 1u);
  EXPECT_EQ(&first, &history.fingerprint(1)) << "what was given out stays";
  EXPECT_THAT(error_of([&] { history.fingerprint(7); }),
              testing::AllOf(HasSubstr(file.string()), HasSubstr("fingerprint 7")));
}

TEST(AcceptedLevel, CountsFromItsFirstSecondAndTheLatestOne) {
  std::vector<AcceptedLevel> levels(2);
  levels[0].since_s = 100;
  levels[1].since_s = 200;
  const SeriesKey key{{"GPU-1", "plain", "launch", CaseName::parse("launch/null")}, "api_ns"};
  EXPECT_EQ(accepted_level(levels, key, 99), nullptr);
  EXPECT_EQ(accepted_level(levels, key, 100), &levels[0]);
  EXPECT_EQ(accepted_level(levels, key, 199), &levels[0]);
  EXPECT_EQ(accepted_level(levels, key, 200), &levels[1]);
  levels[1].case_name = "matmul/*";
  EXPECT_EQ(accepted_level(levels, key, 200), &levels[0]);
}

TEST(AcceptedLevel, ForgetsTheHitsOfNightsUntilItWasAccepted) {
  AcceptedLevel level;
  level.accepted_s = 1000;
  for (const std::int64_t begin_s : {999, 1000, 1001}) {
    rules::Night night;
    night.begin_s = begin_s;
    night.hit = 1;
    level.apply_to(night);
    EXPECT_EQ(night.hit, begin_s <= 1000 ? 0 : 1) << begin_s;
  }
}

TEST(History, GivesBackWhatItWasGiven) {
  const TemporaryFolder folder("history-test");
  History history(folder.path() / "nights.db", History::Use::write);
  SessionFigures session;
  session.session_id = "a";
  session.node = "n1";
  session.begin_utc = "2026-11-22T03:00:00Z";
  const CaseName name = CaseName::parse("launch/null/api:driver/mode:idle");
  Point full, bare;
  full.key = {{"GPU-1", "plain", name.family(), name}, "api_ns"};
  full.night = {
      1795316400, 2000.5, {0.1, 0.2, 1.3, 2}, 4000, 1, {1, 0, -1, 1}, 1795000000, 1990, true};
  full.runs = 5;
  full.verdict = Verdict::slower;
  full.fingerprint = {{"driver", "570.12"}};
  full.algorithms = {"tile 32", "tile 64"};
  bare.key = full.key;
  bare.key.metric = "roundtrip_ns";
  bare.night = {1795316400, 3000};
  bare.night.spread_hits = {-1, -1, -1, -1};
  bare.runs = 1;
  bare.invalid = "it crashed";
  bare.verdict = Verdict::invalid;
  bare.fingerprint = full.fingerprint;
  history.add(session, {full, bare}, "");
  session.session_id = "b";
  history.add(session, {bare}, "simulated");

  const auto last_of = [&](const Point& point) {
    const std::vector<KeptPoint> points =
        history.before(point.key, {1}, 1795316401, [](const KeptPoint&) { return false; });
    EXPECT_THAT(history.before(point.key, {1}, 1795316400, {}), testing::IsEmpty());
    return points.back();
  };
  for (const Point& given : {full, bare}) {
    const KeptPoint kept = last_of(given);
    EXPECT_EQ(kept.session_id, "a");
    EXPECT_EQ(history.fingerprint(kept.fingerprint), given.fingerprint);
    EXPECT_EQ(kept.runs, given.runs);
    EXPECT_EQ(kept.invalid, given.invalid);
    EXPECT_EQ(kept.verdict, given.verdict);
    EXPECT_EQ(kept.algorithms, given.algorithms);
    EXPECT_EQ(kept.night.begin_s, given.night.begin_s);
    EXPECT_EQ(kept.night.value, given.night.value);
    EXPECT_EQ(kept.night.spread, given.night.spread);
    EXPECT_EQ(kept.night.p99, given.night.p99);
    EXPECT_EQ(kept.night.hit, given.night.hit);
    EXPECT_EQ(kept.night.spread_hits, given.night.spread_hits);
    EXPECT_EQ(kept.night.level_since_s, given.night.level_since_s);
    EXPECT_EQ(kept.night.anchor, given.night.anchor);
    EXPECT_EQ(kept.night.confirmed, given.night.confirmed);
  }
  const std::vector<KeptSession> sessions = history.sessions();
  ASSERT_EQ(sessions.size(), 2u);
  EXPECT_EQ(sessions[0].points, 2u);
  EXPECT_EQ(sessions[0].invalid, "");
  EXPECT_EQ(sessions[1].points, 1u);
  EXPECT_EQ(sessions[1].invalid, "simulated");
  EXPECT_EQ(sessions[1].node, "n1");
  EXPECT_EQ(sessions[1].begin_s, 1795316400);
}

}  // namespace
}  // namespace launchgap::regression
