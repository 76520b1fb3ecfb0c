// A profiler run to its end, and what came of it.
#pragma once

#include <filesystem>
#include <string>

#include "harness/investigate/tool_commands.h"

namespace launchgap::investigate {

struct ToolOutcome {
  bool stopped = false;  // by a signal
  bool report = false;   // what it should write is there
  std::string problem;   // a line; empty if all went well
};

/// `program` is the tool's file, and the command that of profile_command(). What the tool and
/// launchgap under it print goes to standard error.
ToolOutcome run_tool(Tool tool,
                     const std::filesystem::path& program,
                     const CommandLine& command,
                     const Places& places);

/// The same of export_command().
ToolOutcome run_export(const std::filesystem::path& program,
                       const CommandLine& command,
                       const Places& places);

}  // namespace launchgap::investigate
