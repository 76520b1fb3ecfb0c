#include "harness/import/text_lines.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "harness/core/errors.h"

namespace launchgap::recording {

TextLines::TextLines(const std::filesystem::path& file, std::size_t longest)
    : text_(file), longest_(longest), buffer_(1 << 18, '\0') {}

bool TextLines::next(std::string_view& line) {
  ++number_;
  for (;;) {
    const void* const end = std::memchr(buffer_.data() + at_, '\n', filled_ - at_);
    if (end) {
      const auto length =
          static_cast<std::size_t>(static_cast<const char*>(end) - (buffer_.data() + at_));
      check(length);
      line = std::string_view(buffer_).substr(at_, length);
      at_ += length + 1;
      break;
    }
    check(filled_ - at_);
    std::copy(buffer_.begin() + static_cast<std::ptrdiff_t>(at_),
              buffer_.begin() + static_cast<std::ptrdiff_t>(filled_),
              buffer_.begin());
    before_ += at_;
    filled_ -= std::exchange(at_, 0);
    if (filled_ == buffer_.size()) buffer_.resize(2 * buffer_.size());
    const std::size_t got = text_.read(buffer_.data() + filled_, buffer_.size() - filled_);
    if (got == 0) {
      if (filled_ == 0) return false;
      line = std::string_view(buffer_).substr(0, filled_);
      at_ = filled_;
      torn_ = true;
      break;
    }
    filled_ += got;
  }
  if (line.ends_with('\r')) line.remove_suffix(1);
  return true;
}

void TextLines::check(std::size_t length) const {
  if (length > longest_)
    throw Error("line {} (byte {}) is longer than {} bytes", number_, before_ + at_, longest_);
}

}  // namespace launchgap::recording
