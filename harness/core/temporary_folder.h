// A folder of a process's own, gone when the object is.
#pragma once

#include <filesystem>
#include <string>

namespace launchgap {

class TemporaryFolder {
 public:
  /// In TMPDIR, or in /tmp where that cannot be written to.
  explicit TemporaryFolder(const std::string& prefix = "launchgap-");
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  /// Absolute; empty if the system refuses.
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace launchgap
