// A raw recording as it is written: by one thread, in whole blocks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "harness/injected/raw_recording.h"

namespace launchgap::injected {

/// No descriptor stays open between two writes: a program may close all that it does not know, and
/// its own next file would have the number.
class RawFile {
 public:
  RawHeader header{};

  /// Makes a file in `folder`, named after this process. False, with errno, if that is impossible.
  bool create(const std::string& folder);

  /// No block is written that would make the blocks longer; they are small where this is.
  void limit(std::uint64_t bytes);

  /// Writes the header. Errors do not matter: it is written again.
  void write_header();

  // --- Entries, which go to the file with their block ---

  void begin(RawTag tag) {
    if (used_ + kLongestEntry > room_) flush();
    block_[used_++] = static_cast<unsigned char>(tag);
  }
  void number(std::uint64_t value) {
    while (value >= 0x80) {
      block_[used_++] = static_cast<unsigned char>(value | 0x80);
      value >>= 7;
    }
    block_[used_++] = static_cast<unsigned char>(value);
  }
  void signed_number(std::int64_t value) { number(zigzag(value)); }
  /// The difference from the time before.
  void time(std::uint64_t ns) {
    signed_number(static_cast<std::int64_t>(ns - last_time_));
    last_time_ = ns;
  }
  void correlation(std::uint32_t value) {
    signed_number(std::int64_t{value} - std::int64_t{last_correlation_});
    last_correlation_ = value;
  }
  /// Length and characters, at most kLongestText.
  void text(const char* text, std::size_t length);
  void bytes(const unsigned char* data, std::size_t count);

  /// Appends the entries since the last time as a block. What cannot be written stops the
  /// recording; see failed().
  void flush();

  /// Why nothing more is written: "No space left on device"; null while all is well.
  const char* failure() const { return failure_.empty() ? nullptr : failure_.c_str(); }

  static constexpr std::size_t kLongestText = 4096;

 private:
  static constexpr std::size_t kLongestEntry = kLongestText + 256;

  /// False if it was not written: for good, with failure_, or for now, which it is not if it
  /// `must`.
  bool append(const unsigned char* data, std::size_t count, bool must);

  std::string path_;
  std::uint64_t limit_ = 0;
  std::uint64_t end_ = sizeof(RawHeader);  // of the last whole block
  std::string failure_;
  std::uint64_t last_time_ = 0;
  std::uint32_t last_correlation_ = 0;
  std::size_t used_ = sizeof(RawBlock), room_ = 0;
  std::array<unsigned char, std::size_t{256} << 10> block_{};
};

}  // namespace launchgap::injected
