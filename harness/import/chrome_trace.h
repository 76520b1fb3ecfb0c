// Chrome traces of CUDA programs, as PyTorch's profiler (Kineto) writes them: an object with
// "traceEvents", or a bare list of events; of 2020 and of now.
#pragma once

#include <filesystem>

#include "harness/import/recording.h"

namespace launchgap::recording {

/// Memory is that of the events that are kept, and not of the file. Throws Error that does not name
/// the file.
Recording read_chrome_trace(const std::filesystem::path& file);

}  // namespace launchgap::recording
