// A text that is written to a file, compressed by gzip where the file's name says so.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "harness/core/output_file.h"

namespace launchgap::recording {

class CompressedOutput {
 public:
  /// Compresses if the name ends with ".gz". Throws WriteError.
  explicit CompressedOutput(const std::filesystem::path& path);
  ~CompressedOutput();
  CompressedOutput(const CompressedOutput&) = delete;
  CompressedOutput& operator=(const CompressedOutput&) = delete;

  /// What is to be written is put at its end.
  std::string& buffer() { return buffer_; }
  /// Now and then. Throws WriteError.
  void flush_if_long();
  /// The file is whole; without this call there is none. Throws WriteError.
  void commit();

 private:
  struct Deflate;
  void flush(bool finish);

  OutputFile file_;
  std::unique_ptr<Deflate> deflate_;
  std::string buffer_;
};

}  // namespace launchgap::recording
