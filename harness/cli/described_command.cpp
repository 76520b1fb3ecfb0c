#include "harness/cli/described_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace launchgap::cli {
namespace {

/// The words of "{auto|on|off}"; none of another text.
std::vector<std::string> words_in(std::string_view text) {
  if (!text.starts_with('{') || !text.ends_with('}')) return {};
  return CLI::detail::split(std::string(text.substr(1, text.size() - 2)), '|');
}

DescribedOption described(const CLI::Option& option) {
  DescribedOption one;
  for (const std::string& name : option.get_snames()) one.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) one.names.push_back("--" + name);
  if (option.get_items_expected_max() > 0) one.value = option.get_type_name();
  one.values = words_in(one.value);
  one.description = option.get_description();
  return one;
}

void add_described(const CLI::App& app, DescribedCommand& command) {
  command.description = app.get_description();
  command.footer = app.get_footer();
  for (const CLI::Option* option : app.get_options()) {
    DescribedOption one = described(*option);
    if (one.names.empty()) {
      one.names.push_back(option->get_name(true));
      command.arguments.push_back(std::move(one));
    } else {
      command.options.push_back(std::move(one));
    }
  }
  for (const CLI::App* below : app.get_subcommands([](const CLI::App*) { return true; })) {
    DescribedCommand& one = command.commands.emplace_back();
    one.path = command.path;
    one.path.push_back(below->get_name());
    add_described(*below, one);
  }
}

void add_with_all_below(const DescribedCommand& command,
                        std::vector<const DescribedCommand*>& all) {
  all.push_back(&command);
  for (const DescribedCommand& below : command.commands) add_with_all_below(below, all);
}

}  // namespace

std::string DescribedCommand::name(const std::string& between) const {
  std::string text = "launchgap";
  for (const std::string& word : path) text += between + word;
  return text;
}

DescribedCommand described(const CLI::App& app) {
  DescribedCommand root;
  add_described(app, root);
  return root;
}

std::vector<const DescribedCommand*> with_all_below(const DescribedCommand& command) {
  std::vector<const DescribedCommand*> all;
  add_with_all_below(command, all);
  return all;
}

CLI::Option* show_values(CLI::Option* option, const std::vector<std::string>& words) {
  return option->type_name(fmt::format("{{{}}}", fmt::join(words, "|")));
}

}  // namespace launchgap::cli
