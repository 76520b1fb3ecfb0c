// launchgap doctor
#include <cstdlib>
#include <set>
#include <unistd.h>

#include <fmt/format.h>

#include "harness/cli/command.h"
#include "harness/doctor/examine.h"
#include "harness/doctor/rules.h"
#include "harness/doctor/screen.h"
#include "harness/record/schema.h"

namespace launchgap::cli {
namespace {

using doctor::Facts;
using doctor::Finding;
using doctor::Severity;

struct Options {
  bool no_prove = false;
  bool require_gpu = false;
  bool json = false;
  bool verbose = false;
};

bool wants_colour() {
  return isatty(STDOUT_FILENO) == 1 && !std::getenv("NO_COLOR");
}

ExitCode exit_code_of(const std::vector<Finding>& findings) {
  for (const Finding& finding : findings) {
    if (finding.severity >= Severity::distorts) return ExitCode::failed;
  }
  return ExitCode::done;
}

ExitCode diagnose_machine(const Options& options) {
  const std::unique_ptr<Facts> facts = doctor::examine({.prove = !options.no_prove});
  const std::vector<Finding> findings = doctor::diagnose(*facts);
  if (options.json) {
    Json json = new_record("doctor");
    json.update(doctor::to_json(*facts, findings));
    fmt::print("{}\n", json.dump(1, ' ', false, Json::error_handler_t::replace));
  } else {
    fmt::print("{}", doctor::screen(*facts, findings, wants_colour(), options.verbose));
  }
  if (options.require_gpu && doctor::usable_gpus(*facts, findings) == 0) return ExitCode::no_gpu;
  return exit_code_of(findings);
}

}  // namespace

void add_doctor(CLI::App& app, Action& action) {
  CLI::App* const command = app.add_subcommand(
      "doctor", "Say which GPUs can be used, for what, and if not, why not and what to do");
  auto options = std::make_shared<Options>();
  command->add_flag("--no-prove", options->no_prove, "Only look; run nothing on the GPUs");
  command->add_flag("--require-gpu", options->require_gpu, "Exit with 77 if no GPU can be used");
  command->add_flag("--json", options->json, "Machine-readable, on standard output");
  command->add_flag("-v,--verbose", options->verbose, "All of every note");
  command->footer("Example: launchgap doctor");
  command->callback(
      [options, &action] { action = [options] { return diagnose_machine(*options); }; });
}

}  // namespace launchgap::cli
