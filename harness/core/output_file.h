// A file to be written: one that is there is replaced when the new one is whole, so that nobody
// meets half of it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace launchgap {

/// Writes beside the place and moves there at the end; a link is followed, and what it leads to is
/// replaced. What is there and is no file (a pipe, a terminal, /dev/null) is written to. What was
/// not committed leaves nothing behind.
class OutputFile {
 public:
  /// Throws WriteError if nothing can be written there.
  explicit OutputFile(const std::filesystem::path& path);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();

  /// Throws WriteError if it cannot be written.
  void write(std::string_view text);
  /// The file is whole. Throws WriteError if it could not be written or moved into its place.
  void commit();

 private:
  void flush();

  std::filesystem::path path_;       // as it was asked for, for messages
  std::filesystem::path place_;      // behind all links
  std::filesystem::path temporary_;  // beside it; empty where it is written to itself
  int descriptor_ = -1;
  std::string buffer_;
};

/// Throws WriteError if no file could be written there; leaves everything as it is.
void check_output_place(const std::filesystem::path& path);

/// A folder to write into: made, or there and empty. Throws UsageError if it cannot be.
void make_output_folder(const std::filesystem::path& folder);

/// A file with this text. Throws WriteError if it cannot be written.
void write_file(const std::filesystem::path& path, std::string_view text);

// --- A folder of a process's own, gone when the object is ---

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
