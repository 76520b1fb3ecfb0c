#include "harness/import/pickle_source.h"

#include <algorithm>
#include <charconv>

#include "harness/core/errors.h"

namespace launchgap::recording {
namespace {

void append_utf8(std::uint32_t code, std::string& to) {
  if (code >= 0x110000 || (code >= 0xD800 && code < 0xE000)) code = 0xFFFD;
  const auto put = [&](std::uint32_t bits) { to += static_cast<char>(bits); };
  const auto more = [&](int shift) { put(0x80 | (code >> shift & 0x3F)); };
  if (code < 0x80) return put(code);
  if (code < 0x800) {
    put(0xC0 | code >> 6);
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    more(6);
  } else {
    put(0xF0 | code >> 18);
    more(12);
    more(6);
  }
  more(0);
}

}  // namespace

PickleSource::PickleSource(const std::filesystem::path& file) : text_(file), buffer_(1 << 18) {
  text_.limit_unpacking(kMostUnpacking);
}

void PickleSource::take(std::size_t size, std::string& to) {
  while (size > 0) {
    if (at_ == filled_) fill();
    const std::size_t some = std::min(size, filled_ - at_);
    to.append(buffer_.data() + at_, some);
    at_ += some;
    size -= some;
  }
}

void PickleSource::fill() {
  before_ += filled_;
  at_ = 0;
  filled_ = text_.read(buffer_.data(), buffer_.size());
  if (filled_ == 0) throw Error("it ends too early, at byte {}", before_);
}

std::string unescaped(std::string_view line) {
  std::string text;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char kind = line[i] == '\\' && i + 1 < line.size() ? line[i + 1] : '\0';
    const std::size_t digits = kind == 'x' ? 2 : kind == 'u' ? 4 : kind == 'U' ? 8 : 0;
    if (digits > 0 && i + 2 + digits <= line.size()) {
      std::uint32_t code = 0;
      const char* const end = line.data() + i + 2 + digits;
      if (std::from_chars(line.data() + i + 2, end, code, 16).ptr == end) {
        append_utf8(code, text);
        i += 1 + digits;
        continue;
      }
    }
    append_utf8(static_cast<unsigned char>(line[i]), text);
  }
  return text;
}

}  // namespace launchgap::recording
