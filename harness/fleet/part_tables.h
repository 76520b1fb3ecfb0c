// What a session that is part of a larger one has measured, from the summary.csv beside its
// records, in little memory.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/record/schema.h"

namespace launchgap::fleet {

/// A row of summary.csv, or what of it devices are compared by.
struct PartRow {
  std::string device;  // UUID
  std::string arm, process_config, case_name, metric;
  Status status = Status::ok;
  std::string reason;
  double p50 = 0;                   // not finite where there is no result
  double time = 0;                  // of all its samples: their number times their mean
  std::vector<double> run_medians;  // positive and finite
};

struct PartTable {
  std::vector<PartRow> rows;  // without those whose rate cannot be
  bool from_records = false;
  std::string problem;  // why the table was not used, or, without rows, why nothing was read
};

/// The rows of a session's summary.csv. Where the session has not `ended`, or the table is not
/// there, is torn, or cannot be read, the records are read in its place, and `problem` says why
/// unless the table is just not there. Never throws Error: what cannot be read either way is the
/// problem.
PartTable read_part_table(const std::filesystem::path& session, bool ended);

}  // namespace launchgap::fleet
