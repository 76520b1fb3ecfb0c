// The command lines that run a case once more under NVIDIA's profilers.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "harness/investigate/subject.h"

namespace launchgap::investigate {

enum class Tool { nsys, ncu };
std::string_view name_of(Tool tool);     // of its program, too
std::string_view product_of(Tool tool);  // "Nsight Systems"

/// A program and its arguments.
using CommandLine = std::vector<std::string>;

/// Where a tool's results go, below the folder of the investigation.
struct Places {
  std::filesystem::path session;           // launchgap's own
  std::filesystem::path output;            // what the tool is told to write; it adds a suffix
  std::filesystem::path report;            // what it then writes
  std::filesystem::path exported, joined;  // of nsys alone
};
Places places_of(Tool tool, const std::filesystem::path& folder);

/// The tool, with launchgap behind it: the same case, seed and profile, one plain run on the same
/// device, nothing else. `launchgap` is the program's path.
CommandLine profile_command(Tool tool,
                            const Subject& subject,
                            const std::string& launchgap,
                            const Places& places);
/// Of nsys: the report as SQLite.
CommandLine export_command(const Places& places);
/// Of launchgap: the export joined with the session.
CommandLine join_command(const std::string& launchgap, const Places& places);

/// As a shell reads it.
std::string shell_line(const CommandLine& command);

}  // namespace launchgap::investigate
