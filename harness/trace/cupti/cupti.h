// CUPTI as loaded at run time.
#pragma once

#include <string>

#include "harness/device/shared_library.h"
#include "harness/trace/cupti/abi.h"

namespace launchgap::cupti {

struct Cupti : abi::CuptiFunctions {
  LoadedLibrary facts;
  std::uint32_t version = 0;  // as cuptiGetVersion has it

  /// Loads the newest CUPTI that the driver can serve, once per process. Throws Error if there is
  /// none. Nothing of it is called but its version.
  static const Cupti& get();

  std::string describe(abi::Result code) const;
};

}  // namespace launchgap::cupti
