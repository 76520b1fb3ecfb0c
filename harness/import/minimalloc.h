// Problems of minimalloc (`id,lower,upper,size`): blocks with the times between which they are
// live, as a compiler plans them.
#pragma once

#include <filesystem>
#include <string_view>

#include "harness/import/recording.h"

namespace launchgap::recording {

/// Whether a text begins with the head of such a file.
bool is_minimalloc(std::string_view begin);

/// Throws Error that names the line, and not the file.
Recording read_minimalloc(const std::filesystem::path& file);

}  // namespace launchgap::recording
