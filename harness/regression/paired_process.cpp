#include "harness/regression/paired_process.h"

#include <algorithm>

#include <fmt/format.h>

#include "harness/core/printable.h"
#include "harness/core/stop.h"
#include "harness/run/filter.h"
#include "harness/run/foreign_program.h"

namespace launchgap::regression {
namespace {

/// What an older launchgap knows too: options that say what is measured, and nothing else.
std::vector<std::string> command_line(const PairedProcess& process) {
  return {process.side.program.string(),
          "run",
          "--runs",
          "1",
          "--trace",
          "off",
          "--no-observer-effect",
          "--no-report",
          "--devices",
          process.device,
          "--filter",
          exact_filter(process.cases),
          "--profile",
          std::string(name_of(process.profile)),
          "--seed",
          std::to_string(process.seed),
          "--timeout",
          fmt::format("{}", process.timeout_s),
          "-o",
          process.folder.string()};
}

/// When it hangs, since launchgap itself ends what does: a case at its time-out.
double limit_s(const PairedProcess& process) {
  constexpr double kStartS = 120;
  return kStartS + 10 * process.seconds +
         process.timeout_s * static_cast<double>(process.cases.size() + 1);
}

/// The last line with anything on it.
std::string last_line(std::string text) {
  text.erase(text.find_last_not_of(" \t\r\n") + 1);
  const std::size_t end = text.rfind('\n');
  return printable(end == std::string::npos ? text : text.substr(end + 1));
}

}  // namespace

PairedOutcome measure(const PairedProcess& process) {
  constexpr double kGraceS = 30;
  // It may tell of failed cases by its exit code, and the session says which.
  constexpr int kSomeFailed = static_cast<int>(ExitCode::failed);
  ProgramRequest request;
  request.arguments = command_line(process);
  request.environment = process.side.environment;
  request.limit_s = limit_s(process);
  request.grace_s = kGraceS;
  request.printed = process.folder.string() + ".txt";
  const ProgramOutcome ran = run_program(request);
  stop_if_asked();
  PairedOutcome outcome;
  if (!ran.end.clean()) {
    const std::string said = last_line(last_printed(request.printed));
    outcome.problem =
        ran.late ? fmt::format("was killed after {:.0f} s", request.limit_s) : ran.end.text();
    if (!said.empty()) outcome.problem += ", and said last: " + said;
  }
  const bool exited = !ran.late && !ran.end.unknown && ran.end.signal == 0;
  if (!exited || (ran.end.exit_code != 0 && ran.end.exit_code != kSomeFailed)) return outcome;
  try {
    SessionFigures figures =
        figures_of(read_session(process.folder), {.simulated = true, .slowed_down = true});
    const auto failed =
        std::ranges::find_if_not(figures.metrics, &std::string::empty, &MetricFigures::invalid);
    if (failed != figures.metrics.end() && !outcome.problem.empty())
      outcome.problem =
          fmt::format("failed: {} {}", failed->key.where.name.text(), failed->invalid);
    if (!figures.metrics.empty()) {
      outcome.figures = std::move(figures);
    } else if (outcome.problem.empty()) {
      outcome.problem = "measured nothing";
    }
  } catch (const Error& error) {
    if (outcome.problem.empty()) outcome.problem = error.what();
  }
  return outcome;
}

}  // namespace launchgap::regression
