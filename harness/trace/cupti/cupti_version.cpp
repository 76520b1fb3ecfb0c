#include "harness/trace/cupti/cupti_version.h"

#include <utility>

#include <fmt/format.h>

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

}  // namespace

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
