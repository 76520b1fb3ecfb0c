// Which sessions of a history are compared with: options of every command that judges by one.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "harness/regression/check.h"

namespace launchgap::cli {

struct BaselineOptions {
  std::string across, accepted;

  /// Adds --across and --accepted. It must outlive the parsing.
  void add_options(CLI::App& command);
  /// Throws UsageError, and Error if the file of accepted levels cannot be read.
  regression::CheckOptions check_options() const;
};

}  // namespace launchgap::cli
