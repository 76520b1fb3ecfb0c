#include "harness/core/terminal.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>
#include <sys/ioctl.h>
#include <unistd.h>

namespace launchgap {

std::optional<std::size_t> terminal_columns() {
  constexpr std::size_t kMost = 10'000;
  if (const char* const said = std::getenv("COLUMNS")) {
    const std::string_view text = said;
    std::size_t columns = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), columns);
    if (failed == std::errc() && end == text.data() + text.size() && columns > 0 &&
        columns <= kMost)
      return columns;
  }
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return std::nullopt;
  return size.ws_col;
}

std::size_t text_columns() {
  constexpr std::size_t kLeast = 40, kMost = 100;
  return std::clamp(terminal_columns().value_or(kMost), kLeast, kMost);
}

}  // namespace launchgap
