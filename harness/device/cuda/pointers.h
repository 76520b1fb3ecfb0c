// Device addresses as the driver spells them, and as pointers that nobody here follows.
#pragma once

#include "harness/device/cuda/abi/driver.h"

namespace launchgap::cuda {

inline void* as_pointer(abi::DevicePointer pointer) {
  return reinterpret_cast<void*>(pointer);
}
inline abi::DevicePointer as_device(const void* pointer) {
  return reinterpret_cast<abi::DevicePointer>(pointer);
}

}  // namespace launchgap::cuda
