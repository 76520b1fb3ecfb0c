// The folder that an import makes: whole, or not there.
#pragma once

#include <filesystem>

namespace launchgap::recording {

/// Makes it, or takes one that is there and empty, with folders for records and events. One that an
/// import was making when it was killed is as good as empty. Throws UsageError.
void make_import_folder(const std::filesystem::path& folder);

/// Says that all is there that belongs to it: tables and page too. Until then the next import may
/// take the folder.
void finish_import(const std::filesystem::path& folder) noexcept;

/// Takes away what make_import_folder() made, with all that was written there since.
void remove_import(const std::filesystem::path& folder) noexcept;

}  // namespace launchgap::recording
