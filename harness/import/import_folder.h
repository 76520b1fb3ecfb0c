// What all imports make: a folder, which is whole or not there, and devices for its GPUs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "harness/import/recording.h"
#include "harness/record/records.h"

namespace launchgap::recording {

/// Makes it, or takes one that is there and empty, with folders for records and events. One that an
/// import was making when it was killed is as good as empty. Throws UsageError.
void make_import_folder(const std::filesystem::path& folder);

/// Says that all is there that belongs to it: tables and page too. Until then the next import may
/// take the folder.
void finish_import(const std::filesystem::path& folder) noexcept;

/// Takes away what make_import_folder() made, with all that was written there since.
void remove_import(const std::filesystem::path& folder) noexcept;

// --- Which GPUs a process used, and what a recording tells of them ---

/// FNV-1a, as 16 hexadecimal digits: the same on every machine.
std::string digest(std::string_view text);

/// Of what files hold, whatever they are called: the same content gives the same session. One that
/// cannot be read counts as empty; whoever reads it says so.
std::string digest_of_files(std::span<const std::filesystem::path> files);

/// A GPU that a file may have told little of. Its own UUID, or one made of what is known: the ranks
/// of a job have GPUs of their own.
DeviceFacts facts_of(const Recording& recording, const Process& process, std::uint64_t number);

/// The GPUs that did something for a process, or had its allocations; one of which nothing is known
/// if none did.
std::set<std::uint64_t> gpus_of(const Recording& recording, const Process& process);

/// GPUs on which several processes work, and how many: idle is told of each by its own work.
std::map<std::uint64_t, std::size_t> shared_gpus(const Recording& recording);

}  // namespace launchgap::recording
