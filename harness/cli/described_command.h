// The command line as data: its commands with their options and values, for completion and the man
// page.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace launchgap::cli {

struct DescribedOption {
  std::vector<std::string> names;   // "-o", "--output"; of a positional argument none
  std::string value;                // "FILE"; empty: it takes none
  std::vector<std::string> values;  // the words that it may be; empty: any
  std::string description;
};

struct DescribedCommand {
  std::vector<std::string> path;  // "history", "add"; of launchgap itself empty
  std::string description, footer;
  std::vector<DescribedOption> options, arguments;
  std::vector<DescribedCommand> commands;

  /// "launchgap history add", joined by `between`.
  std::string name(const std::string& between = " ") const;
};

DescribedCommand described(const CLI::App& app);

/// All of them, each before those that are below it.
std::vector<const DescribedCommand*> with_all_below(const DescribedCommand& command);

/// What an option may be: help, completion and man page show it. Whoever uses the value checks it.
CLI::Option* show_values(CLI::Option* option, const std::vector<std::string>& words);

}  // namespace launchgap::cli
