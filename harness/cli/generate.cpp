// launchgap generate
#include <limits>
#include <memory>

#include <fmt/format.h>

#include "harness/allocation/gmtrace.h"
#include "harness/allocation/patterns.h"
#include "harness/cli/command.h"
#include "harness/cli/mistakes.h"
#include "harness/core/say.h"
#include "harness/core/stop.h"

namespace launchgap::cli {
namespace {

/// All patterns with their parameters, for --help.
std::string patterns_text() {
  std::string text = "Patterns, with what can be chosen and its usual value:\n";
  for (const allocation::PatternInfo& pattern : allocation::patterns()) {
    text += fmt::format("  {}: {}\n", pattern.name, pattern.about);
    for (const allocation::PatternParameter& parameter : pattern.parameters)
      text += fmt::format("      {}:{}  {}\n", parameter.name, parameter.usual, parameter.about);
  }
  return text;
}

}  // namespace

void add_generate(CLI::App& app, Action& action) {
  struct Options {
    std::string pattern, output;
    std::uint64_t seed = 1;
  };
  CLI::App* const command =
      app.add_subcommand("generate", "Make a trace of allocations for `launchgap replay`");
  auto options = std::make_shared<Options>();
  command->add_option("pattern", options->pattern, "checkerboard/blocks:512, for one")->required();
  command->add_option("-o,--output", options->output, "File to write, *.gmtrace.csv or *.gz")
      ->required();
  command->add_option("--seed", options->seed, "Of what is random")
      ->check(whole_number(0, std::numeric_limits<std::uint64_t>::max()))
      ->capture_default_str();
  command->footer([] {
    return patterns_text() +
           "\nExample: launchgap generate checkerboard/blocks:512 -o board.gmtrace.csv";
  });
  command->callback([options, &action] {
    action = [options] {
      const SignalWatch watch;
      const auto trace = allocation::make_pattern(CaseName::parse(options->pattern), options->seed);
      const std::uint64_t events = allocation::write_gmtrace(*trace, options->output);
      say("{} events", events);
      answer("{}\n", options->output);
      return ExitCode::done;
    };
  });
}

}  // namespace launchgap::cli
