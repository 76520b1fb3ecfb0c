#include "harness/run/sample_key.h"

#include <fmt/format.h>

#include "harness/core/plan.h"

namespace launchgap {

std::string run_name(const job::Run& job) {
  return fmt::format("{}/{}", job.session_id, job.records.stem().string());
}

std::uint64_t first_sample_key(std::string_view run_name, std::string_view case_name) {
  constexpr int kDropped = 33, kSampleBits = 32;
  return derive_seed(0, fmt::format("{}/{}", run_name, case_name)) >> kDropped << kSampleBits;
}

}  // namespace launchgap
