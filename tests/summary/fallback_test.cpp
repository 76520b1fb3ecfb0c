#include "harness/summary/fallback.h"

#include <gmock/gmock.h>

#include "tests/sentences/said.h"
#include "tests/summary/written_session.h"

namespace launchgap {
namespace {

using namespace testing;

/// A session with the host and a GPU, and what each took for an operation.
struct Fallback : WrittenSession {
  Fallback() {
    add_device("host-1");
    meta["devices"][1]["backend"] = "host";
  }

  void took(const std::string& device,
            const std::string& name,
            double device_ns,
            const char* arm = "plain",
            const char* status = "ok") {
    run_of_case(begin_run(device, arm, "matmul", replicate_++),
                name,
                {{"device_ns", {device_ns, device_ns, device_ns}}},
                status);
  }

  std::vector<FallbackCost> costs() {
    session_ = read();
    rows_ = summarise(session_);
    return fallback_costs(session_, rows_);
  }

  SessionData session_;
  std::vector<SummaryRow> rows_;
  int replicate_ = 0;
};

TEST_F(Fallback, IsTheRatioOfMediansOnTheSameCase) {
  took("GPU-1", "matmul/library/size:256", 10'000);
  took("host-1", "matmul/library/size:256", 610'000);
  took("GPU-1", "matmul/library/size:512", 20'000);
  took("host-1", "matmul/library/size:512", 84'000);
  const auto found = costs();
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_EQ(found[0].name.text(), "matmul/library/size:256");
  EXPECT_DOUBLE_EQ(found[0].ratio(), 61);
  EXPECT_DOUBLE_EQ(found[1].ratio(), 4.2);
  const Finding finding = only(said(fallback_findings(session_, found)));
  EXPECT_EQ(finding.code, "fallback-matmul");
  EXPECT_EQ(
      finding.sentence,
      "On the CPU a matrix product takes 33 times as long as on Some GPU (median of 2 cases).");
  EXPECT_NEAR(*finding.share, 1 - 1 / 32.6, 1e-9);
  ASSERT_THAT(finding.evidence, SizeIs(2)) << "the smallest and the largest ratio";
  EXPECT_DOUBLE_EQ(*finding.evidence[0].value, 4.2);
  EXPECT_DOUBLE_EQ(*finding.evidence[1].value, 61);
}

TEST_F(Fallback, NeedsBothSidesPlainAndOk) {
  took("GPU-1", "matmul/library/size:256", 10'000);
  took("host-1", "matmul/library/size:512", 610'000);
  EXPECT_THAT(costs(), IsEmpty()) << "not the same case";
  took("host-1", "matmul/library/size:256", 610'000, "traced");
  EXPECT_THAT(costs(), IsEmpty()) << "traced is never compared with plain";
  took("host-1", "matmul/library/size:256", 610'000, "plain", "failed");
  EXPECT_THAT(costs(), IsEmpty());
  took("GPU-1", "matmul/library/size:512", 0);
  EXPECT_THAT(costs(), IsEmpty()) << "what took no time has no ratio";
}

}  // namespace
}  // namespace launchgap
