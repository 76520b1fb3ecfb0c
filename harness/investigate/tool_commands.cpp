#include "harness/investigate/tool_commands.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "harness/run/filter.h"

namespace launchgap::investigate {
namespace {

/// launchgap itself, as the tool starts it.
CommandLine run_command(Tool tool,
                        const Subject& subject,
                        const std::string& launchgap,
                        const Places& places) {
  CommandLine command = {launchgap,
                         "run",
                         "--devices",
                         subject.device.uuid,
                         "--filter",
                         exact_filter(subject.case_name),
                         "--runs",
                         "1",
                         "--seed",
                         std::to_string(subject.seed),
                         "--profile",
                         std::string(name_of(subject.profile)),
                         "--trace",
                         "off",
                         "--under",
                         std::string(name_of(tool)),
                         "--investigates",
                         subject.session_id,
                         "--no-report",
                         "-o",
                         places.session.string()};
  // It replays each kernel some tens of times, with the memory restored in between.
  if (tool == Tool::ncu) command.insert(command.end() - 2, {"--timeout", "1800"});
  return command;
}

/// Its range is that around all blocks of the case: it captures the first of its name and no more.
/// Without the last three it would kill what it watches, or record each kernel of a graph.
CommandLine nsys_command(const Places& places) {
  return {"nsys",
          "profile",
          "--trace=cuda,nvtx",
          "--sample=none",
          "--cpuctxsw=none",
          "--capture-range=nvtx",
          "--nvtx-capture=blocks@launchgap",  // range@domain
          "--capture-range-end=stop",
          "--kill=none",
          "--cuda-graph-trace=graph",
          "--output=" + places.output.string()};
}

CommandLine ncu_command(const Places& places) {
  return {"ncu",
          "--nvtx",
          "--nvtx-include",
          "launchgap@measure/",  // domain@range: the opposite of nsys; a slash for push/pop ranges
          "--launch-count",
          "10",
          "--target-processes",
          "all",
          "--set",
          "full",
          "--export",
          places.output.string()};
}

}  // namespace

std::string_view name_of(Tool tool) {
  return tool == Tool::nsys ? "nsys" : "ncu";
}

std::string_view product_of(Tool tool) {
  return tool == Tool::nsys ? "Nsight Systems" : "Nsight Compute";
}

Places places_of(Tool tool, const std::filesystem::path& folder) {
  const std::string name(name_of(tool));
  return {.session = folder / (name + "-session"),
          .output = folder / name,
          .report = folder / (name + (tool == Tool::nsys ? ".nsys-rep" : ".ncu-rep")),
          .exported = folder / "nsys.sqlite",
          .joined = folder / "joined.csv"};
}

CommandLine profile_command(Tool tool,
                            const Subject& subject,
                            const std::string& launchgap,
                            const Places& places) {
  CommandLine command = tool == Tool::nsys ? nsys_command(places) : ncu_command(places);
  std::ranges::copy(run_command(tool, subject, launchgap, places), std::back_inserter(command));
  return command;
}

CommandLine export_command(const Places& places) {
  return {"nsys",
          "export",
          "--type=sqlite",
          "--output=" + places.exported.string(),
          places.report.string()};
}

CommandLine join_command(const std::string& launchgap, const Places& places) {
  return {launchgap,
          "join",
          places.exported.string(),
          places.session.string(),
          "-o",
          places.joined.string()};
}

std::string shell_line(const CommandLine& command) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
  std::string line;
  for (const std::string& argument : command) {
    if (!line.empty()) line += ' ';
    if (!argument.empty() && argument.find_first_not_of(kPlain) == std::string::npos) {
      line += argument;
      continue;
    }
    line += '\'';
    for (const char c : argument) line += c == '\'' ? std::string(R"('\'')") : std::string(1, c);
    line += '\'';
  }
  return line;
}

}  // namespace launchgap::investigate
