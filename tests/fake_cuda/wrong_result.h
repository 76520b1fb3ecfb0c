// An algorithm of a library that computes one element wrongly.
#pragma once

#include <cstddef>
#include <utility>

#include "tests/fake_cuda/operation.h"

namespace launchgap::fake {

/// One byte of the first element of what it writes.
inline void spoil_first_element(Operation& operation) {
  const Range result = operation.writes.front();
  operation.signature += " wrong";
  operation.compute = [=, compute = std::move(operation.compute)](std::size_t begin,
                                                                  std::size_t end) {
    compute(begin, end);
    if (begin == 0) *reinterpret_cast<unsigned char*>(result.begin) ^= 0xC0;
  };
}

}  // namespace launchgap::fake
