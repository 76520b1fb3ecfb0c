#include "harness/run/leak_check.h"

#include "harness/core/errors.h"
#include "harness/device/backend.h"

namespace launchgap {
namespace {

/// None if it cannot be known; that must not cost a case.
std::optional<std::uint64_t> free_now(Device& device) {
  if (!is_gpu(device.facts())) return std::nullopt;
  try {
    return device.free_memory_bytes();
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

void LeakCheck::begin(Device& device) {
  at_first_ = before_ = now_ = free_now(device);
}

void LeakCheck::note(Device& device, const std::string& case_name) {
  if (!at_first_) return;
  before_ = now_;
  now_ = free_now(device);
  if (!before_ || !now_) return;
  const auto kept = static_cast<std::int64_t>(*before_) - static_cast<std::int64_t>(*now_);
  if (kept <= most_) return;
  most_ = kept;
  by_ = case_name;
}

void LeakCheck::report(EndRecord& end) const {
  if (!at_first_ || !now_) return;
  end.memory_kept_bytes = static_cast<std::int64_t>(*at_first_) - static_cast<std::int64_t>(*now_);
  if (!by_.empty()) end.memory_kept_by = by_;
}

}  // namespace launchgap
