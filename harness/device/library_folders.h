// Where CUDA's libraries lie that the loader does not find by itself. launchgap loads them from
// there, and the doctor tells programs of them: one search, so that the two cannot disagree.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/core/system_files.h"

namespace launchgap {

/// The folders in the order in which they are searched:
/// 1. `lib64`, `lib` and `extras/CUPTI/lib64` of CUDA_HOME, then of CUDA_PATH;
/// 2. `nvidia/*/lib`, pip's, in the folders of the active Python (see python_folders.h) and of
///    launchgap's own .venv, which comes first unless VIRTUAL_ENV chose another;
/// 3. `lib` of CONDA_PREFIX;
/// 4. of /usr/local/cuda and /usr/local/cuda-*, the highest number first, what 1 has.
/// They need not exist.
std::vector<std::string> library_folders(const SystemFiles& system,
                                         const std::map<std::string, std::string>& environment);

}  // namespace launchgap
