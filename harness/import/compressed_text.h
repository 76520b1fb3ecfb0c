// The text of files that may be compressed by gzip, read and written in pieces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "harness/core/output_file.h"

struct gzFile_s;  // of zlib

namespace launchgap::recording {

/// For limit_unpacking(): recorders' files unpack to 10 to 30 times their size.
inline constexpr std::uint64_t kMostUnpacking = 100;

class CompressedText {
 public:
  /// Throws Error if it is no file or cannot be read.
  explicit CompressedText(const std::filesystem::path& file);
  ~CompressedText();
  CompressedText(const CompressedText&) = delete;
  CompressedText& operator=(const CompressedText&) = delete;

  /// The next bytes, at most `size`; 0 at the end. A byte order mark is none of them. Throws Error,
  /// which does not name the file, if it cannot be read, is damaged or ends too early, or comes to
  /// more than 64 GiB.
  std::size_t read(char* to, std::size_t size);
  bool is_compressed() const;
  /// From now on read() throws Error, which names the byte, where a compressed file unpacks to more
  /// than 64 MiB and `times` its size.
  void limit_unpacking(std::uint64_t times);

 private:
  gzFile_s* file_ = nullptr;
  std::uint64_t packed_ = 0;  // size of the file
  std::uint64_t total_ = 0, most_ = std::uint64_t{64} << 30;
  std::uint64_t times_ = 0;  // most_ is so many times the file
};

/// The bytes that a file begins with, out of its compression. Throws what CompressedText does.
std::string beginning_of(const std::filesystem::path& file, std::size_t most);

// --- A text that is written, compressed by gzip where the file's name says so ---

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
