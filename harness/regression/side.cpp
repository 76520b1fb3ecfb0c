#include "harness/regression/side.h"

#include <algorithm>
#include <array>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>

#include "harness/core/environment_variables.h"
#include "harness/core/errors.h"
#include "harness/core/printable.h"
#include "harness/core/stop.h"
#include "harness/core/temporary_folder.h"
#include "harness/run/foreign_program.h"
#include "harness/run/process.h"

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
std::vector<std::string> parts_of(const std::string& text) {
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
  if (name.empty()) throw UsageError(fmt::format("{}: it names no program", option));
  const bool is_path = name.find('/') != std::string::npos;
  std::error_code failed;
  if (is_path && !fs::is_regular_file(name, failed))
    throw UsageError(fmt::format("{}: there is no file {}", option, printable(name)));
  if (is_path && access(name.c_str(), X_OK) != 0)
    throw UsageError(fmt::format("{}: {} may not be executed", option, printable(name)));
  const auto found = is_path ? fs::path(name) : find_program(name);
  if (!found) {
    throw UsageError(fmt::format(
        "{}: there is no {} in PATH; with a slash it is a path: ./{}", option, name, name));
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
  throw UsageError(fmt::format("{}: {} is not launchgap: `--version` {}{}",
                               option,
                               side.program.string(),
                               ran.late ? "did not end in 30 s" : ran.end.text(),
                               said.empty() ? "" : " and said: " + printable(said, 200)));
}

}  // namespace

Side parse_side(std::string_view option, const std::string& text) {
  const std::vector<std::string> parts = parts_of(text);
  Side side;
  side.text = text;
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const std::size_t equals = parts[i].find('=');
    const std::string name = parts[i].substr(0, equals);
    if (equals == std::string::npos || name.empty()) {
      throw UsageError(fmt::format(
          "{}: '{}' is no variable with a value: write NAME=VALUE, and \\, for a comma within it",
          option,
          printable(parts[i])));
    }
    if (const std::string why = why_without_effect(name); !why.empty())
      throw UsageError(fmt::format("{}: {} would have no effect: {}", option, name, why));
    if (!side.environment.emplace(name, parts[i].substr(equals + 1)).second)
      throw UsageError(fmt::format("{}: {} is set twice", option, printable(name)));
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

}  // namespace launchgap::regression
