// Options of every command that measures: which devices, which cases, how thoroughly.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "harness/run/planned_session.h"

namespace launchgap::cli {

struct WhatToMeasure {
  std::string devices = "all";
  std::string profile = "quick";
  std::string filter;
  std::vector<std::string> shapes;  // files
  std::vector<std::string> sweeps;  // "bytes=4096:8192:64"
  std::optional<std::uint64_t> seed;
  double timeout_s = kUsualTimeoutS;

  /// Adds --devices, --profile, --filter, --shapes, --sweep, --seed and --timeout. It must outlive
  /// the parsing.
  void add_options(CLI::App& command);
  /// The options that it stands for; from now on, this process plans the shapes and sizes. Throws
  /// UsageError for a profile that there is not, files that hold no shapes, and what is no sweep.
  RunOptions run_options() const;
};

}  // namespace launchgap::cli
