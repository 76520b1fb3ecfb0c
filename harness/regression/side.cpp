#include <algorithm>
#include <array>
#include <unistd.h>

#include <fmt/format.h>

#include "harness/core/environment_variables.h"
#include "harness/core/errors.h"
#include "harness/core/output_file.h"
#include "harness/core/printable.h"
#include "harness/core/stop.h"
#include "harness/regression/compare.h"
#include "harness/run/filter.h"
#include "harness/run/foreign_program.h"
#include "harness/run/process.h"
#include "harness/run/rank.h"

namespace launchgap::regression {
namespace {

namespace fs = std::filesystem;

/// Of the variables that launchgap sets for its processes, those of the user's that it heeds.
constexpr std::array<std::string_view, 2> kHeeded = {"CUDA_MODULE_LOADING", "LAUNCHGAP_DELAY_NS"};

/// Why a variable would not do what it is set for; empty if it would.
std::string why_without_effect(std::string_view name) {
  if (name == "CUDA_VISIBLE_DEVICES")
    return "both sides measure the same device, which --devices chooses";
  if (std::ranges::find(kHeeded, name) != kHeeded.end()) return "";
  for (const EnvironmentVariable& variable : environment_variables()) {
    if (variable.name != name) continue;
    if (variable.use == VariableUse::falsifies)
      return fmt::format("workers remove it, since it would falsify what is measured ({})",
                         variable.meaning);
    if (variable.use == VariableUse::set)
      return fmt::format("launchgap sets it itself ({})", variable.meaning);
  }
  return "";
}

/// The parts between commas; `\,` is a comma.
std::vector<std::string> unescaped_parts(const std::string& text) {
  std::vector<std::string> parts(1);
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size() && text[i + 1] == ',') {
      parts.back() += text[++i];
    } else if (text[i] == ',') {
      parts.emplace_back();
    } else {
      parts.back() += text[i];
    }
  }
  return parts;
}

fs::path find_binary(std::string_view option, const std::string& name) {
  if (name.empty()) throw UsageError("{}: it names no program", option);
  const bool is_path = name.find('/') != std::string::npos;
  std::error_code failed;
  if (is_path && !fs::is_regular_file(name, failed))
    throw UsageError("{}: there is no file {}", option, printable(name));
  if (is_path && access(name.c_str(), X_OK) != 0)
    throw UsageError("{}: {} may not be executed", option, printable(name));
  const auto found = is_path ? fs::path(name) : find_program(name);
  if (!found) {
    throw UsageError(
        "{}: there is no {} in PATH; with a slash it is a path: ./{}", option, name, name);
  }
  return fs::absolute(*found);
}

/// What it says of itself.
std::string version_of(std::string_view option, const Side& side) {
  constexpr double kLimitS = 30;
  const TemporaryFolder folder;
  ProgramRequest request;
  request.arguments = {side.program.string(), "--version"};
  request.environment = side.environment;
  request.limit_s = kLimitS;
  request.printed = folder.path() / "version";
  const ProgramOutcome ran = run_program(request);
  stop_if_asked();
  std::string said = last_printed(request.printed);
  said.erase(std::min(said.find('\n'), said.size()));
  if (ran.end.clean() && said.starts_with("launchgap ")) return printable(said);
  throw UsageError("{}: {} is not launchgap: `--version` {}{}",
                   option,
                   side.program.string(),
                   ran.late ? "did not end in 30 s" : ran.end.text(),
                   said.empty() ? "" : " and said: " + printable(said, 200));
}

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

Side parse_side(std::string_view option, const std::string& text) {
  const std::vector<std::string> parts = unescaped_parts(text);
  Side side;
  side.text = text;
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const std::size_t equals = parts[i].find('=');
    const std::string name = parts[i].substr(0, equals);
    if (equals == std::string::npos || name.empty()) {
      throw UsageError(
          "{}: '{}' is no variable with a value: write NAME=VALUE, and \\, for a comma within it",
          option,
          printable(parts[i]));
    }
    if (const std::string why = why_without_effect(name); !why.empty())
      throw UsageError("{}: {} would have no effect: {}", option, name, why);
    if (!side.environment.emplace(name, parts[i].substr(equals + 1)).second)
      throw UsageError("{}: {} is set twice", option, printable(name));
  }
  side.program = find_binary(option, parts.front());
  side.version = version_of(option, side);
  return side;
}

Side own_side() {
  Side side;
  side.program = own_executable();
  side.text = "launchgap";
  side.version = version_of("launchgap", side);
  return side;
}

PairedOutcome measure(const PairedProcess& process) {
  constexpr double kGraceS = 30;
  // It may tell of failed cases by its exit code, and the session says which.
  constexpr int kSomeFailed = static_cast<int>(ExitCode::failed);
  ProgramRequest request;
  request.arguments = command_line(process);
  request.environment = process.side.environment;
  request.environment.merge(alone_environment());
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
