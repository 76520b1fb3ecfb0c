// JSON that comes in pieces, out of its compression, for RapidJSON's reader.
#pragma once

#include <cstdlib>
#include <new>
#include <vector>

#include "harness/core/errors.h"
#include "harness/import/compressed_text.h"

namespace launchgap::recording {

/// What RapidJSON reads from.
class TextStream {
 public:
  using Ch = char;
  explicit TextStream(CompressedText& text) : text_(text), buffer_(1 << 18) { fill(); }

  Ch Peek() const { return *at_; }
  Ch Take() {
    const Ch c = *at_;
    if (c == '\n') {
      ++line_;
      line_begin_ = Tell() + 1;
    }
    if (at_ + 1 < end_) {
      ++at_;
    } else {
      fill();
    }
    return c;
  }
  /// Where the next byte is, from 1.
  std::size_t line() const { return line_; }
  std::size_t column() const { return Tell() - line_begin_ + 1; }
  std::size_t Tell() const { return before_ + static_cast<std::size_t>(at_ - buffer_.data()); }

  // Of a stream that is written to.
  Ch* PutBegin() { return nullptr; }
  void Put(Ch) {}
  void Flush() {}
  std::size_t PutEnd(Ch*) { return 0; }

 private:
  void fill() {
    before_ += static_cast<std::size_t>(end_ - buffer_.data());
    const std::size_t got = text_.read(buffer_.data(), buffer_.size());
    if (got == 0) buffer_[0] = '\0';  // RapidJSON's end of text
    at_ = buffer_.data();
    end_ = at_ + got;
  }

  CompressedText& text_;
  std::vector<char> buffer_;
  const char* at_ = nullptr;
  const char* end_ = buffer_.data();
  std::size_t before_ = 0, line_ = 1, line_begin_ = 0;
};

/// Memory for the reader's own stack, which holds one string and how deep it is.
class LimitedAllocator {
 public:
  [[maybe_unused]] static const bool kNeedFree = true;
  static void* Malloc(std::size_t size) { return Realloc(nullptr, 0, size); }
  static void* Realloc(void* old, std::size_t, std::size_t size) {
    constexpr std::size_t kMost = std::size_t{64} << 20;
    if (size == 0) {
      std::free(old);
      return nullptr;
    }
    if (size > kMost) throw Error("it has a text of more than {} MiB", kMost >> 21);
    void* const memory = std::realloc(old, size);
    if (!memory) throw std::bad_alloc();
    return memory;
  }
  static void Free(void* memory) { std::free(memory); }
};

}  // namespace launchgap::recording
