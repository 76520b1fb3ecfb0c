#include "harness/summary/skew.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/device/a_device.h"
#include "tests/sentences/said.h"

namespace launchgap {
namespace {

using namespace testing;

constexpr std::size_t kSteps = 60;

DeviceSkew even(const std::string& threads, std::size_t members, bool cpus = false) {
  DeviceSkew skew;
  skew.case_name = "device/skew/work:compute/threads:" + threads;
  skew.uncertainty_ns = 4000;
  for (std::size_t m = 0; m < members; ++m) {
    SkewMember& member = skew.members.emplace_back();
    member.name = cpus ? fmt::format("cpu{}", m) : fmt::format("GPU-{}", m);
    member.alone_ns = 1e6;
    for (std::size_t s = 0; s < kSteps; ++s) {
      member.host_ns.push_back(3000 + static_cast<std::int64_t>((7 * s + 3 * m) % 50));
      member.work_ns.push_back(1'000'000 + static_cast<std::int64_t>((11 * s + 5 * m) % 300));
    }
  }
  return skew;
}

SessionData session_of(std::vector<DeviceSkew> processes, bool host = false) {
  SessionData session;
  const std::string first = host ? "host-1" : "GPU-0";
  for (std::size_t i = 0; i < (host ? 1 : processes.front().members.size()); ++i) {
    session.devices.push_back(host ? a_device(first, "AMD EPYC")
                                   : a_device(fmt::format("GPU-{}", i), "NVIDIA H100"));
    session.devices.back().index = static_cast<int>(i);
    if (host) session.devices.back().backend = "host";
  }
  int replicate = 0;
  for (DeviceSkew& process : processes)
    session.skews.push_back({{first, "plain", {}, replicate++}, std::move(process)});
  return session;
}

void delay(DeviceSkew& skew, std::size_t member, double work, double host, std::size_t each = 1) {
  for (std::size_t s = 0; s < kSteps; s += each) {
    skew.members[member].work_ns[s] += static_cast<std::int64_t>(work);
    skew.members[member].host_ns[s] += static_cast<std::int64_t>(host);
  }
}

Finding only(const SessionData& session) {
  const std::vector<Finding> found = said(skew_findings(session));
  EXPECT_THAT(found, SizeIs(1));
  return found.empty() ? Finding() : found.front();
}

TEST(Skew, OfEvenDevicesSaysThatNobodyWaits) {
  const Finding found = only(session_of({even("one", 8), even("one", 8)}));
  EXPECT_EQ(found.code, "skew-even");
  EXPECT_EQ(found.severity, Severity::fine);
}

TEST(Skew, NamesADeviceThatIsAlwaysLate) {
  DeviceSkew late = even("one", 8);
  delay(late, 3, 80'000, 0);
  const SessionData session = session_of({late, late});
  const Finding found = only(session);
  EXPECT_EQ(found.code, "skew-late");
  EXPECT_THAT(found.sentence, HasSubstr("NVIDIA H100 (3) keeps 7 GPUs waiting"));
  EXPECT_THAT(found.sentence, HasSubstr("the device takes longer"));
  const std::vector<SkewRow> rows = skew_rows(session);
  ASSERT_THAT(rows, SizeIs(8));
  EXPECT_TRUE(rows[3].is_late);
  EXPECT_NEAR(rows[3].late_ns, 80'000, 500);
  EXPECT_EQ(rows[3].steps, 2 * kSteps);
  EXPECT_EQ(rows[3].last, 2 * kSteps);
  EXPECT_NEAR(*rows[3].score, 1 / 1.08, 0.01);
  EXPECT_NEAR(*rows[3].together, 1.08, 0.01);
}

TEST(Skew, TellsTheHostFromTheDevice) {
  for (const std::string threads : {"one", "each"}) {
    DeviceSkew late = even(threads, 4);
    delay(late, 1, 0, 90'000);
    EXPECT_THAT(only(session_of({late})).sentence,
                HasSubstr(threads == "one" ? "its calls take longer" : "its thread is late"));
  }
}

TEST(Skew, SaysThatItIsAnotherOneEachTime) {
  DeviceSkew turns = even("one", 4), host = even("each", 4);
  for (std::size_t s = 0; s < kSteps; ++s) {
    turns.members[s % 4].work_ns[s] += 200'000;
    host.members[s % 4].host_ns[s] += 200'000;
  }
  EXPECT_EQ(only(session_of({turns})).code, "skew-turns");
  EXPECT_THAT(only(session_of({host})).sentence, HasSubstr("the host is late"));
}

TEST(Skew, SaysThatItIsTheSameOneAtTimes) {
  DeviceSkew late = even("one", 4);
  delay(late, 2, 300'000, 0, 5);
  EXPECT_THAT(only(session_of({late})).sentence, HasSubstr("waiting at times, in 20 %"));
}

TEST(Skew, NamesACpuThatSomethingElseUses) {
  DeviceSkew late = even("each", 2, true);
  delay(late, 1, 0, 400'000);
  const Finding found = only(session_of({late}, true));
  EXPECT_THAT(found.sentence, HasSubstr("CPU 1 keeps 1 CPU waiting"));
  EXPECT_THAT(found.sentence, HasSubstr("something else has the CPU"));
  late = even("each", 2, true);
  delay(late, 1, 400'000, 0);
  EXPECT_THAT(only(session_of({late}, true)).sentence, HasSubstr("its work takes longer"));
}

TEST(Skew, OfOneGpuMeansNothing) {
  DeviceSkew streams = even("one", 2);
  streams.valid = false;
  delay(streams, 1, 400'000, 0);
  const SessionData session = session_of({streams});
  EXPECT_EQ(only(session).code, "skew-one");
  for (const SkewRow& row : skew_rows(session)) EXPECT_FALSE(row.is_late);
}

TEST(Skew, NamesSeveralThatAreLate) {
  DeviceSkew late = even("one", 8);
  for (const std::size_t m : {1, 4, 6}) delay(late, m, 80'000, 0);
  const Finding found = only(session_of({late, late}));
  EXPECT_EQ(found.code, "skew-late");
  EXPECT_THAT(
      found.sentence,
      HasSubstr("NVIDIA H100 (1), NVIDIA H100 (4) and NVIDIA H100 (6) are later than the rest"));
  DeviceSkew host = even("each", 8);
  for (const std::size_t m : {1, 4}) delay(host, m, 0, 80'000);
  EXPECT_THAT(only(session_of({host})).sentence, HasSubstr("the host is late"));
}

TEST(Skew, OfProcessesThatDoNotAgreeSaysThat) {
  DeviceSkew third = even("one", 8), fourth = even("one", 8);
  delay(third, 3, 80'000, 0);
  delay(fourth, 4, 80'000, 0);
  EXPECT_EQ(only(session_of({third, fourth})).code, "skew-unclear");
}

TEST(Skew, SaysHowOftenItWasOtherwise) {
  DeviceSkew late = even("one", 8);
  delay(late, 3, 80'000, 0);
  const Finding found = only(session_of({late, even("one", 8), even("one", 8)}));
  EXPECT_EQ(found.code, "skew-even");
  EXPECT_THAT(found.unknown, HasSubstr("in 1 of 3 runs it was otherwise"));
}

TEST(Skew, OfStrangeRecordsSaysNothing) {
  DeviceSkew torn = even("one", 3), empty, other;
  torn.members[1].work_ns.pop_back();
  empty.case_name = "device/skew/work:compute/threads:one";
  other.case_name = "device/other";
  EXPECT_THAT(skew_rows(session_of({torn})), IsEmpty());
  EXPECT_EQ(only(session_of({torn})).code, "skew-torn");
  SessionData session;
  session.skews = {{{"GPU-0", "plain", {}, 0}, empty}, {{"GPU-0", "plain", {}, 0}, other}};
  EXPECT_THAT(skew_rows(session), IsEmpty());
  EXPECT_THAT(skew_findings(session), Each(Field(&Finding::code, "skew-torn")));
}

TEST(Skew, SaysWhichProcessesItLeavesOut) {
  DeviceSkew late = even("one", 8), torn = even("one", 8), fewer = even("one", 7);
  delay(late, 3, 80'000, 0);
  torn.members[1].work_ns.pop_back();
  const std::vector<Finding> found = said(skew_findings(session_of({late, torn, fewer})));
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_EQ(found[0].code, "skew-late");
  EXPECT_THAT(found[1].sentence, HasSubstr("2 runs are left out"));
}

/// As device/skew writes it with NCCL: what a member waits is what it is earlier than the last one.
DeviceSkew summed(std::size_t late, std::int64_t by_ns) {
  DeviceSkew skew = even("one", 8);
  skew.case_name += "/collective:nccl";
  delay(skew, late, static_cast<double>(by_ns), 0);
  for (std::size_t m = 0; m < skew.members.size(); ++m)
    skew.members[m].sum_ns.assign(kSteps, 12'000 + (m == late ? 0 : by_ns));
  return skew;
}

TEST(Skew, WithASumSaysWhatEachWaits) {
  const SessionData session = session_of({summed(3, 80'000), summed(3, 80'000)});
  const Finding found = only(session);
  EXPECT_THAT(found.sentence, HasSubstr("one thread launches, with a sum of all"));
  const std::vector<SkewRow> rows = skew_rows(session);
  EXPECT_DOUBLE_EQ(rows[3].waits_ns.value(), 0);
  EXPECT_DOUBLE_EQ(rows[0].waits_ns.value(), 80'000);
  EXPECT_THAT(rows[0].name.text(), HasSubstr("collective:nccl"));
  for (const SkewRow& row : skew_rows(session_of({even("one", 8)}))) EXPECT_FALSE(row.waits_ns);

  DeviceSkew torn = summed(3, 80'000);
  torn.members[2].sum_ns.pop_back();
  EXPECT_EQ(only(session_of({torn})).code, "skew-torn");
}

TEST(Skew, WithASumTheHostIsWhatIsBeforeTheWork) {
  DeviceSkew late = summed(3, 0);
  delay(late, 3, 0, 80'000);
  EXPECT_THAT(only(session_of({late})).sentence,
              HasSubstr("its calls take longer, or its work begins late after them"));
}

}  // namespace
}  // namespace launchgap
