// Files *.gmtrace.csv, version 1: a trace as text, one event on a line, for any program to write.
// docs/allocation.md has the form.
#pragma once

#include <filesystem>
#include <memory>

#include "harness/allocation/trace.h"

namespace launchgap::allocation {

/// Whether a file's first line is that of a gmtrace, of whatever version; compressed by gzip or
/// not. False for what cannot be read.
bool is_gmtrace(const std::filesystem::path& file);

/// Throws Error that names the file, and the line where one is at fault: at once if its head is
/// damaged, from next() for what comes later. Memory is for what is live at one time, never for
/// the file.
std::unique_ptr<Trace> open_gmtrace(const std::filesystem::path& file);

/// Writes all events; compressed if the name ends with ".gz". Returns how many. Throws WriteError,
/// and what `trace` throws.
std::uint64_t write_gmtrace(Trace& trace, const std::filesystem::path& file);

}  // namespace launchgap::allocation
