// Exit codes and exceptions. Every message says what was wrong and, where there is one, what would
// be right.
#pragma once

#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace launchgap {

/// What a command of launchgap ends with; rising with severity, never a count.
enum class ExitCode : int {
  done = 0,
  wrong_usage = 2,
  failed = 3,         // something failed, or is invalid or insufficient
  regression = 4,     // a confirmed one; `check` and `compare` only
  stopped_early = 5,  // what was measured is kept
  no_gpu = 77,        // a GPU was asked for and there is none
};

struct ExitCodeInfo {
  ExitCode code;
  std::string_view meaning;
  std::string_view when;
};
std::span<const ExitCodeInfo> exit_codes();

/// Anything that went wrong; ends a command with ExitCode::failed unless a subclass says otherwise.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  /// The message as fmt::format makes it: Error("there is no {} '{}'", what, name).
  template <class First, class... More>
  explicit Error(fmt::format_string<First, More...> format, First&& first, More&&... more)
      : runtime_error(
            fmt::format(format, std::forward<First>(first), std::forward<More>(more)...)) {}
  virtual ExitCode exit_code() const { return ExitCode::failed; }
};

/// The command line asks for something that does not exist or cannot be.
class UsageError : public Error {
 public:
  using Error::Error;
  ExitCode exit_code() const override { return ExitCode::wrong_usage; }
};

/// A GPU was asked for and there is none that can be used.
class NoGpuError : public Error {
 public:
  using Error::Error;
  ExitCode exit_code() const override { return ExitCode::no_gpu; }
};

/// A device or library cannot do what a case asks for; the case becomes `unsupported`, which is no
/// failure.
class Unsupported : public Error {
 public:
  using Error::Error;
};

/// A case needs more of something than there is just now, memory or disk; it becomes `skipped`.
class TooLarge : public Error {
 public:
  using Error::Error;
};

/// A computed result differs from what it must be; the case becomes `failed` and is not timed.
class WrongResult : public Error {
 public:
  using Error::Error;
};

/// A sample cannot be trusted (a gate timed out, say); the case becomes `invalid`.
class InvalidMeasurement : public Error {
 public:
  using Error::Error;
};

/// A call into a library failed.
class LibraryError : public Error {
 public:
  /// `call` as written in the source, `code` as the library returned it, `text` the library's own
  /// words for it. `sticky`: the process can make no further use of the device.
  LibraryError(std::string library,
               std::string call,
               int code,
               std::string text,
               bool sticky,
               const std::string& where = "");

  const std::string& library() const { return library_; }
  const std::string& call() const { return call_; }
  int code() const { return code_; }
  const std::string& text() const { return text_; }
  bool sticky() const { return sticky_; }

 private:
  std::string library_;
  std::string call_;
  int code_;
  std::string text_;
  bool sticky_;
};

/// A device or the host has not so much memory to give.
class OutOfMemory : public LibraryError {
 public:
  using LibraryError::LibraryError;
};

/// "what: No such file or directory", from errno.
std::string with_errno(const std::string& what);

/// A file could not be written: the disk, or who may write there, is at fault, and not what was to
/// be kept.
class WriteError : public Error {
 public:
  /// "FILE cannot be written: No space left on device", from errno.
  explicit WriteError(const std::filesystem::path& file);
  /// One that a worker told of, in its words.
  explicit WriteError(const std::string& message) : Error(message) {}
};

}  // namespace launchgap
