// The page of many devices, from the tables of the sessions that were put together.
#pragma once

#include <filesystem>
#include <string>

#include "harness/cli/json_output.h"
#include "harness/core/errors.h"

namespace launchgap::cli {

/// Whether a folder holds sessions that were put together, of so many devices that their page is a
/// fleet's. Throws what read_session_record() does.
bool is_of_many_devices(const std::string& folder);

/// Draws the page, to `output` or, if that is empty, into the folder with its tables; answers what
/// it finds. Throws what write_fleet_page() does.
ExitCode report_fleet(const std::string& folder,
                      std::filesystem::path output,
                      const JsonOutput& json);

}  // namespace launchgap::cli
