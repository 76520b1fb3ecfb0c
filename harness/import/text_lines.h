// Lines of a text that may be compressed by gzip, each with its number.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "harness/import/compressed_text.h"

namespace launchgap::recording {

class TextLines {
 public:
  /// Throws Error if the file cannot be read.
  TextLines(const std::filesystem::path& file, std::size_t longest);

  /// The next line, without its end ("\n" or "\r\n"), or false at the end. Throws Error that names
  /// the line, and not the file, if it is too long; it is not read on then.
  bool next(std::string_view& line);
  /// Of the last line, from 1 on.
  std::uint64_t number() const { return number_; }
  /// Whether the last line had no end.
  bool torn() const { return torn_; }
  /// See CompressedText.
  void limit_unpacking(std::uint64_t times) { text_.limit_unpacking(times); }
  bool is_compressed() const { return text_.is_compressed(); }

 private:
  void check(std::size_t length) const;

  CompressedText text_;
  std::size_t longest_;
  std::string buffer_;
  std::size_t at_ = 0, filled_ = 0;
  std::uint64_t before_ = 0;  // bytes in front of the buffer
  std::uint64_t number_ = 0;
  bool torn_ = false;
};

}  // namespace launchgap::recording
