// The text of a file that may be compressed by gzip, in pieces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>

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
  struct Reader;
  std::unique_ptr<Reader> reader_;
  std::uint64_t total_ = 0, most_ = std::uint64_t{64} << 30;
  std::uint64_t times_ = 0;  // most_ is so many times the file
};

}  // namespace launchgap::recording
