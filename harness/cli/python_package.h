// The Python package that draws pages and writes Parquet, beside the binary.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/run/foreign_program.h"

namespace launchgap::cli {

class PythonPackage {
 public:
  /// Throws Error if it is not beside this binary: in the package's share folder, or in the
  /// checkout above build/bin.
  PythonPackage();

  /// To run one of its modules: by LAUNCHGAP_PYTHON, the checkout's .venv, or else python3. What it
  /// needs for a while goes into `scratch`.
  ProgramRequest request(const std::string& module,
                         const std::vector<std::string>& arguments,
                         const std::filesystem::path& scratch) const;

 private:
  std::filesystem::path root_;  // holds `reports/`
};

}  // namespace launchgap::cli
