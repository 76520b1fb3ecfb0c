// Versions of CUPTI in words.
#pragma once

#include <cstdint>
#include <string>

namespace launchgap::cupti {

/// "13.0 (API 130001)", "12.4 (API 22)".
std::string version_text(std::uint32_t version);

}  // namespace launchgap::cupti
