// What multiply_add.cu and who launches it must agree on.
#pragma once

namespace launchgap::kernels {

constexpr unsigned kMultiplyAddChains = 8;  // numbers of a thread, which do not wait for each other
constexpr unsigned kMultiplyAddStarts = 7;  // threads begin with so many different numbers

/// Operations of a thread: a multiplication and an addition per number and step.
constexpr double multiply_add_operations(unsigned steps) {
  return 2.0 * kMultiplyAddChains * steps;
}

/// What a thread has computed after so many steps, each of which multiplies by 1 and adds 1; exact.
constexpr double multiply_add_count(unsigned long long thread, unsigned steps) {
  double sum = 0;
  for (unsigned i = 0; i < kMultiplyAddChains; ++i)
    sum += static_cast<double>(thread % kMultiplyAddStarts + i + steps);
  return sum;
}

}  // namespace launchgap::kernels
