// launchgap fleet
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <numeric>

#include <fmt/format.h>

#include "harness/cli/command.h"
#include "harness/cli/mistakes.h"
#include "harness/cli/what_to_measure.h"
#include "harness/core/plan.h"
#include "harness/core/printable.h"
#include "harness/core/say.h"
#include "harness/core/text.h"
#include "harness/device/facts.h"
#include "harness/fleet/fleet_plan.h"
#include "harness/run/filter.h"
#include "harness/run/planner.h"
#include "harness/run/process.h"
#include "harness/run/progress.h"

namespace launchgap::cli {
namespace {

struct FleetCommandOptions {
  std::vector<std::string> nodes;
  int gpus = 0;
  std::string folder;
  std::string profile = "nightly";
  std::string filter;
  fleet::PlanSettings settings;
};

/// How long one session takes on a node with so many GPUs, of a model of which nothing is known.
double seconds_of_node(const FleetCommandOptions& options, int gpus) {
  std::vector<DeviceFacts> devices;
  for (int i = 0; i < gpus; ++i) devices.push_back(unknown_gpu(i));
  PlanRequest request;
  request.profile = parse_profile(options.profile);
  request.filter = options.filter;
  request.runs = 1;
  // Of the nodes, each of which has a CPU for every GPU.
  return plan_cases(devices, request).seconds(devices.size());
}

/// What it costs that GPUs of a node wait for each other.
std::string cost_text(const FleetCommandOptions& options) {
  const auto& nodes = options.settings.plan.nodes;
  const int most = std::ranges::max(nodes, {}, &fleet::PlannedNode::gpus).gpus;
  const double of_node = seconds_of_node(options, most), of_one = seconds_of_node(options, 1);
  std::string text = fmt::format("A session of a node with {} takes about {}",
                                 counted(static_cast<std::uint64_t>(most), "GPU"),
                                 duration_text(of_node));
  if (most > 1)
    text += fmt::format(
        ", of one GPU alone {}: launches and allocations are timed one GPU after the other, the "
        "rest "
        "side by side",
        duration_text(of_one));
  return text + fmt::format(". Slurm's limit is {} (--time).", options.settings.time);
}

ExitCode plan(FleetCommandOptions options) {
  fleet::PlanSettings& settings = options.settings;
  if (settings.output.empty()) throw UsageError("--results is empty: name a folder");
  settings.plan.nodes = fleet::parse_nodes(options.nodes, options.gpus);
  settings.launchgap = own_executable();
  settings.output = std::filesystem::absolute(settings.output).string();
  if (!settings.history.empty())
    settings.history = std::filesystem::absolute(settings.history).string();
  // What is wrong with them is not to be found at night.
  parse_profile(options.profile);
  const Filter checked(options.filter);
  for (const std::string& option : settings.run) {
    for (const char* own : {"-o", "--output", "--runs", "--devices", "--profile", "--filter"}) {
      if (option == own || option.starts_with(std::string(own) + "="))
        throw UsageError("--run is '{}': `fleet plan` sets {} itself", printable(option, 60), own);
    }
  }
  if (settings.output.find('%') != std::string::npos)
    throw UsageError(
        "--results has a '%', which Slurm would read as a part of its own: name another");
  std::vector<std::string> run = {"--profile", options.profile, "--runs", "1"};
  if (!options.filter.empty()) {
    run.emplace_back("--filter");
    run.push_back(options.filter);
  }
  std::ranges::move(settings.run, std::back_inserter(run));
  settings.run = std::move(run);
  const std::string cost = cost_text(options);
  fleet::write_plan(options.folder, settings);
  const int gpus = std::accumulate(
      settings.plan.nodes.begin(), settings.plan.nodes.end(), 0, [](int sum, const auto& node) {
        return sum + node.gpus;
      });
  answer("{} with {}, {} of each: {}\n{}\nSubmit a night with {}/submit\n",
         counted(settings.plan.nodes.size(), "node"),
         counted(static_cast<std::uint64_t>(gpus), "GPU"),
         counted(static_cast<std::uint64_t>(settings.plan.sessions), "session"),
         options.folder,
         wrapped(cost, 0),
         options.folder);
  return ExitCode::done;
}

}  // namespace

void add_fleet(CLI::App& app, Action& action) {
  CLI::App* const group =
      app.add_subcommand("fleet", "Measure many nodes by the scheduler that they have");
  group->require_subcommand(1);
  CLI::App* const command =
      group->add_subcommand("plan", "Write Slurm's files for a night over a list of nodes");
  auto options = std::make_shared<FleetCommandOptions>();
  command
      ->add_option("nodes",
                   options->nodes,
                   "Nodes as Slurm lists them, each with the number of its GPUs: n[01-12]:8 m1:4")
      ->required();
  command->add_option("--gpus", options->gpus, "GPUs of the nodes that do not say how many")
      ->check(whole_number(1, 1024));
  command
      ->add_option("--sessions",
                   options->settings.plan.sessions,
                   "Sessions of each GPU in a night, one after the other, each in fresh processes")
      ->check(whole_number(1, 1000))
      ->default_val(5);
  command
      ->add_option("--results",
                   options->settings.output,
                   "Folder that all nodes see; each night has a folder in it")
      ->required();
  command->add_option("--history",
                      options->settings.history,
                      "File with the nights before, against which each night is checked");
  command->add_option("--profile", options->profile, "What each session measures")
      ->capture_default_str();
  command->add_option("--filter", options->filter, "The same: as of `launchgap run`");
  command->add_option(
      "--run",
      options->settings.run,
      "A further option of `launchgap run`, --run=--trace=off; may be given for each");
  command->add_option("--time", options->settings.time, "Slurm's limit for one session of a node")
      ->capture_default_str();
  command->add_option(
      "--sbatch",
      options->settings.sbatch,
      "A further option of sbatch, --sbatch=--partition=gpu; may be given for each");
  command->add_option("-o,--output", options->folder, "Folder of the files, new or empty")
      ->required();
  command->footer(
      "Example: launchgap fleet plan 'n[01-12]:8' --results /shared/launchgap -o nightly");
  command->callback([options, &action] { action = [options] { return plan(*options); }; });
}

}  // namespace launchgap::cli
