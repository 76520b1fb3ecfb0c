#include "harness/run/job.h"

#include <fmt/format.h>

#include "harness/core/errors.h"

namespace launchgap {

Json to_json(const Job& job) {
  return tagged_to_json("task", job);
}

Job job_from_json(const Json& json) {
  auto job = tagged_from_json<Job>("task", json);
  if (!job) {
    throw UsageError(fmt::format("a worker knows no task '{}'", field<std::string>(json, "task")));
  }
  return *std::move(job);
}

}  // namespace launchgap
