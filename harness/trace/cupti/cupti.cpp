#include "harness/trace/cupti/cupti.h"

#include <limits>
#include <map>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/device/cuda/driver.h"
#include "harness/trace/cupti/decode.h"

namespace launchgap::cupti {
namespace {

/// The version of CUDA that the driver serves, 13000 for 13.0; a later one where it does not say.
int driver_version() {
  try {
    int version = 0;
    if (cuda::Driver::get().cuDriverGetVersion(&version) == cuda::abi::kSuccess) return version;
  } catch (const Error&) {
  }
  return std::numeric_limits<int>::max();
}

std::map<int, std::string> sonames_by_version() {
  std::map<int, std::string> sonames;
  for (const auto& [cuda, name] : abi::kSonames) sonames[cuda] = name;
  return sonames;
}

}  // namespace

const Cupti& Cupti::get() {
  // Never destroyed: CUPTI calls back while the process ends.
  static const Cupti* const cupti = [] {
    const SharedLibrary file =
        SharedLibrary::open(by_version({"CUPTI", "LAUNCHGAP_LIBCUPTI", {}, {}},
                                       sonames_by_version(),
                                       driver_version(),
                                       "libcupti.so"));
    auto& library = *new Cupti;
    LAUNCHGAP_CUPTI_FUNCTIONS(LAUNCHGAP_TAKE)
    library.facts = file.facts();
    if (library.cuptiGetVersion(&library.version) != abi::kSuccess)
      throw Error("CUPTI ({}) does not tell its version", file.path());
    library.facts.version = version_text(library.version);
    return &library;
  }();
  return *cupti;
}

std::string Cupti::describe(abi::Result code) const {
  const char* text = nullptr;
  cuptiGetResultString(code, &text);
  return text ? text : fmt::format("code {}", code);
}

}  // namespace launchgap::cupti
