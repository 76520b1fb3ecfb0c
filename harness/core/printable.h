// Text from files, environments, libraries and command lines, made fit to be shown on a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace launchgap {

/// `text` on one line of valid UTF-8: control characters, bytes that are no UTF-8 and characters
/// that change how others are shown (directions of writing) become "\n", "\x1b" or "\u202e", as
/// in C. A backslash stays as it is. What is longer than `limit` bytes is cut and ends with "…".
std::string printable(std::string_view text, std::size_t limit = 400);

/// How many bytes of `text` are valid UTF-8, from its start on: all of them, or up to the first
/// that is not.
std::size_t valid_utf8(std::string_view text);

/// `printable` for text of several lines, whole; with `colour` the sequences that colour it stay.
std::string printable_lines(std::string_view text, bool colour = false);

/// `text` as a part of a file's name: what is not a letter, a digit or one of `._+=-` becomes `_`,
/// and so does a dot in front.
std::string file_name_part(std::string_view text);

}  // namespace launchgap
