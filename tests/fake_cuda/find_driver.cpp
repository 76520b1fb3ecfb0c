#include <dlfcn.h>

#include "tests/fake_cuda/operation.h"

namespace launchgap::fake {
namespace {

/// A real libcuda.so.1 has no such symbol: the fakes do not run on it.
Driver* driver_of(void* library) {
  if (library == nullptr) return nullptr;
  auto* const function = reinterpret_cast<DriverFunction*>(dlsym(library, kDriverSymbol));
  return function != nullptr ? function() : nullptr;
}

}  // namespace

Driver* loaded_driver() {
  return driver_of(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD));
}

Driver* find_driver() {
  static Driver* const driver = [] {
    Driver* const loaded = loaded_driver();
    return loaded != nullptr ? loaded : driver_of(dlopen("libcuda.so.1", RTLD_NOW));
  }();
  return driver;
}

}  // namespace launchgap::fake
