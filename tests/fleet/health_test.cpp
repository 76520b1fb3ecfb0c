#include "harness/fleet/health.h"

#include <gmock/gmock.h>

#include "tests/device/a_device.h"

namespace launchgap::fleet {
namespace {

using namespace testing;

GpuHealth gpu(int index, std::optional<double> roundtrip_ns, const std::string& name = "A100") {
  GpuHealth gpu;
  gpu.device = a_device("GPU-" + std::to_string(index), name);
  gpu.device.index = index;
  gpu.device.pci_bus_id = "0000:0" + std::to_string(index) + ":00.0";
  gpu.roundtrip_ns = roundtrip_ns;
  return gpu;
}

NodeHealth node(std::vector<GpuHealth> gpus) {
  NodeHealth node;
  node.node = "n1";
  node.gpus = std::move(gpus);
  return node;
}

TEST(Health, GpusThatAreWellAreCounted) {
  const HealthAnswer answer = judge(node({gpu(0, 6800), gpu(1, 7000)}));
  EXPECT_EQ(answer.state, HealthState::ok);
  EXPECT_EQ(answer.line, "launchgap OK n1: 2 GPUs well | 'GPU-0'=6.80us 'GPU-1'=7.00us");
}

TEST(Health, AGpuThatCannotBeUsedIsCriticalAndIsNamedWithTheReason) {
  GpuHealth broken = gpu(1, {});
  broken.problem = "it could not be opened within 8 s";
  const HealthAnswer answer = judge(node({gpu(0, 6800), broken}));
  EXPECT_EQ(answer.state, HealthState::critical);
  EXPECT_EQ(answer.line,
            "launchgap CRITICAL n1: GPU 1 (A100, GPU-1, 0000:01:00.0): it could not be opened "
            "within 8 s | 'GPU-0'=6.80us");
}

TEST(Health, ASlowGpuIsToldByWhatItIsHeldTo) {
  GpuHealth slow = gpu(0, 10'000);
  slow.history_ns = 7000;
  HealthAnswer answer = judge(node({slow}));
  EXPECT_EQ(answer.state, HealthState::warning);
  EXPECT_THAT(answer.line,
              HasSubstr("takes 10.0 µs, and is 0.70 times as fast as in its best night (7.00 µs)"));
  slow.history_ns = 4000;
  EXPECT_EQ(judge(node({slow})).state, HealthState::critical);
  slow.history_ns = 7600;
  EXPECT_EQ(judge(node({slow})).state, HealthState::ok);
}

TEST(Health, HalfOfWhatIsPublishedIsAWarningAndItsOwnNightsCountMore) {
  GpuHealth slow = gpu(0, 10'000);
  slow.published_score = 0.4;
  EXPECT_EQ(judge(node({slow})).state, HealthState::warning);
  EXPECT_THAT(judge(node({slow})).line, HasSubstr("what is published of its model"));
  slow.published_score = 0.6;
  EXPECT_EQ(judge(node({slow})).state, HealthState::ok) << "CPUs differ as much";
  slow.published_score = 0.4;
  slow.history_ns = 9900;
  EXPECT_EQ(judge(node({slow})).state, HealthState::ok);
}

TEST(Health, OfThreeOfAKindOneIsHeldToTheOthers) {
  EXPECT_EQ(judge(node({gpu(0, 7000), gpu(1, 7000), gpu(2, 10'000)})).state, HealthState::warning);
  EXPECT_EQ(judge(node({gpu(0, 7000), gpu(2, 10'000)})).state, HealthState::ok)
      << "of two nothing tells which is at fault";
  EXPECT_EQ(judge(node({gpu(0, 7000), gpu(1, 7000), gpu(2, 10'000, "K40m")})).state,
            HealthState::ok)
      << "another kind";
}

TEST(Health, WhatIsMeasuredByOthersIsLeftAlone) {
  GpuHealth busy = gpu(0, {});
  busy.busy = "another session is measuring it (process 7)";
  const HealthAnswer answer = judge(node({busy}));
  EXPECT_EQ(answer.state, HealthState::ok);
  EXPECT_THAT(answer.line, HasSubstr("not measured: another session is measuring it"));
}

TEST(Health, AGpuThatDoesNotAnswerInTimeIsAWarning) {
  const HealthAnswer answer = judge(node({gpu(0, {})}));
  EXPECT_EQ(answer.state, HealthState::warning);
  EXPECT_THAT(answer.line, HasSubstr("no answer in time"));
}

TEST(Health, MissingGpusAreCriticalWhereTheirNumberIsKnown) {
  NodeHealth seven = node({gpu(0, 6800)});
  seven.expected_gpus = 2;
  EXPECT_THAT(judge(seven).line, HasSubstr("CRITICAL n1: 1 of 2 GPUs are found"));
}

TEST(Health, WhatTheDoctorFindsIsAReason) {
  NodeHealth sick = node({});
  sick.findings = {{.code = "driver-hangs",
                    .severity = Severity::prevents,
                    .subject = "machine",
                    .sentence = "The driver does not answer.",
                    .evidence = {},
                    .remedy = ""}};
  EXPECT_EQ(judge(sick).state, HealthState::critical);
  EXPECT_EQ(judge(sick).line, "launchgap CRITICAL n1: The driver does not answer. [driver-hangs]");
  sick.gpus = {gpu(0, 6800)};
  EXPECT_EQ(judge(sick).state, HealthState::warning) << "work is done nevertheless";
}

TEST(Health, MemoryThatIsBrokenIsCriticalThoughWorkIsDone) {
  NodeHealth sick = node({gpu(0, 6800)});
  for (const auto& [code, state] : {std::pair("ecc-uncorrectable", HealthState::critical),
                                    std::pair("memory-remap-failed", HealthState::critical),
                                    std::pair("memory-remap-pending", HealthState::warning),
                                    std::pair("persistence-off", HealthState::ok)}) {
    sick.findings = {{.code = code,
                      .severity = Severity::distorts,
                      .subject = "GPU-0",
                      .sentence = "It is so.",
                      .evidence = {},
                      .remedy = ""}};
    EXPECT_EQ(judge(sick).state, state) << code;
  }
}

TEST(Health, WhatKeepsItFromMeasuringIsNotTheGpus) {
  NodeHealth full = node({gpu(0, {}), gpu(1, {})});
  full.not_measured = "/tmp/x cannot be written: No space left on device";
  EXPECT_EQ(judge(full).state, HealthState::warning);
  EXPECT_EQ(judge(full).line,
            "launchgap WARNING n1: no launch was timed: /tmp/x cannot be written: No space left on "
            "device");
}

TEST(Health, AMachineWithoutGpusIsUnknownUnlessTheyWereExpected) {
  NodeHealth none = node({});
  none.findings = {{.code = "no-gpu",
                    .severity = Severity::note,
                    .subject = "machine",
                    .sentence = "There is none.",
                    .evidence = {},
                    .remedy = ""}};
  EXPECT_EQ(judge(none).state, HealthState::unknown);
  none.expected_gpus = 8;
  EXPECT_EQ(judge(none).state, HealthState::critical);
}

TEST(Health, IsOneLineWhateverTheReasonHolds) {
  GpuHealth broken = gpu(0, {});
  broken.problem = "first | second\nthird \x1b[31m";
  const std::string line = judge(node({broken})).line;
  EXPECT_THAT(line, AllOf(Not(HasSubstr("\n")), Not(HasSubstr("\x1b")), Not(HasSubstr("|"))));
}

}  // namespace
}  // namespace launchgap::fleet
