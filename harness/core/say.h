// What launchgap says. A terminal that is gone, a full disk behind a redirection or a closed
// descriptor never ends what is going on: nothing here throws. What is shown is printable.
#pragma once

#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace launchgap {

/// First of all in main: takes the numbers of standard input, output and error where the caller
/// closed them, so that no file that is opened later becomes one of them. Writing to them fails as
/// before.
void keep_standard_descriptors() noexcept;

/// A line, or several, on standard error. Where that cannot be written to, nobody hears it.
void say_line(std::string_view text) noexcept;
/// As it is, without a line's end: for launchgap's own sequences.
void say_raw(std::string_view text) noexcept;

template <class... Args>
void say(fmt::format_string<Args...> format, Args&&... args) noexcept {
  try {
    say_line(fmt::format(format, std::forward<Args>(args)...));
  } catch (...) {
    say_line("a message is missing: there is no memory left for it");
  }
}

/// What a command was asked for, on standard output. `colour`: the sequences that colour it stay.
void answer_text(std::string_view text, bool colour = false) noexcept;

template <class... Args>
void answer(fmt::format_string<Args...> format, Args&&... args) {
  answer_text(fmt::format(format, std::forward<Args>(args)...));
}

/// Standard output is for one document from now on: what is answered goes to standard error.
void answer_beside_document() noexcept;
/// The document, a JSON of ASCII alone, on standard output.
void answer_document(std::string_view text) noexcept;

/// Writes out what is left; 0, or the error (an errno) by which some of the answer was lost. A
/// reader that has seen enough, such as `head`, is no loss.
int lost_answer() noexcept;

}  // namespace launchgap
