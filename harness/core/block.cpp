#include "harness/core/block.h"

#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace launchgap {

void Block::refuse(std::size_t values) const {
  if (size_ == capacity_)
    throw std::logic_error(fmt::format("a sample beyond the {} of its block", capacity_));
  throw std::logic_error(
      fmt::format("a sample of {} values for the metrics {}", values, fmt::join(metrics_, ", ")));
}

}  // namespace launchgap
