// A case of a session, and the command lines that run it once more under NVIDIA's profilers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/plan.h"
#include "harness/device/facts.h"
#include "harness/summary/session_data.h"

namespace launchgap::investigate {

/// What is investigated, and how it was measured.
struct Subject {
  std::string session_id;
  std::string case_name;
  DeviceFacts device;  // as the session has it
  Profile profile = Profile::quick;
  std::uint64_t seed = 0;
};

/// The case by its exact name, on the one device that has it or on that which `device` names: a
/// UUID or the beginning of one, a GPU's index, host. Throws UsageError that says what there is: no
/// such case, several devices, a case that somebody else recorded; and Error for a session that
/// does not tell how it was measured.
Subject find_subject(const SessionData& session,
                     const std::string& case_name,
                     const std::string& device);

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

// --- A profiler run to its end, and what came of it ---

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
