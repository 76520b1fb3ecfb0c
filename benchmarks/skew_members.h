// Those that do the same step at once for device/skew: GPUs, streams that stand for some, or CPUs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/measure/benchmark.h"

namespace launchgap {

/// One step of one member, in ns of the host's clock, but for `work`.
struct Step {
  std::int64_t begin = 0, returned = 0, seen = 0;
  double work = 0;
  std::optional<double> sum;  // from the end of its work until the sum of all is there, if they sum
  bool waited_first = true;   // when it ended somebody looked, and not later
};

/// What members do, one step of all at a time.
class Members {
 public:
  virtual ~Members() = default;
  virtual std::size_t size() const = 0;
  virtual std::string name(std::size_t member) const = 0;
  /// Does a step with all. Returns when the last is ready.
  virtual const std::vector<Step>& step() = 0;
  /// The median of a member's own part while the others do nothing.
  virtual double alone_ns(std::size_t member) = 0;
  /// Makes `verify` fail, until all have done a step.
  virtual void spoil() = 0;
  /// Throws WrongResult unless each has computed what it should.
  virtual void verify() = 0;
  virtual std::string method() const = 0;
  /// Not of one device, whose streams stand for several.
  virtual bool valid() const { return true; }
};

/// What the case is about; each has computed its work once, and it was verified. Throws Unsupported
/// where there are too few CPUs, and WrongResult.
std::unique_ptr<Members> make_members(const CaseContext& context);

}  // namespace launchgap
