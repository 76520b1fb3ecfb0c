// Options of every command that measures: which devices, which cases, how thoroughly.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include "harness/run/planned_session.h"

namespace launchgap::cli {

struct WhatToMeasure {
  std::string devices = "all";
  std::string profile = "quick";
  std::string filter;
  std::optional<std::uint64_t> seed;
  double timeout_s = 120;

  /// Adds --devices, --profile, --filter, --seed and --timeout. It must outlive the parsing.
  void add_options(CLI::App& command);
  /// The options that it stands for. Throws UsageError for a profile that there is not.
  RunOptions run_options() const;
};

}  // namespace launchgap::cli
