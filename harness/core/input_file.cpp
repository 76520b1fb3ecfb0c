#include "harness/core/input_file.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/core/printable.h"

namespace launchgap {
namespace {

const char* kind_of(mode_t mode) {
  return S_ISDIR(mode)    ? "a folder"
         : S_ISFIFO(mode) ? "a pipe"
         : S_ISSOCK(mode) ? "a socket"
                          : "a device";
}

}  // namespace

InputFile::InputFile(const std::filesystem::path& path)
    : path_(path), descriptor_(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY)) {
  if (descriptor_ < 0) throw Error(with_errno(fmt::format("{} cannot be read", path_.string())));
  struct stat status {};
  if (fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode)) return;
  close(descriptor_);
  throw Error(
      "{} cannot be read: it is {} and not a file: put the file in its place, "
      "or take it away",
      path_.string(),
      kind_of(status.st_mode));
}

InputFile::~InputFile() {
  close(descriptor_);
}

bool InputFile::next_line(std::string_view& line, bool& torn, std::size_t longest) {
  std::size_t searched = begin_;
  for (;;) {
    const std::size_t end = buffer_.find('\n', searched);
    if (end != std::string::npos || buffer_.size() - begin_ > longest) {
      if (std::min(end, buffer_.size()) - begin_ > longest)
        throw Error("it is longer than {} bytes", longest);
      line = std::string_view(buffer_).substr(begin_, end - begin_);
      begin_ = end + 1;
      torn = false;
      return true;
    }
    searched = buffer_.size() - begin_;
    buffer_.erase(0, begin_);
    begin_ = 0;
    if (!read_more()) break;
  }
  line = buffer_;
  torn = true;
  begin_ = buffer_.size();
  return !line.empty();
}

std::string InputFile::text(std::size_t longest) {
  while (read_more()) {
    if (buffer_.size() > longest)
      throw Error("{} cannot be read: it is longer than {} bytes", path_.string(), longest);
  }
  return std::move(buffer_);
}

bool InputFile::read_more() {
  constexpr std::size_t kChunk = 1 << 18;
  const std::size_t before = buffer_.size();
  buffer_.resize(before + kChunk);
  ssize_t n = 0;
  do {
    n = read(descriptor_, buffer_.data() + before, kChunk);
  } while (n < 0 && errno == EINTR);
  buffer_.resize(before + static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  if (n < 0) throw Error(with_errno(fmt::format("{} cannot be read", path_.string())));
  return n > 0;
}

void check_utf8(std::string_view text, const std::string& name) {
  const std::size_t valid = valid_utf8(text);
  if (valid == text.size()) return;
  const auto lines = std::ranges::count(text.substr(0, valid), '\n');
  throw Error("{}, line {}: not UTF-8; save it as UTF-8", name, lines + 1);
}

}  // namespace launchgap
