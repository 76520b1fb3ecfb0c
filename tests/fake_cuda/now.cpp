// What every one of the fake libraries has.
#include <ctime>

#include "tests/fake_cuda/operation.h"

/// Marks whatever runs on this library as simulated.
EXPORT int launchgap_fake_library;
int launchgap_fake_library = 1;

namespace launchgap::fake {

double now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

}  // namespace launchgap::fake
