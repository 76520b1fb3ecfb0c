// What is installed in the active Python, read from its files: nothing is run or imported.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/doctor/finding.h"
#include "harness/doctor/frameworks/frameworks.h"
#include "harness/doctor/system_files.h"

namespace launchgap::doctor {

/// A framework or a package that brings CUDA libraries. Its texts are printable.
struct PythonPackage : InstalledPackage {
  bool brings_cuda = false;  // CUDA libraries or code for GPUs lie beside it
  /// The CUDA version that it was built for, where its own files tell ("12.1"): torch/version.py,
  /// TensorFlow's build_info.py. "none": a build without CUDA. Empty: not known.
  std::string cuda;
};

struct ActivePython {
  std::string executable;  // "/home/u/.venv/bin/python3"; empty if there is none
  std::string chosen_by;   // "VIRTUAL_ENV", "CONDA_PREFIX", "PATH"
  std::string unknown;     // why its folders could not be told; empty if they could
  /// Where packages are imported from, in the order of sys.path; the standard library is left out.
  std::vector<std::string> folders;
  std::vector<PythonPackage> packages;  // in the order of the folders
};

/// The Python that a user's `python3` would be: of VIRTUAL_ENV, else of CONDA_PREFIX, else the
/// first python3 or python of PATH (pyenv's stand-ins are followed). Folders: PYTHONPATH,
/// site-packages and dist-packages, the user's own, and those that .pth files name; a .pth file's
/// code is not run, so what it would add is not known. Sources: Python's site module; Debian's
/// patch to it for dist-packages; PEP 405 for pyvenv.cfg.
ActivePython active_python(const SystemFiles& system,
                           const std::map<std::string, std::string>& environment);

/// The environment of this process.
std::map<std::string, std::string> own_environment();

/// `framework-installed-twice`: one finding per framework that several packages bring.
std::vector<Finding> python_findings(const ActivePython& python);

/// "tensorflow-gpu" of "Tensorflow_GPU" (PEP 503).
std::string normalised_name(std::string_view name);

}  // namespace launchgap::doctor
