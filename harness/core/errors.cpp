#include "harness/core/errors.h"

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

namespace launchgap {

LibraryError::LibraryError(std::string library,
                           std::string call,
                           int code,
                           std::string text,
                           bool sticky,
                           const std::string& where)
    : Error(fmt::format("{}: {} failed with {} ({}){}{}",
                        library,
                        call,
                        text.empty() ? "an unknown error" : text,
                        code,
                        where.empty() ? "" : " at ",
                        where)),
      library_(std::move(library)),
      call_(std::move(call)),
      code_(code),
      text_(std::move(text)),
      sticky_(sticky) {}

std::string with_errno(const std::string& what) {
  return what + ": " + std::strerror(errno);
}

WriteError::WriteError(const std::filesystem::path& file)
    : Error(with_errno(fmt::format("{} cannot be written", file.string()))) {}

}  // namespace launchgap
