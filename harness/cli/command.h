// The commands of launchgap: a file each (`join` beside `investigate`), which adds its options and
// says what it does.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "harness/core/errors.h"

namespace launchgap::cli {

/// What the command line asks for; set by the command that was named.
using Action = std::function<ExitCode()>;

void add_run(CLI::App& app, Action& action, const std::vector<std::string>& command_line);
void add_import(CLI::App& app, Action& action, const std::vector<std::string>& command_line);
void add_record(CLI::App& app, Action& action, const std::vector<std::string>& command_line);
void add_list(CLI::App& app, Action& action);
void add_report(CLI::App& app, Action& action);
void add_doctor(CLI::App& app, Action& action, const std::vector<std::string>& command_line);
void add_export(CLI::App& app, Action& action);
void add_investigate(CLI::App& app, Action& action);
void add_join(CLI::App& app, Action& action);
void add_compare(CLI::App& app, Action& action);
void add_check(CLI::App& app, Action& action);
void add_generate(CLI::App& app, Action& action);
void add_replay(CLI::App& app, Action& action, const std::vector<std::string>& command_line);
void add_history(CLI::App& app, Action& action);
void add_selftest(CLI::App& app, Action& action);
void add_merge(CLI::App& app, Action& action);
void add_health(CLI::App& app, Action& action);
void add_fleet(CLI::App& app, Action& action);
void add_completion(CLI::App& app, Action& action);
void add_man(CLI::App& app, Action& action);

/// `launchgap worker …` reads its own arguments: they are Google Benchmark's.
ExitCode worker_main(int argc, char** argv);

}  // namespace launchgap::cli
