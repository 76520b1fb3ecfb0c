// A folder of a test's own, which is gone at its end.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace launchgap::doctor {

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "launchgap-test-XXXXXX").string();
    path_ = std::filesystem::canonical(mkdtemp(name.data()));
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::filesystem::path& path() const { return path_; }

  /// Writes a file, with the folders above it.
  std::filesystem::path write(const std::string& name, const std::string& bytes = "") const {
    const std::filesystem::path file = path_ / std::filesystem::path(name).relative_path();
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << bytes;
    return file;
  }
  void make_folder(const std::string& name) const {
    std::filesystem::create_directories(path_ / std::filesystem::path(name).relative_path());
  }

  static std::string copy_of(const std::filesystem::path& file) {
    std::ostringstream bytes;
    bytes << std::ifstream(file, std::ios::binary).rdbuf();
    return bytes.str();
  }

 private:
  std::filesystem::path path_;
};

}  // namespace launchgap::doctor
