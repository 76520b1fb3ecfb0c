#include "harness/cli/what_to_measure.h"

#include <iterator>
#include <limits>

#include "harness/cli/described_command.h"
#include "harness/cli/mistakes.h"
#include "harness/measure/shapes.h"
#include "harness/measure/sweep.h"

namespace launchgap::cli {

void WhatToMeasure::add_options(CLI::App& command) {
  command
      .add_option("--devices",
                  devices,
                  "all, gpu, host, a UUID or the beginning of one, a GPU's index; or several, with "
                  "commas; rank, "
                  "the GPU at the place that srun or mpirun gave this process on the node")
      ->capture_default_str();
  show_values(
      command.add_option(
          "--profile", profile, "quick (3 runs of each), nightly (10), full (20, every size)"),
      profile_names())
      ->capture_default_str();
  command.add_option(
      "--filter",
      filter,
      "Only cases whose name matches this regular expression; a '-' in front: only the others");
  command.add_option(
      "--shapes",
      shapes,
      "A table of products (columns m, n, k) or convolutions (n, c, h, w, k, r, s), which "
      "matmul/shapes and convolution/shapes measure in place of their own; may be given for each");
  command
      .add_option(
          "--sweep",
          sweeps,
          "Sizes that benchmarks with this axis (blocks, bytes, n, nodes or size) measure in "
          "place of their own, in a random order; may be given for each axis")
      ->type_name("AXIS=FROM:TO:STEP");
  command
      .add_option(
          "--seed", seed, "For the order of runs and the data; recorded, and drawn if not given")
      ->check(whole_number(0, std::numeric_limits<std::uint64_t>::max()));
  command
      .add_option("--timeout",
                  timeout_s,
                  "Seconds without a sign of life after which a worker that measures has hung; for "
                  "a long case five times its estimate")
      ->check(number_between(0.1, 1e6))
      ->capture_default_str();
}

RunOptions WhatToMeasure::run_options() const {
  if (!shapes.empty()) {
    ShapeTables all;
    for (const std::string& file : shapes) {
      ShapeTables tables = read_shapes(file);
      std::ranges::move(tables.matmul, std::back_inserter(all.matmul));
      std::ranges::move(tables.convolution, std::back_inserter(all.convolution));
    }
    use_shapes(std::move(all));
  }
  std::vector<Sweep> all;
  for (const std::string& sweep : sweeps) all.push_back(parse_sweep(sweep));
  use_sweeps(std::move(all));
  RunOptions options;
  options.devices = devices;
  options.profile = parse_profile(profile);
  options.filter = filter;
  options.seed = seed;
  options.timeout_s = timeout_s;
  return options;
}

}  // namespace launchgap::cli
