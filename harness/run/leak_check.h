// Whether cases give back the memory that they take: what is free on a GPU, before and after.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "harness/device/device.h"
#include "harness/record/records.h"

namespace launchgap {

/// The driver, and libraries that a case loads, keep memory too, so what is kept is told and is no
/// failure. Of the host nothing can be told: all processes share what is free.
class LeakCheck {
 public:
  /// What is free now is what there should be at the end.
  void begin(Device& device);
  /// After a case, when all it had is destroyed. Names it if it kept more than those before it.
  void note(Device& device, const std::string& case_name);
  void report(EndRecord& end) const;

 private:
  std::optional<std::uint64_t> at_first_, before_, now_;
  std::int64_t most_ = 0;  // that a case kept
  std::string by_;         // which one
};

}  // namespace launchgap
