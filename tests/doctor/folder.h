// A folder of a test's own, which is gone at its end.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "harness/core/input_file.h"
#include "harness/core/output_file.h"

namespace launchgap::doctor {

class Folder : public TemporaryFolder {
 public:
  /// Writes a file, with the folders above it.
  std::filesystem::path write(const std::string& name, const std::string& bytes = "") const {
    const std::filesystem::path file = path() / std::filesystem::path(name).relative_path();
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << bytes;
    return file;
  }
  void make_folder(const std::string& name) const {
    std::filesystem::create_directories(path() / std::filesystem::path(name).relative_path());
  }

  static std::string copy_of(const std::filesystem::path& file) {
    return InputFile(file).text(std::size_t{1} << 28);
  }
};

}  // namespace launchgap::doctor
