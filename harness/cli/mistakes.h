// What a command line got wrong, in words that say what would be right. One place for all commands.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

namespace launchgap::cli {

/// What `error` means, on one line: the words that were not understood in the order in which they
/// were typed, and the nearest option or command.
std::string mistake_text(const CLI::App& app, const CLI::ParseError& error);

/// What there is instead of a command that there is not.
std::string no_command_text(const CLI::App& app, const std::string& asked);

/// Takes one of these words, which help and completion show; else an error with all of them and the
/// nearest.
CLI::Option* one_of(CLI::Option* option, const std::vector<std::string>& words);

/// Throws UsageError as one_of() says it.
void check_word(const std::string& word, const std::vector<std::string>& words);

/// A whole number within these, or an error that says so; CLI11's own check takes any text.
CLI::Validator whole_number(std::uint64_t least, std::uint64_t most);

/// A number within these, and neither NaN nor infinite.
CLI::Validator number_between(double least, double most);

// --- Another program's words, behind the first `--`, which are none of launchgap's ---

inline constexpr std::string_view kProgramMark = "--";

/// Of the commands that start a program, for CLI11, which would make two words of "[1,2]", and
/// options of `-c` behind `--json --`: one word stands for all that are behind the mark.
std::vector<std::string> own_words(std::vector<std::string> words);

/// Those behind the mark, as they were typed; none without a mark.
std::vector<std::string> programs_words(const std::vector<std::string>& command_line);

}  // namespace launchgap::cli
