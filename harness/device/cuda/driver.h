// The CUDA driver as loaded at run time: its functions, and the check that every call goes through.
#pragma once

#include <string>

#include "harness/device/cuda/abi/driver.h"
#include "harness/device/shared_library.h"

namespace launchgap::cuda {

/// The driver's functions, and which file they came from.
struct Driver : abi::DriverFunctions {
  LoadedLibrary facts;

  /// Loads libcuda.so.1 once per process; throws Error if there is none. Does not call cuInit.
  static const Driver& get();

  /// Throws LibraryError, or OutOfMemory, unless `code` is success. `call` is the source text of
  /// the call, `file` and `line` where it stands.
  void check(abi::Result code, const char* call, const char* file, int line) const {
    if (code != abi::kSuccess) [[unlikely]]
      fail(code, call, file, line);
  }
  /// Whether the device has this attribute, and it is not 0.
  bool has(abi::DeviceAttribute attribute, abi::Device device) const {
    int value = 0;
    return cuDeviceGetAttribute(&value, attribute, device) == abi::kSuccess && value != 0;
  }
  /// "CUDA_ERROR_OUT_OF_MEMORY: out of memory".
  std::string describe(abi::Result code) const;

 private:
  [[noreturn]] void fail(abi::Result code, const char* call, const char* file, int line) const;
};

/// Whether the process can make no further use of the device after this error: CUDA keeps returning
/// it.
bool is_sticky(abi::Result code);

/// A call, its check, and its name for the error message. For destructors there is no such macro:
/// they call the function directly and ignore what it returns, since whatever failed was reported
/// by an earlier call.
#define CHECK_CUDA(driver, call) (driver).check((driver).call, #call, __FILE__, __LINE__)

// --- Device addresses as the driver spells them, and as pointers that nobody here follows ---

inline void* as_pointer(abi::DevicePointer pointer) {
  return reinterpret_cast<void*>(pointer);
}
inline abi::DevicePointer as_device(const void* pointer) {
  return reinterpret_cast<abi::DevicePointer>(pointer);
}

}  // namespace launchgap::cuda
