// Text from files, environments and command lines, made fit to be shown.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace launchgap::doctor {

/// `text` on one line of valid UTF-8: control characters, bytes that are no UTF-8 and characters
/// that change how others are shown (directions of writing) become "\n", "\x1b" or "\u202e", as
/// in C. A backslash stays as it is. What is longer than `limit` bytes is cut and ends with "…".
std::string printable(std::string_view text, std::size_t limit = 400);

}  // namespace launchgap::doctor
