#include "harness/cli/help.h"

#include <algorithm>

#include <fmt/format.h>

#include "harness/core/text.h"

namespace launchgap::cli {
namespace {

constexpr std::size_t kIndent = 2;

/// What is explained on the left, the explanation beside it, or below where there is little room.
std::string entry(const std::string& name, const std::string& explanation) {
  constexpr std::size_t kColumn = 28, kNarrow = 80, kBelow = 6;
  const std::string head = std::string(kIndent, ' ') + name;
  if (explanation.empty()) return head + "\n";
  if (text_columns() < kNarrow)
    return fmt::format("{}\n{}{}\n", head, std::string(kBelow, ' '), wrapped(explanation, kBelow));
  const std::string between = head.size() + kIndent <= kColumn
                                  ? std::string(kColumn - head.size(), ' ')
                                  : "\n" + std::string(kColumn, ' ');
  return head + between + wrapped(explanation, kColumn) + "\n";
}

/// Each line by itself, what does not fit indented.
std::string lines_wrapped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    const std::size_t first = std::min(line.find_first_not_of(' '), line.size());
    out += std::string(line.substr(0, first)) + wrapped(line.substr(first), first) + "\n";
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

}  // namespace

std::string HelpText::make_description(const CLI::App* app) const {
  return lines_wrapped(app->get_description());
}

std::string HelpText::make_usage(const CLI::App* app, std::string name) const {
  std::string usage = CLI::Formatter::make_usage(app, std::move(name));
  while (usage.ends_with('\n')) usage.pop_back();
  return lines_wrapped(usage);
}

std::string HelpText::make_option(const CLI::Option* option, bool is_positional) const {
  return entry(make_option_name(option, is_positional) + make_option_opts(option),
               make_option_desc(option));
}

std::string HelpText::make_subcommand(const CLI::App* command) const {
  return entry(command->get_name(), command->get_description());
}

std::string HelpText::make_footer(const CLI::App* app) const {
  return lines_wrapped(app->get_footer());
}

}  // namespace launchgap::cli
