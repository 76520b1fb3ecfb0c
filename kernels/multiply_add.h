// What multiply_add.cu and who launches it must agree on.
#pragma once

namespace launchgap::kernels {

constexpr unsigned kMultiplyAddChains = 8;  // numbers of a thread, which do not wait for each other
constexpr unsigned kMultiplyAddStarts = 7;  // threads begin with so many different numbers

/// Operations of a thread: a multiplication and an addition per number and step.
constexpr double multiply_add_operations(unsigned steps) {
  return 2.0 * kMultiplyAddChains * steps;
}

}  // namespace launchgap::kernels
