#include <map>
#include <string>

#include <gmock/gmock.h>

#include "harness/import/steps.h"
#include "tests/import/job.h"

namespace launchgap::recording {
namespace {

using namespace testing;
using activity::Purpose;

std::vector<CollectiveRecord> collectives_on(const Job& job, bool clocks_agree = true) {
  return collectives_of(job.process, 0, GpuGaps(job.process, 0, clocks_agree));
}

/// Of one stretch, the parts that have any time.
std::map<std::string, std::int64_t> parts(const StretchParts& all, std::size_t stretch) {
  std::map<std::string, std::int64_t> own;
  for (std::size_t part = 0; part < all.ns.size(); ++part) {
    if (const std::int64_t ns = all.ns[part].at(stretch); ns != 0)
      own[std::string(kStretchParts[part].name)] = ns;
  }
  return own;
}

TEST(Stretches, HaveTheCollectivesOfTheGpuByNameInOrder) {
  Job job;
  job.kernel(5'000, 5'003, 1, kStream, "ncclA").kernel(3'000, 3'001, 2, kStream, "gemm");
  job.kernel(0, 3'002, 3, kStream, "ncclA").kernel(2'000, 2'002, 4, kOtherGpu, "ncclA");
  job.kernel(1'000, 1'004, 5, kOther, "ncclB").kernel(4'000, 4'005, 6, kOther, "ncclA");
  job.kernel(5'000, 5'006, 7, kOther, "ncclA");
  const auto collectives = collectives_on(job);
  ASSERT_EQ(collectives.size(), 2u);
  EXPECT_EQ(collectives[0].name, "ncclA");
  EXPECT_THAT(collectives[0].ns, ElementsAre(5, 3, 6));
  EXPECT_EQ(collectives[1].name, "ncclB");
  EXPECT_THAT(collectives[1].ns, ElementsAre(4));
}

/// A collective until 2,000; copies, kernels and waits; and another one from 20,000 on.
Job between_collectives() {
  Job job;
  job.call(900, 950, 1).kernel(1'000, 2'000, 1, kStream, "ncclA");
  job.call(2'100, 2'200, 2).kernel(2'500, 4'000, 2);  // program, then launching
  job.transfer(3'800, 4'300, false, kOther).transfer(4'200, 5'000, true, kOther);
  job.call(5'100, 6'000, 0, Purpose::allocate, "main", "cudaMalloc");
  job.call(6'200, 7'000, 0, Purpose::wait, "main", "cudaStreamSynchronize");
  job.call(7'050, 7'150, 0, Purpose::other, "main", "cudaEventRecord");
  job.call(7'500, 7'600, 3).kernel(8'000, 9'000, 3);
  job.process.trace.transfers.push_back(
      {8'900, 11'000, 64, 0, job.process.stream(kOther), false, true});
  job.call(11'500, 11'600, 4).kernel(20'000, 21'000, 4, kStream, "ncclB");
  return job;
}

TEST(Stretches, BeforeACollectiveAreDividedByWhatTheGpuDid) {
  const auto collectives = collectives_on(between_collectives());
  ASSERT_EQ(collectives.size(), 2u);
  EXPECT_THAT(parts(collectives[0].before, 0), IsEmpty()) << "nothing tells when it began";
  EXPECT_THAT(parts(collectives[1].before, 0),
              UnorderedElementsAre(Pair("kernels", 1'500 + 1'000),
                                   Pair("copies", 1'000),
                                   Pair("input", 2'000),
                                   Pair("program", 100 + 100 + 200 + 50 + 350 + 500),
                                   Pair("launches", 400 + 500 + 8'500),
                                   Pair("waits", 800),
                                   Pair("allocations", 900),
                                   Pair("calls", 100)))
      << "18,000 in all";
}

TEST(Stretches, WithoutClocksThatAgreeTellOfTheGpusOwnTimesAlone) {
  const auto collectives = collectives_on(between_collectives(), false);
  EXPECT_THAT(parts(collectives[1].before, 0),
              UnorderedElementsAre(Pair("kernels", 2'500),
                                   Pair("copies", 1'000),
                                   Pair("input", 2'000),
                                   Pair("unknown", 12'500)));
}

TEST(Stretches, BeginWhenAllCollectivesBeforeHaveEnded) {
  Job job;
  job.kernel(1'000, 9'000, 1, kStream, "ncclA").kernel(2'000, 3'000, 2, kOther, "ncclB");
  job.kernel(5'000, 6'000, 3, kOther, "ncclB").kernel(9'000, 9'500, 4);
  job.kernel(9'500, 9'900, 5, kStream, "ncclA");
  const auto collectives = collectives_on(job);
  EXPECT_THAT(collectives[0].before.size(), 2u);
  EXPECT_THAT(parts(collectives[0].before, 1), UnorderedElementsAre(Pair("kernels", 500)));
  EXPECT_THAT(parts(collectives[1].before, 1), IsEmpty()) << "within another one";
}

TEST(Stretches, WhatTheProgramLoadsIsInput) {
  Job job = between_collectives();
  job.range(11'200, 11'400, "load_batch", "loader").range(7'200, 7'300, "forward");
  const auto own = parts(collectives_on(job)[1].before, 0);
  EXPECT_EQ(own.at("input"), 2'000 + 200);
  EXPECT_EQ(own.at("program"), 1'300 - 200);
}

TEST(Stretches, OfAStepHaveAllOfItButTheTimeOfCollectivesAlone) {
  Job job = between_collectives();
  job.range(500, 2'500, "step").range(2'500, 30'000, "step");
  const GpuGaps gaps(job.process, 0, true);
  const StretchParts all = step_parts(job.process, 0, gaps, "step");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_THAT(
      parts(all, 0),
      UnorderedElementsAre(Pair("unknown", 500), Pair("program", 100), Pair("launches", 400)))
      << "it began before the GPU's first work";
  std::int64_t sum = 0;
  for (const auto& [name, ns] : parts(all, 1)) sum += ns;
  EXPECT_EQ(sum, 27'500 - 1'000);
  EXPECT_EQ(step_parts(job.process, 0, gaps, "epoch").size(), 0u);
}

TEST(Stretches, LoadDataByTheNameOfARange) {
  for (const char* const name : {"enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
                                 "data_loader",
                                 "Load Data",
                                 "get_batch",
                                 "next-batch"})
    EXPECT_TRUE(loads_data(name)) << name;
  for (const char* const name : {"forward", "batch_norm", "download", ""})
    EXPECT_FALSE(loads_data(name)) << name;
}

}  // namespace
}  // namespace launchgap::recording
