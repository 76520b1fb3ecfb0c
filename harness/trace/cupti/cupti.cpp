#include "harness/trace/cupti/cupti.h"

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/device/cuda/driver.h"

namespace launchgap::cupti {
namespace {

/// The toolkits that came with versions below 130000. Source: cupti_version.h of CUDA 13.0.
constexpr std::pair<std::uint32_t, const char*> kToolkits[] = {{13, "11.0"},
                                                               {14, "11.1"},
                                                               {15, "11.2 to 11.4"},
                                                               {16, "11.5"},
                                                               {17, "11.6"},
                                                               {18, "11.8"},
                                                               {19, "12.0"},
                                                               {20, "12.2"},
                                                               {21, "12.3"},
                                                               {22, "12.4"},
                                                               {23, "12.5"},
                                                               {24, "12.6"},
                                                               {26, "12.8"},
                                                               {27, "12.9"},
                                                               {28, "12.9.1"}};

/// The major version of CUDA that the driver serves; 13 where it does not say.
int driver_major() {
  try {
    int version = 0;
    if (cuda::Driver::get().cuDriverGetVersion(&version) == cuda::abi::kSuccess)
      return version / 1000;
  } catch (const Error&) {
  }
  return 13;
}

}  // namespace

const Cupti& Cupti::get() {
  // Never destroyed: CUPTI calls back while the process ends.
  static const Cupti* const cupti = [] {
    // 11.x has its minor version in the name; 11.8 is what its last drivers came with.
    std::vector<std::string> sonames = sonames_up_to("libcupti", {12, 13}, driver_major());
    sonames.insert(sonames.end() - 1, "libcupti.so.11.8");
    const SharedLibrary file = SharedLibrary::open(
        {"CUPTI", "LAUNCHGAP_LIBCUPTI", sonames, {"cuda_cupti/lib", "cu13/lib"}});
    auto* const loaded = new Cupti;
#define LAUNCHGAP_LOAD(name, required, ...)                                                \
  loaded->name = reinterpret_cast<decltype(loaded->name)>((required) ? file.require(#name) \
                                                                     : file.find(#name));
    LAUNCHGAP_CUPTI_FUNCTIONS(LAUNCHGAP_LOAD)
#undef LAUNCHGAP_LOAD
    loaded->facts = file.facts();
    if (loaded->cuptiGetVersion(&loaded->version) != abi::kSuccess)
      throw Error(fmt::format("CUPTI ({}) does not tell its version", file.path()));
    loaded->facts.version = version_text(loaded->version);
    return loaded;
  }();
  return *cupti;
}

std::string Cupti::describe(abi::Result code) const {
  const char* text = nullptr;
  cuptiGetResultString(code, &text);
  return text ? text : fmt::format("code {}", code);
}

std::string version_text(std::uint32_t version) {
  if (version >= 100000) {
    return fmt::format("{}.{} (API {})", version / 10000, version / 100 % 100, version);
  }
  for (const auto& [api, toolkit] : kToolkits) {
    if (api == version) return fmt::format("{} (API {})", toolkit, version);
  }
  return fmt::format("API {}", version);
}

}  // namespace launchgap::cupti
