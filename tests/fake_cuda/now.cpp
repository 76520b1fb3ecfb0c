#include <ctime>

#include "tests/fake_cuda/operation.h"

namespace launchgap::fake {

double now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

}  // namespace launchgap::fake
