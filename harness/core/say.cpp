#include "harness/core/say.h"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <string>
#include <unistd.h>

#include "harness/core/printable.h"

namespace launchgap {
namespace {

int first_loss = 0;
bool beside_document = false;

void note(bool written) noexcept {
  if (!written && first_loss == 0) first_loss = errno;
}

}  // namespace

void keep_standard_descriptors() noexcept {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // Opened for the other direction, it cannot be used, as if it were closed.
    if (fcntl(descriptor, F_GETFD) < 0 && errno == EBADF)
      open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

void say_line(std::string_view text) noexcept {
  try {
    say_raw(printable_lines(text) + "\n");
  } catch (...) {
    say_raw("a message is missing: there is no memory left for it\n");
  }
}

void say_raw(std::string_view text) noexcept {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::clearerr(stderr);
}

void answer_beside_document() noexcept {
  beside_document = true;
}

void answer_document(std::string_view text) noexcept {
  note(std::fwrite(text.data(), 1, text.size(), stdout) == text.size());
}

void answer_text(std::string_view text, bool colour) noexcept {
  try {
    if (beside_document) return say_raw(printable_lines(text));
    const std::string fit = printable_lines(text, colour);
    note(std::fwrite(fit.data(), 1, fit.size(), stdout) == fit.size());
  } catch (...) {
    errno = ENOMEM;
    note(false);
  }
}

int lost_answer() noexcept {
  note(std::fflush(stdout) == 0);
  return first_loss == EPIPE ? 0 : first_loss;
}

}  // namespace launchgap
