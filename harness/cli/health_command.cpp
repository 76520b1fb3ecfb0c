// launchgap health
#include <memory>

#include "harness/cli/command.h"
#include "harness/cli/mistakes.h"
#include "harness/core/say.h"
#include "harness/core/stop.h"
#include "harness/fleet/health.h"

namespace launchgap::cli {
namespace {

/// Whoever reads the line and the code gets both, whatever happens.
ExitCode check_health(const fleet::HealthOptions& options) {
  fleet::HealthAnswer said;
  const SignalWatch watch;
  try {
    said = fleet::judge(fleet::examine_node(options));
    if (stop_signal != 0)
      said = {fleet::HealthState::unknown, "launchgap UNKNOWN: it was stopped by a signal"};
  } catch (const std::exception& error) {
    said = {fleet::HealthState::unknown, fmt::format("launchgap UNKNOWN: {}", error.what())};
  }
  answer("{}\n", said.line);
  return static_cast<ExitCode>(said.state);
}

}  // namespace

void add_health(CLI::App& app, Action& action) {
  struct Options {
    fleet::HealthOptions health;
    std::string history;
  };
  CLI::App* const command =
      app.add_subcommand("health", "Whether the GPUs of this node may be given work, in one line");
  auto options = std::make_shared<Options>();
  command->add_option("--history",
                      options->history,
                      "File with the nights: each GPU is held to its best one; else to what is "
                      "published of its model, and to the others of its kind here");
  command->add_option("--gpus", options->health.expected_gpus, "How many there must be")
      ->check(whole_number(1, 1024));
  command->add_option("--limit", options->health.limit_s, "Seconds that all of it may take")
      ->check(number_between(15, 600))
      ->capture_default_str();
  command->footer(
      "Example: launchgap health --gpus 8 --history nights.db\n"
      "Exit codes, as Nagios has them: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN");
  command->callback([options, &action] {
    action = [options] {
      options->health.history = options->history;
      return check_health(options->health);
    };
  });
}

}  // namespace launchgap::cli
