// launchgap completion: what a shell needs to complete a command line.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/cli/command.h"
#include "harness/cli/described_command.h"
#include "harness/cli/mistakes.h"
#include "harness/core/say.h"

namespace launchgap::cli {
namespace {

std::vector<std::string> option_names(const DescribedCommand& command) {
  std::vector<std::string> names;
  for (const DescribedOption& option : command.options)
    names.insert(names.end(), option.names.begin(), option.names.end());
  return names;
}

std::vector<std::string> command_names(const DescribedCommand& command) {
  std::vector<std::string> names;
  for (const DescribedCommand& below : command.commands) names.push_back(below.path.back());
  return names;
}

/// Words that come where no option does: commands, or those of an argument.
std::vector<std::string> words_of(const DescribedCommand& command) {
  std::vector<std::string> words = command_names(command);
  for (const DescribedOption& argument : command.arguments)
    words.insert(words.end(), argument.values.begin(), argument.values.end());
  return words;
}

/// In single quotes of a shell, whose own are written as `quote`.
std::string quoted(std::string_view text, std::string_view quote) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string(quote) : std::string(1, c);
  return out + "'";
}

std::string for_bash(const DescribedCommand& root) {
  std::string enter, offer, values;
  for (const DescribedCommand* command : with_all_below(root)) {
    const std::string path = fmt::format("{}", fmt::join(command->path, " "));
    for (const std::string& name : command_names(*command))
      enter += fmt::format(
          "      '{}:{}') path='{}' ;;\n", path, name, path.empty() ? name : path + " " + name);
    offer += fmt::format("    '{}') options='{}' words='{}' ;;\n",
                         path,
                         fmt::join(option_names(*command), " "),
                         fmt::join(words_of(*command), " "));
    for (const DescribedOption& option : command->options) {
      if (option.value.empty()) continue;
      std::string patterns;
      for (const std::string& name : option.names)
        patterns += fmt::format("{}'{}:{}'", patterns.empty() ? "" : "|", path, name);
      values += fmt::format(
          "    {}) values='{}' takes_value=yes ;;\n", patterns, fmt::join(option.values, " "));
    }
  }
  return fmt::format(R"(# bash completion of launchgap; made by `launchgap completion bash`
_launchgap() {{
  local path= options= words= values= takes_value= i
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}}
  if [[ $current == '=' ]]; then current=
  elif [[ $previous == '=' ]]; then previous=${{COMP_WORDS[COMP_CWORD-2]}}; fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$path:${{COMP_WORDS[i]}}" in
{}    esac
  done
  case "$path:$previous" in
{}  esac
  COMPREPLY=()
  if [[ -n $takes_value ]]; then
    if [[ -n $values ]]; then COMPREPLY=($(compgen -W "$values" -- "$current"))
    else compopt -o default; fi
    return
  fi
  case "$path" in
{}  esac
  if [[ $current == -* ]]; then COMPREPLY=($(compgen -W "$options" -- "$current"))
  elif [[ -n $words ]]; then COMPREPLY=($(compgen -W "$words" -- "$current"))
  else compopt -o default; fi
}}
complete -F _launchgap launchgap
)",
                     enter,
                     values,
                     offer);
}

/// A description within the brackets of an option of zsh.
std::string in_brackets(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

/// What zsh offers for a value.
std::string zsh_action(const DescribedOption& option) {
  if (option.values.empty()) return ":value:_files";
  return fmt::format(":value:({})", fmt::join(option.values, " "));
}

std::string for_zsh(const DescribedCommand& root) {
  constexpr std::string_view kQuote = "'\\''";
  std::string functions;
  for (const DescribedCommand* command : with_all_below(root)) {
    std::string specs;
    for (const DescribedOption& option : command->options) {
      for (const std::string& name : option.names)
        specs += " \\\n    " + quoted(fmt::format("{}[{}]{}",
                                                  name,
                                                  in_brackets(option.description),
                                                  option.value.empty() ? "" : zsh_action(option)),
                                      kQuote);
    }
    functions += fmt::format("_{}() {{\n", command->name("_"));
    if (command->commands.empty()) {
      std::string rest = "_files";
      if (const auto words = words_of(*command); !words.empty())
        rest = fmt::format("({})", fmt::join(words, " "));
      functions += fmt::format("  _arguments{} \\\n    '*:argument:{}'\n}}\n", specs, rest);
      continue;
    }
    std::string list, cases;
    for (const DescribedCommand& below : command->commands) {
      list +=
          "\n    " +
          quoted(fmt::format("{}:{}", below.path.back(), in_brackets(below.description)), kQuote);
      cases += fmt::format("      {}) _{} ;;\n", below.path.back(), below.name("_"));
    }
    functions += fmt::format(R"(  local state line commands
  commands=({})
  _arguments -C{} \
    '1:command:->command' '*::argument:->argument'
  case $state in
    command) _describe command commands ;;
    argument) case $line[1] in
{}    esac ;;
  esac
}}
)",
                             list,
                             specs,
                             cases);
  }
  return "#compdef launchgap\n# made by `launchgap completion zsh`\n" + functions +
         R"(if [ "$funcstack[1]" = _launchgap ]; then _launchgap "$@"; else compdef _launchgap launchgap; fi
)";
}

std::string for_fish(const DescribedCommand& root) {
  constexpr std::string_view kQuote = "\\'";
  std::string text = "# fish completion of launchgap; made by `launchgap completion fish`\n";
  for (const DescribedCommand* command : with_all_below(root)) {
    std::string condition = "__fish_use_subcommand";
    if (!command->path.empty()) {
      condition.clear();
      for (const std::string& word : command->path)
        condition += fmt::format(
            "{}__fish_seen_subcommand_from {}", condition.empty() ? "" : "; and ", word);
    }
    const std::string begin = fmt::format("complete -c launchgap -n '{}'", condition);
    for (const DescribedCommand& below : command->commands)
      text += fmt::format(
          "{} -f -a {} -d {}\n", begin, below.path.back(), quoted(below.description, kQuote));
    for (const DescribedOption& argument : command->arguments) {
      if (!argument.values.empty())
        text += fmt::format("{} -f -a '{}'\n", begin, fmt::join(argument.values, " "));
    }
    for (const DescribedOption& option : command->options) {
      text += begin;
      for (const std::string& name : option.names)
        text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      if (!option.values.empty())
        text += fmt::format(" -x -a '{}'", fmt::join(option.values, " "));
      else if (!option.value.empty())
        text += " -r";
      text += fmt::format(" -d {}\n", quoted(option.description, kQuote));
    }
  }
  return text;
}

}  // namespace

void add_completion(CLI::App& app, Action& action) {
  CLI::App* const command =
      app.add_subcommand("completion", "Print what a shell needs to complete launchgap's words");
  const auto shell = std::make_shared<std::string>();
  one_of(command->add_option("shell", *shell, "Which shell")->required(), {"bash", "zsh", "fish"});
  command->footer(
      "Example: source <(launchgap completion bash)\n"
      "         launchgap completion fish > ~/.config/fish/completions/launchgap.fish");
  command->callback([shell, &app, &action] {
    action = [shell, &app] {
      const DescribedCommand root = described(app);
      answer_text(*shell == "bash"  ? for_bash(root)
                  : *shell == "zsh" ? for_zsh(root)
                                    : for_fish(root));
      return ExitCode::done;
    };
  });
}

}  // namespace launchgap::cli
