#include "harness/device/cuda/nvml_library.h"

#include <array>

#include "harness/core/errors.h"
#include "harness/device/shared_library.h"

namespace launchgap::cuda {

const Nvml& Nvml::get() {
  static const Nvml loaded = [] {
    const SharedLibrary file = SharedLibrary::open(
        {"NVML", "LAUNCHGAP_LIBNVML", {"libnvidia-ml.so.1"}, {}, /*loader_alone=*/true});
    Nvml functions;
#define LAUNCHGAP_LOAD(name, required, ...)                                                    \
  functions.name = reinterpret_cast<decltype(functions.name)>((required) ? file.require(#name) \
                                                                         : file.find(#name));
    LAUNCHGAP_NVML_FUNCTIONS(LAUNCHGAP_LOAD)
#undef LAUNCHGAP_LOAD
    functions.facts = file.facts();
    functions.check(functions.nvmlInit_v2(), "nvmlInit_v2");
    std::array<char, 80> version{};
    if (functions.nvmlSystemGetNVMLVersion &&
        functions.nvmlSystemGetNVMLVersion(version.data(), version.size() - 1) == nvml::kSuccess) {
      functions.facts.version = version.data();
    }
    return functions;
  }();
  return loaded;
}

void Nvml::check(nvml::Result code, const char* call) const {
  if (code == nvml::kSuccess) return;
  const char* const text = nvmlErrorString(code);
  throw LibraryError("NVML", call, code, text ? text : "no text for it", false);
}

}  // namespace launchgap::cuda
