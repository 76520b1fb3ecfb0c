#include "harness/cli/baseline_options.h"

namespace launchgap::cli {

void BaselineOptions::add_options(CLI::App& command) {
  command.add_option("--across",
                     across,
                     "Keys of the fingerprint that may differ, with commas: what is under test, as "
                     "driver_version, cuBLAS, kernel or launchgap");
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
