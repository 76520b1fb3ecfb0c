#include "harness/import/compressed_output.h"

#include <new>
#include <zlib.h>

namespace launchgap::recording {

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
