// launchgap man: the manual page, in the language of man(7).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/cli/command.h"
#include "harness/cli/described_command.h"
#include "harness/core/build_info.h"
#include "harness/core/environment_variables.h"
#include "harness/core/say.h"

namespace launchgap::cli {
namespace {

/// Text of a line, which roff leaves as it is.
std::string plain(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else if (c == '\n') {
      out += "\n.br\n";
    } else {
      if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) out += "\\&";
      out += c;
    }
  }
  return out;
}

/// "-o, --output FILE", a heading, and what it is.
std::string entry(const DescribedOption& option) {
  std::string names;
  for (const std::string& name : option.names)
    names += fmt::format("{}\\fB{}\\fR", names.empty() ? "" : ", ", plain(name));
  if (!option.value.empty()) names += fmt::format(" \\fI{}\\fR", plain(option.value));
  return fmt::format(".TP\n{}\n{}\n", names, plain(option.description));
}

std::string examples(const DescribedCommand& command) {
  return command.footer.empty() ? "" : fmt::format(".PP\n{}\n", plain(command.footer));
}

std::string man_page(const DescribedCommand& root) {
  std::string text = fmt::format(
      ".\\\" made by `launchgap man`\n.TH LAUNCHGAP 1 \"\" \"launchgap {}\"\n.SH NAME\nlaunchgap "
      "\\- "
      "measure what a GPU does with launches, products, convolutions and memory\n.SH SYNOPSIS\n",
      kVersion);
  for (const DescribedCommand& command : root.commands)
    text +=
        fmt::format("\\fBlaunchgap {}\\fR [\\fIoptions\\fR]\n.br\n", plain(command.path.back()));
  text += fmt::format(".SH DESCRIPTION\n{}\n", plain(root.description));
  text += ".SH OPTIONS\n";
  for (const DescribedOption& option : root.options) text += entry(option);
  text += ".SH COMMANDS\n";
  for (const DescribedCommand* command : with_all_below(root)) {
    if (command->path.empty()) continue;
    text += fmt::format(".SS {}\n{}.\n",
                        plain(fmt::format("{}", fmt::join(command->path, " "))),
                        plain(command->description));
    for (const DescribedOption& argument : command->arguments) text += entry(argument);
    for (const DescribedOption& option : command->options) text += entry(option);
    text += examples(*command);
  }
  text += ".SH EXIT STATUS\n";
  for (const ExitCodeInfo& code : exit_codes())
    text += fmt::format(
        ".TP\n{}\n{}: {}\n", static_cast<int>(code.code), plain(code.meaning), plain(code.when));
  text += ".SH ENVIRONMENT\n";
  for (const EnvironmentVariable& variable : environment_variables()) {
    if (variable.use == VariableUse::library || variable.use == VariableUse::setting ||
        variable.use == VariableUse::search)
      text += fmt::format(".TP\n\\fB{}\\fR\n{}\n", plain(variable.name), plain(variable.meaning));
  }
  return text;
}

}  // namespace

void add_man(CLI::App& app, Action& action) {
  CLI::App* const command = app.add_subcommand("man", "Print the manual page");
  command->footer("Example: launchgap man | man -l -");
  command->callback([&app, &action] {
    action = [&app] {
      answer_text(man_page(described(app)));
      return ExitCode::done;
    };
  });
}

}  // namespace launchgap::cli
