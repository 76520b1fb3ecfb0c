// Recordings in SQLite: what nsys exports, and what nvprof wrote.
#pragma once

#include <filesystem>

#include "harness/import/recording.h"

namespace launchgap::recording {

/// Of Nsight Systems, `nsys export --type sqlite` (schemas 2.7 to 3.25 were seen), or of nvprof,
/// `nvprof --export-profile`. Throws Error that does not name the file.
Recording read_sqlite_report(const std::filesystem::path& file);

class Database;

// The two forms, of a file that is open.
void read_nsys(const Database& database, Recording& recording);
void read_nvprof(const Database& database, Recording& recording);

}  // namespace launchgap::recording
