// Memory snapshots of PyTorch (torch.cuda.memory._snapshot() and _dump_snapshot()): what its
// allocator was asked for and what it took from the driver, and what was live at the end.
#pragma once

#include <filesystem>

#include "harness/import/recording.h"

namespace launchgap::recording {

/// Of a pickle. Throws Error that names the entry or the byte at fault, and not the file.
Recording read_torch_snapshot(const std::filesystem::path& file);

}  // namespace launchgap::recording
