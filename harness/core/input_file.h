// A file to be read: a regular one. A pipe or a device in its place would keep a reader waiting for
// ever, or give it more than any memory holds.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace launchgap {

class InputFile {
 public:
  /// Throws Error that names the file and says what to do: it is not there, may not be read, or is
  /// no file.
  explicit InputFile(const std::filesystem::path& path);
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  ~InputFile();

  /// The next line, without its end; nothing at the end of the file. A last line without '\n' is
  /// `torn`. It stays as it is until the next call. Throws Error for a line longer than `longest`
  /// bytes, and if the file cannot be read.
  bool next_line(std::string_view& line, bool& torn, std::size_t longest);

  /// All of the file. Throws Error if it is longer than `longest` bytes.
  std::string text(std::size_t longest);

 private:
  bool read_more();

  std::filesystem::path path_;
  int descriptor_;
  std::string buffer_;
  std::size_t begin_ = 0;  // of what was not handed out yet
};

/// Throws Error, which names the file and the line, for text that is not UTF-8.
void check_utf8(std::string_view text, const std::string& name);

}  // namespace launchgap
