// What `--help` shows.
#pragma once

#include <CLI/CLI.hpp>

namespace launchgap::cli {

/// CLI11's help, broken into lines that the terminal has room for.
class HelpText : public CLI::Formatter {
 public:
  std::string make_description(const CLI::App* app) const override;
  std::string make_usage(const CLI::App* app, std::string name) const override;
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_subcommand(const CLI::App* command) const override;
  std::string make_footer(const CLI::App* app) const override;
};

}  // namespace launchgap::cli
