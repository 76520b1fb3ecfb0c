#include "harness/run/job.h"

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/core/plan.h"
#include "harness/run/message.h"

namespace launchgap {

Json to_json(const Job& job) {
  return tagged_to_json("task", job);
}

Job job_from_json(const Json& json) {
  auto job = tagged_from_json<Job>("task", json);
  if (!job) {
    throw UsageError("a worker knows no task '{}'", field<std::string>(json, "task"));
  }
  return *std::move(job);
}

std::string run_name(const job::Run& job) {
  return fmt::format("{}/{}", job.session_id, job.records.stem().string());
}

std::uint64_t first_sample_key(std::string_view run_name, std::string_view case_name) {
  constexpr int kDropped = 33, kSampleBits = 32;
  return derive_seed(0, fmt::format("{}/{}", run_name, case_name)) >> kDropped << kSampleBits;
}

Json to_json(const Message& message) {
  return tagged_to_json("message", message);
}

std::optional<Message> message_from_json(const Json& json) {
  try {
    return tagged_from_json<Message>("message", json);
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace launchgap
