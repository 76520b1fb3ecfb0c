// launchgap compare
#include <memory>

#include <fmt/format.h>

#include "harness/cli/command.h"
#include "harness/cli/mistakes.h"
#include "harness/cli/report_options.h"
#include "harness/cli/what_to_measure.h"
#include "harness/core/say.h"
#include "harness/core/stop.h"
#include "harness/regression/compare.h"

namespace launchgap::cli {
namespace {

using regression::CompareRequest;
using regression::Report;

struct CompareCommandOptions {
  std::string a, b, a_case, b_case, output;
  std::size_t pairs = rules::kLeastPairs;
  double wait_s = CompareRequest().wait_s;
  bool gate_spread = false;
  WhatToMeasure what;
  ReportOutputs outputs;
};

CompareRequest request_of(const CompareCommandOptions& options) {
  if (options.a_case.empty() != options.b_case.empty())
    throw UsageError("--a-case and --b-case go together: each side measures one case");
  if (!options.a_case.empty() && !options.what.filter.empty())
    throw UsageError("--filter has nothing to choose beside --a-case and --b-case");
  if (options.a_case.empty() && (options.a.empty() || options.b.empty())) {
    throw UsageError(
        "compare needs --a and --b, two builds or settings; or --a-case and --b-case, two cases of "
        "one");
  }
  CompareRequest request;
  request.a = options.a.empty() ? regression::own_side() : regression::parse_side("--a", options.a);
  request.b = options.b.empty() ? regression::own_side() : regression::parse_side("--b", options.b);
  request.a_case = options.a_case;
  request.b_case = options.b_case;
  request.pairs = options.pairs;
  request.wait_s = options.wait_s;
  request.run = options.what.run_options();
  request.run.output = options.output;
  request.strictness.gate_spread = options.gate_spread;
  return request;
}

ExitCode compare_arms(const CompareCommandOptions& options) {
  const SignalWatch watch;
  try {
    const CompareRequest request = request_of(options);
    const auto plan = plan_pairs(request);
    const Report report = regression::compare(request, plan);
    const ExitCode written = options.outputs.write(report);
    const ExitCode judged = report.exit_code();
    return judged == ExitCode::done ? written : judged;
  } catch (const Stopped&) {
    if (options.output.empty()) {
      say_line("Stopped early; with -o the sessions that were measured would be kept.");
    } else {
      say("Stopped early; what was measured is in {}.", options.output);
    }
    return ExitCode::stopped_early;
  }
}

}  // namespace

void add_compare(CLI::App& app, Action& action) {
  CLI::App* const command = app.add_subcommand(
      "compare", "Two builds, libraries or settings, in fresh processes next to each other");
  auto options = std::make_shared<CompareCommandOptions>();
  command->add_option(
      "--a",
      options->a,
      "What B is compared with: a launchgap, by its path or as PATH has it, and "
      "variables of its environment: BIN[,NAME=VALUE...]; \\, is a comma in a value");
  command->add_option("--b", options->b, "What is under test, written like --a");
  command->add_option("--a-case",
                      options->a_case,
                      "The exact name of a case, which A measures; --a and --b are then this "
                      "launchgap unless they are given");
  command->add_option(
      "--b-case", options->b_case, "The exact name of another one, which B measures");
  command
      ->add_option(
          "--pairs",
          options->pairs,
          "Pairs of processes. Of more than 8 some are left out where the verdict is clear")
      ->check(CLI::Range(rules::kLeastPairs, std::size_t{1000}))
      ->capture_default_str();
  options->what.add_options(*command);
  command
      ->add_option("--wait",
                   options->wait_s,
                   "Seconds to wait for a device that another session has, before each pair")
      ->check(number_between(0, 1e6))
      ->capture_default_str();
  command->add_flag("--gate-spread",
                    options->gate_spread,
                    "What became erratic fails too (exit code 4), and not only what became slower");
  options->outputs.add_options(*command);
  command->add_option("-o,--output",
                      options->output,
                      "Folder in which the sessions of all processes are kept, new or empty; "
                      "without it they are removed");
  command->footer(
      "Example: launchgap compare --a ./launchgap-1.2 --b ./launchgap-1.3 --filter launch/null\n"
      "Libraries: launchgap compare --a launchgap --b "
      "launchgap,LAUNCHGAP_CUBLAS=/opt/libcublas.so\n"
      "Exit codes: 0 nothing is slower, 4 something is, 3 nothing could be compared");
  command->callback([options, &action] { action = [options] { return compare_arms(*options); }; });
}

}  // namespace launchgap::cli
