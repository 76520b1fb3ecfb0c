// Logs of RAPIDS Memory Manager: what its logging_resource_adaptor writes since 2020, and
// `rmm.csv_log()` before.
#pragma once

#include <filesystem>
#include <string_view>

#include "harness/import/recording.h"

namespace launchgap::recording {

/// Whether a text begins with the head of such a log.
bool is_rmm_log(std::string_view begin);

/// Throws Error that names the line, and not the file.
Recording read_rmm_log(const std::filesystem::path& file);

}  // namespace launchgap::recording
