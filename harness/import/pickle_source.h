// The bytes of a pickle, and its texts of protocol 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "harness/import/compressed_text.h"

namespace launchgap::recording {

/// The bytes of a file, plain or compressed by gzip, with how many were read. Throws Error, which
/// does not name the file, where it ends, and if it unpacks to more than any snapshot does.
class PickleSource {
 public:
  explicit PickleSource(const std::filesystem::path& file);

  unsigned char byte() {
    if (at_ == filled_) fill();
    return static_cast<unsigned char>(buffer_[at_++]);
  }
  /// Appends `size` bytes; memory is for those that are there.
  void take(std::size_t size, std::string& to);
  std::uint64_t offset() const { return before_ + at_; }
  bool is_compressed() const { return text_.is_compressed(); }

 private:
  void fill();

  CompressedText text_;
  std::vector<char> buffer_;
  std::size_t at_ = 0, filled_ = 0;
  std::uint64_t before_ = 0;  // bytes in front of the buffer
};

/// The text of a line in Python's escapes, whose bytes are Latin-1, as UTF-8. Escapes other than
/// \xNN, \uNNNN and \UNNNNNNNN stay as they are.
std::string unescaped(std::string_view line);

}  // namespace launchgap::recording
