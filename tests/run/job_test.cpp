#include "harness/run/job.h"

#include <gmock/gmock.h>

#include "harness/record/fields.h"
#include "harness/run/message.h"
#include "tests/device/a_device.h"
#include "tests/error_of.h"

namespace launchgap {
namespace {

using ::testing::HasSubstr;

job::Run run_job() {
  job::Run run;
  run.backend = "cuda";
  run.uuid = "GPU-1";
  run.session_id = "s";
  run.node = "n";
  run.replicate = 2;
  run.arm = Arm::traced;
  run.process_config = "launch+loading=jit_cached";
  run.attempt = 1;
  run.trace_required = true;
  run.keep_events = true;
  run.seed = 18446744073709551615u;
  run.profile = Profile::nightly;
  run.side_by_side = 4;
  run.cpus = {3};
  run.near_cpus = {0, 1, 2, 3};
  run.records = "/tmp/\xFF.jsonl";
  run.fingerprint = {{"device", "A100"}};
  run.cases = {"launch/null/mode:idle"};
  run.skipped = {{"launch/null/mode:burst", "it hung"}};
  run.jit_cache = "/tmp/cache";
  run.tool = "nsys";
  return run;
}

TEST(Job, IsReadAsItWasWritten) {
  const Json json = to_json(run_job());
  EXPECT_EQ(json.at("task"), "run");
  const Job job = job_from_json(parse_json(json.dump()));
  const auto& run = std::get<job::Run>(job);
  EXPECT_EQ(run.process_config, run_job().process_config);
  EXPECT_EQ(run.seed, run_job().seed);
  EXPECT_EQ(run.records, run_job().records);
  EXPECT_EQ(run.near_cpus, run_job().near_cpus);
  EXPECT_EQ(run.skipped[0].reason, "it hung");
  EXPECT_EQ(run.tool, "nsys");
  EXPECT_EQ(to_json(job), json);
}

TEST(Job, OfEachTaskIsRead) {
  for (const Job& job : {Job(job::Probe{"cuda", 3}),
                         Job(job::Initialise{"cuda", "GPU-1"}),
                         Job(job::WarmJitCache{"cuda", "GPU-1", "launch", "/tmp"}),
                         Job(job::FindTracing{}),
                         Job(job::HoldDriverOpen{"cuda"})}) {
    EXPECT_EQ(job_from_json(to_json(job)).index(), job.index());
  }
}

TEST(Job, ThatIsNoneIsAnError) {
  EXPECT_THROW(job_from_json({{"task", "dance"}}), UsageError);
  EXPECT_THROW(job_from_json(Json::object()), Error);
  Json json = to_json(run_job());
  json.erase("seed");
  EXPECT_THAT(error_of([&] { job_from_json(json); }), HasSubstr("seed"));
}

TEST(Message, IsReadAsItWasWritten) {
  const message::CaseEnded ended{"launch/null", Status::invalid, "invalid:dropped: 3", true, true};
  const auto message = message_from_json(to_json(ended));
  ASSERT_TRUE(message);
  const auto& read = std::get<message::CaseEnded>(*message);
  EXPECT_EQ(read.case_name, ended.case_name);
  EXPECT_EQ(read.status, ended.status);
  EXPECT_EQ(read.reason, ended.reason);
  EXPECT_TRUE(read.sticky && read.of_trace);
}

TEST(Message, CarriesDevicesWhole) {
  DeviceFacts device = a_device("GPU-1", "");
  device.compute_capability = "9.0";
  const auto message = message_from_json(to_json(message::Devices{{device}}));
  ASSERT_TRUE(message);
  const auto& read = std::get<message::Devices>(*message);
  ASSERT_EQ(read.devices.size(), 1u);
  EXPECT_EQ(fields_to_json(read.devices[0]), fields_to_json(device));
}

/// A library may write to any descriptor.
TEST(Message, ThatIsNoneIsNothing) {
  EXPECT_FALSE(message_from_json(Json(3)));
  EXPECT_FALSE(message_from_json({{"message", "dance"}}));
  EXPECT_FALSE(message_from_json({{"message", "begin"}}));
  EXPECT_FALSE(message_from_json({{"message", "begin"}, {"case", 3}}));
}

}  // namespace
}  // namespace launchgap
