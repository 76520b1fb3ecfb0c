#include "harness/import/compressed_text.h"

#include <algorithm>
#include <fcntl.h>
#include <new>
#include <string_view>
#include <unistd.h>
#include <zlib.h>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/core/input_file.h"
#include "harness/core/stop.h"
#include "harness/core/text.h"

namespace launchgap::recording {
namespace {

/// The length of what some editors begin a text with.
std::size_t byte_order_mark(std::string_view begin) {
  constexpr std::string_view kUtf8 = "\xEF\xBB\xBF", kUtf16[] = {"\xFF\xFE", "\xFE\xFF"};
  for (const std::string_view mark : kUtf16) {
    if (begin.starts_with(mark)) throw Error("it is text in UTF-16: save it as UTF-8");
  }
  return begin.starts_with(kUtf8) ? kUtf8.size() : 0;
}

}  // namespace

CompressedText::CompressedText(const std::filesystem::path& file) {
  const InputFile checked(file);  // a regular file that can be read
  const int descriptor = open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
  if (descriptor < 0) throw Error(with_errno(fmt::format("{} cannot be read", file.string())));
  file_ = gzdopen(descriptor, "rb");
  if (!file_) {
    close(descriptor);
    throw Error("{} cannot be read: there is no memory left", file.string());
  }
  std::error_code unknown;
  packed_ = std::filesystem::file_size(file, unknown);
  gzbuffer(file_, 1 << 18);
}

CompressedText::~CompressedText() {
  gzclose_r(file_);
}

std::size_t CompressedText::read(char* to, std::size_t size) {
  constexpr std::size_t kAtOnce = 1 << 20;
  stop_if_asked();
  int got = gzread(file_, to, static_cast<unsigned>(std::min(size, kAtOnce)));
  int code = Z_OK;
  const char* const text = gzerror(file_, &code);
  if (got < 0 || (got == 0 && code == Z_BUF_ERROR)) {
    if (code == Z_ERRNO) throw Error(with_errno("it cannot be read"));
    throw Error("its compression ends too early or is damaged ({}): copy the file once more", text);
  }
  if (total_ == 0 && got > 0) {
    total_ = static_cast<std::uint64_t>(got);
    const std::size_t mark = byte_order_mark({to, static_cast<std::size_t>(got)});
    if (mark > 0 && static_cast<std::size_t>(got) == mark) return read(to, size);
    std::copy(to + mark, to + got, to);
    got -= static_cast<int>(mark);
  } else {
    total_ += static_cast<std::uint64_t>(got);
  }
  if (total_ > most_)
    throw Error(
        times_ > 0
            ? fmt::format("it unpacks to more than {} times its size (at byte {}), as no recording "
                          "does",
                          times_,
                          total_)
            : fmt::format("it has more than {} of text: record a shorter time",
                          bytes_text(static_cast<double>(most_))));
  return static_cast<std::size_t>(got);
}

void CompressedText::limit_unpacking(std::uint64_t times) {
  constexpr std::uint64_t kSmall = std::uint64_t{64} << 20;
  if (!is_compressed()) return;
  times_ = times;
  most_ = std::min(most_, kSmall + times * packed_);
}

bool CompressedText::is_compressed() const {
  return gzdirect(file_) == 0;
}

struct CompressedOutput::Deflate {
  Deflate() {
    if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
      throw std::bad_alloc();
  }
  ~Deflate() { deflateEnd(&stream); }
  Deflate(const Deflate&) = delete;
  Deflate& operator=(const Deflate&) = delete;

  z_stream stream{};
};

std::string beginning_of(const std::filesystem::path& file, std::size_t most) {
  std::string text(most, '\0');
  CompressedText reader(file);
  std::size_t got = 0;
  while (got < text.size()) {
    const std::size_t more = reader.read(text.data() + got, text.size() - got);
    if (more == 0) break;
    got += more;
  }
  text.resize(got);
  return text;
}

CompressedOutput::CompressedOutput(const std::filesystem::path& path) : file_(path) {
  if (path.extension() == ".gz") deflate_ = std::make_unique<Deflate>();
}

CompressedOutput::~CompressedOutput() = default;

void CompressedOutput::flush_if_long() {
  constexpr std::size_t kLong = std::size_t{1} << 20;
  if (buffer_.size() > kLong) flush(false);
}

void CompressedOutput::commit() {
  flush(true);
  file_.commit();
}

void CompressedOutput::flush(bool finish) {
  if (!deflate_) {
    file_.write(buffer_);
    buffer_.clear();
    return;
  }
  z_stream& stream = deflate_->stream;
  stream.next_in = reinterpret_cast<Bytef*>(buffer_.data());
  stream.avail_in = static_cast<uInt>(buffer_.size());
  char out[1 << 16];
  do {
    stream.next_out = reinterpret_cast<Bytef*>(out);
    stream.avail_out = sizeof out;
    deflate(&stream, finish ? Z_FINISH : Z_NO_FLUSH);
    file_.write({out, sizeof out - stream.avail_out});
  } while (stream.avail_out == 0);
  buffer_.clear();
}

}  // namespace launchgap::recording
