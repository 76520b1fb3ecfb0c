// Options of commands that judge: with which sessions of a history they compare, and where they put
// what they found.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "harness/core/errors.h"
#include "harness/regression/check.h"
#include "harness/regression/report.h"

namespace launchgap::cli {

struct ReportOutputs {
  std::string json, junit, markdown;

  void add_options(CLI::App& command);
  /// Answers with the summary, and with annotations where GitHub runs the job; writes the files.
  /// ExitCode::failed if one cannot be written, which is said.
  ExitCode write(const regression::Report& report) const;
};

struct BaselineOptions {
  std::string across, accepted;

  /// Adds --across and --accepted. It must outlive the parsing.
  void add_options(CLI::App& command);
  /// Throws UsageError, and Error if the file of accepted levels cannot be read.
  regression::CheckOptions check_options() const;
};

}  // namespace launchgap::cli
