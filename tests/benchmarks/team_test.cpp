#include "benchmarks/team.h"

#include <atomic>

#include <gtest/gtest.h>

#include "harness/core/cpus.h"
#include "harness/core/errors.h"
#include "harness/device/backend.h"
#include "tests/error_of.h"

namespace launchgap {
namespace {

// Whoever waits for a member that failed is released by that, and fails later: not its error is the
// cause, whatever its number.
TEST(Team, RethrowsWhatWasThrownFirst) {
  if (allowed_cpus().size() < 2) GTEST_SKIP() << "there is one CPU";
  const auto device = open_device("host", "host");
  for (const int culprit : {0, 1}) {
    std::atomic<bool> released = false;
    Team team(
        *device,
        2,
        [&](int member) {
          if (member == culprit) throw Error("the cause");
          while (!released) {
          }
          throw Error("a consequence");
        },
        [&] { released = true; });
    EXPECT_EQ(error_of([&] { team.run(); }), "the cause") << culprit;
  }
}

TEST(Team, ForgetsAFailureOnceItIsTold) {
  if (allowed_cpus().size() < 2) GTEST_SKIP() << "there is one CPU";
  const auto device = open_device("host", "host");
  bool fails = true;
  Team team(*device, 2, [&](int member) {
    if (member == 1 && fails) throw Error("once");
  });
  EXPECT_EQ(error_of([&] { team.run(); }), "once");
  fails = false;
  EXPECT_NO_THROW(team.run());
}

}  // namespace
}  // namespace launchgap
