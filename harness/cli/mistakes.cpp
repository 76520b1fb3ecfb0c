#include "harness/cli/mistakes.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>

#include <fmt/format.h>

#include "harness/cli/described_command.h"
#include "harness/core/errors.h"
#include "harness/core/number_text.h"
#include "harness/core/printable.h"
#include "harness/core/text.h"

namespace launchgap::cli {
namespace {

constexpr std::size_t kLongestWord = 60;

/// The command that was named, as deep as it was.
const CLI::App& innermost(const CLI::App& app) {
  const CLI::App* one = &app;
  while (!one->get_subcommands().empty()) one = one->get_subcommands().front();
  return *one;
}

/// "launchgap history prune".
std::string words_of(const CLI::App& command) {
  const CLI::App* const parent = command.get_parent();
  return (parent ? words_of(*parent) + " " : "") + command.get_name();
}

std::vector<std::string> options_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::vector<std::string> commands_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* one : command.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(one->get_name());
  return names;
}

/// What was typed and is not expected. An option that there is not explains what follows it.
std::string not_expected(const CLI::App& command) {
  const std::vector<std::string> left = command.remaining();
  const auto option = std::ranges::find_if(
      left, [](const std::string& word) { return word.size() > 1 && word.front() == '-'; });
  if (option == left.end()) {
    if (left.empty()) return "something is not expected";
    const std::string near = did_you_mean(left.front(), commands_of(command));
    return fmt::format("'{}' is not expected{}", printable(left.front(), kLongestWord), near);
  }
  const std::string name = option->substr(0, option->find('='));
  return fmt::format("there is no option '{}'{}",
                     printable(name, kLongestWord),
                     did_you_mean(name, options_of(command)));
}

/// Empty if it is one of them.
std::string not_one_of(const std::string& word, const std::vector<std::string>& words) {
  if (std::ranges::find(words, word) != words.end()) return "";
  const std::string near = did_you_mean(word, words);
  return fmt::format("there is no '{}'{}",
                     printable(word, kLongestWord),
                     near.empty() ? ": choose " + list_text(words, "or") : near);
}

/// A sentence that ends as one, before the next.
std::string ended(const std::string& text) {
  return text.ends_with('?') || text.ends_with('.') ? text : text + ".";
}

/// CLI11's own words, where they name the thing; else ours.
std::string plain_text(const CLI::App& command, const CLI::ParseError& error) {
  std::string text = error.what();
  if (dynamic_cast<const CLI::ExtrasError*>(&error)) return not_expected(command);
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) && text.ends_with(" missing"))
    return text.substr(0, text.find(':')) + " needs a value";
  const std::vector<std::string> further = commands_of(command);
  if (dynamic_cast<const CLI::RequiredError*>(&error) && !further.empty()) {
    const std::vector<std::string> left = command.remaining();
    if (left.empty())
      return fmt::format("{} needs one of {}", command.get_name(), list_text(further, "or"));
    return fmt::format("{} has no command '{}'{}",
                       command.get_name(),
                       printable(left.front(), kLongestWord),
                       did_you_mean(left.front(), further));
  }
  return text;
}

}  // namespace

std::string mistake_text(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& command = innermost(app);
  return fmt::format("{} `{} --help` shows what can be asked for.",
                     ended(plain_text(command, error)),
                     words_of(command));
}

std::string no_command_text(const CLI::App& app, const std::string& asked) {
  return fmt::format("{} `launchgap --help` shows the commands.",
                     ended(fmt::format("there is no command '{}'{}",
                                       printable(asked, kLongestWord),
                                       did_you_mean(asked, commands_of(app)))));
}

CLI::Option* one_of(CLI::Option* option, const std::vector<std::string>& words) {
  return show_values(option, words)
      ->check({[words](const std::string& text) { return not_one_of(text, words); }, ""});
}

void check_word(const std::string& word, const std::vector<std::string>& words) {
  if (const std::string problem = not_one_of(word, words); !problem.empty())
    throw UsageError(problem);
}

CLI::Validator whole_number(std::uint64_t least, std::uint64_t most) {
  return {
      [=](const std::string& text) {
        const auto value = number_of_text<std::uint64_t>(text);
        if (value && *value >= least && *value <= most) return std::string();
        return fmt::format(
            "'{}' is no whole number from {} to {}", printable(text, kLongestWord), least, most);
      },
      ""};
}

CLI::Validator number_between(double least, double most) {
  return {[=](const std::string& text) {
            char* rest = nullptr;
            const double value = std::strtod(text.c_str(), &rest);
            if (!text.empty() && *rest == '\0' && std::isfinite(value) && value >= least &&
                value <= most)
              return std::string();
            return fmt::format(
                "'{}' is no number from {} to {}", printable(text, kLongestWord), least, most);
          },
          ""};
}

std::vector<std::string> own_words(std::vector<std::string> words) {
  constexpr std::string_view kStartPrograms[] = {"doctor", "record"};
  if (words.empty() || std::ranges::find(kStartPrograms, words.front()) == std::end(kStartPrograms))
    return words;
  const auto mark = std::ranges::find(words, kProgramMark);
  if (words.end() - mark > 2) words.erase(mark + 2, words.end());
  if (words.size() > 1 && words[words.size() - 2] == kProgramMark) words.back() = "program";
  return words;
}

std::vector<std::string> programs_words(const std::vector<std::string>& command_line) {
  const auto mark = std::ranges::find(command_line, kProgramMark);
  return {mark == command_line.end() ? mark : std::next(mark), command_line.end()};
}

}  // namespace launchgap::cli
