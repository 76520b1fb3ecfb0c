#include <set>

#include <gtest/gtest.h>

#include "harness/run/job.h"

namespace launchgap {
namespace {

TEST(SampleKey, IsOfARunAndACaseAndLeavesRoomForSamples) {
  std::set<std::uint64_t> firsts;
  for (const char* run : {"s1/vm.host.r0.plain.launch", "s1/vm.host.r1.plain.launch", "s2/x"}) {
    for (const char* name :
         {"launch/null/api:queue/mode:idle", "launch/null/api:queue/mode:burst"}) {
      const std::uint64_t first = first_sample_key(run, name);
      EXPECT_EQ(first & 0xFFFFFFFFu, 0u);
      EXPECT_EQ(first >> 63, 0u) << "SQLite's integers have a sign";
      EXPECT_EQ(first, first_sample_key(run, name));
      firsts.insert(first);
    }
  }
  EXPECT_EQ(firsts.size(), 6u);
}

TEST(SampleKey, ARunIsNamedByItsSessionAndItsRecords) {
  job::Run job;
  job.session_id = "20261120T103455Z-783dd3";
  job.records = "/results/x/records/vm.host.r0.plain.launch+wait=block.1.jsonl";
  EXPECT_EQ(run_name(job), "20261120T103455Z-783dd3/vm.host.r0.plain.launch+wait=block.1");
}

}  // namespace
}  // namespace launchgap
