// Where `check` and `compare` put what they found: the terminal, and files for programs.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "harness/core/errors.h"
#include "harness/regression/report.h"

namespace launchgap::cli {

struct ReportOutputs {
  std::string json, junit, markdown;

  void add_options(CLI::App& command);
  /// Answers with the summary, and with annotations where GitHub runs the job; writes the files.
  /// ExitCode::failed if one cannot be written, which is said.
  ExitCode write(const regression::Report& report) const;
};

}  // namespace launchgap::cli
