// The tables of data/, as the build put them into the binary (scripts/cmake/EmbedData.cmake).
#pragma once

#include <string_view>

namespace launchgap::doctor {

/// The text of a table, "toolkit_driver.csv"; empty for a name that was not embedded.
std::string_view embedded_table(std::string_view name);

}  // namespace launchgap::doctor
