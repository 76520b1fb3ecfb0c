#include "harness/device/cuda/driver.h"

#include <filesystem>

#include <fmt/format.h>

#include "harness/core/errors.h"

namespace launchgap::cuda {

const Driver& Driver::get() {
  static const Driver driver = [] {
    const SharedLibrary file = SharedLibrary::open(
        {"CUDA driver", "LAUNCHGAP_LIBCUDA", {"libcuda.so.1"}, {}, /*loader_alone=*/true});
    Driver library;
    LAUNCHGAP_CUDA_DRIVER_FUNCTIONS(LAUNCHGAP_TAKE)
    library.facts = file.facts();
    int version = 0;
    if (library.cuDriverGetVersion(&version) == abi::kSuccess) {
      library.facts.version = cuda_version_text(version);
    }
    return library;
  }();
  return driver;
}

std::string Driver::describe(abi::Result code) const {
  const char* name = nullptr;
  const char* text = nullptr;
  cuGetErrorName(code, &name);
  cuGetErrorString(code, &text);
  return fmt::format(
      "{}: {}", name ? name : "unknown error", text ? text : "the driver has no text for it");
}

void Driver::fail(abi::Result code, const char* call, const char* file, int line) const {
  const std::string text(call);
  const std::string name = text.substr(0, text.find('('));
  const std::string where =
      fmt::format("{}:{}", std::filesystem::path(file).filename().string(), line);
  if (code == abi::kOutOfMemory)
    throw OutOfMemory("CUDA driver", name, code, describe(code), false, where);
  throw LibraryError("CUDA driver", name, code, describe(code), is_sticky(code), where);
}

bool is_sticky(abi::Result code) {
  switch (code) {
    case abi::kDeinitialized:
    case abi::kEccUncorrectable:
    case abi::kNvlinkUncorrectable:
    case abi::kIllegalAddress:
    case abi::kLaunchTimeout:
    case abi::kContextIsDestroyed:
    case abi::kAssert:
    case abi::kHardwareStackError:
    case abi::kIllegalInstruction:
    case abi::kMisalignedAddress:
    case abi::kInvalidAddressSpace:
    case abi::kInvalidPc:
    case abi::kLaunchFailed:
    case abi::kTensorMemoryLeak:
    case abi::kMpsClientTerminated:
    case abi::kUnknown:
      return true;
    default:
      return false;
  }
}

}  // namespace launchgap::cuda
