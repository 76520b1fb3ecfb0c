#include "harness/cli/baseline_options.h"

namespace launchgap::cli {

void BaselineOptions::add_options(CLI::App& command) {
  command.add_option("--across",
                     across,
                     "What you deliberately changed, separated by commas: driver_version, cuBLAS, "
                     "kernel, launchgap, …");
  command.add_option("--accepted",
                     accepted,
                     "Text file with levels that are accepted, beside those of `history accept`: "
                     "DEVICE CASE METRIC SINCE ACCEPTED REASON");
}

regression::CheckOptions BaselineOptions::check_options() const {
  regression::CheckOptions check;
  check.across = regression::Across::parse(across);
  if (!accepted.empty()) check.accepted = regression::read_accepted_levels(accepted);
  return check;
}

}  // namespace launchgap::cli
