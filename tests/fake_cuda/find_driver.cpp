#include <dlfcn.h>

#include "tests/fake_cuda/operation.h"

namespace launchgap::fake {

Driver* find_driver() {
  static Driver* const driver = []() -> Driver* {
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (library == nullptr) library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == nullptr) return nullptr;
    // A real libcuda.so.1 has no such symbol: the fakes do not run on it.
    auto* const function = reinterpret_cast<DriverFunction*>(dlsym(library, kDriverSymbol));
    return function != nullptr ? function() : nullptr;
  }();
  return driver;
}

}  // namespace launchgap::fake
