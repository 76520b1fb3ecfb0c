// Whether a library's products have the same bits in each process and in each situation.
#pragma once

#include <string>
#include <vector>

#include "harness/core/finding.h"
#include "harness/summary/session_data.h"

namespace launchgap {

/// What came of one case over all processes of a session.
struct BitsCounts {
  std::string device;
  CaseName name;
  int processes = 0;
  int results = 0;                // of all processes together
  int distinct_within = 1;        // of the process that has the most
  int distinct_between = 1;       // of what each process computed first, alone
  double largest_difference = 0;  // within a process, as a part of the largest magnitude
  std::string different;          // of that process which has the most

  const std::string& variant() const { return name.at("variant"); }
  bool differs() const { return distinct_within > 1 || distinct_between > 1; }
};

/// In the order of device and case.
std::vector<BitsCounts> bits_counts(const SessionData& session);

/// One per device and situation in which results have other bits; none where all are equal.
std::vector<Finding> bits_findings(const SessionData& session);

}  // namespace launchgap
