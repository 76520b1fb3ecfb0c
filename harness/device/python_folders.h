// Where a Python looks for packages, read from its files: nothing is run.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/core/system_files.h"

namespace launchgap {

struct PythonFolders {
  std::string executable;  // "/home/u/.venv/bin/python3"; empty if there is none
  std::string chosen_by;   // "VIRTUAL_ENV", "CONDA_PREFIX", "PATH"
  std::string unknown;     // why its folders could not be told; empty if they could
  /// Where packages are imported from, in the order of sys.path; the standard library is left out.
  std::vector<std::string> folders;
};

/// The Python that a user's `python3` would be: of VIRTUAL_ENV, else of CONDA_PREFIX, else the
/// first python3 or python of PATH (pyenv's stand-ins are followed). Folders: PYTHONPATH,
/// site-packages and dist-packages, the user's own, and those that .pth files name; a .pth file's
/// code is not run, so what it would add is not known. Sources: Python's site module; Debian's
/// patch to it for dist-packages; PEP 405 for pyvenv.cfg.
PythonFolders find_python(const SystemFiles& system,
                          const std::map<std::string, std::string>& environment);

}  // namespace launchgap
