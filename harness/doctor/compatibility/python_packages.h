// What is installed in the active Python, read from its files: nothing is run or imported.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/finding.h"
#include "harness/core/system_files.h"
#include "harness/device/python_folders.h"
#include "harness/doctor/compatibility/framework_answer.h"

namespace launchgap::doctor {

/// A framework or a package that brings CUDA libraries. Its texts are printable.
struct PythonPackage : InstalledPackage {
  bool brings_cuda = false;  // CUDA libraries or code for GPUs lie beside it
};

/// The Python that a user's `python3` would be.
struct ActivePython : PythonFolders {
  std::vector<PythonPackage> packages;  // in the order of the folders
};

ActivePython active_python(const SystemFiles& system,
                           const std::map<std::string, std::string>& environment);

/// `framework-installed-twice`: one finding per framework that several packages bring.
std::vector<Finding> python_findings(const ActivePython& python);

/// "tensorflow-gpu" of "Tensorflow_GPU" (PEP 503).
std::string normalised_name(std::string_view name);

}  // namespace launchgap::doctor
