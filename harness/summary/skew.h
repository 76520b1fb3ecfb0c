// Which of several devices that do the same step at once keeps the others waiting.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/core/finding.h"
#include "harness/rules/who_is_late.h"
#include "harness/summary/session_data.h"

namespace launchgap {

/// One of the devices, or CPUs, of a case, over all processes of the session.
struct SkewRow {
  std::string device;  // of the case: the first of them
  CaseName name;
  std::string member;  // a UUID, or "cpu3"
  bool valid = true;   // not of one GPU, whose streams stand for several
  std::size_t runs = 0, steps = 0;
  std::size_t last = 0;             // steps in which it was the last
  double host_ns = 0, work_ns = 0;  // medians
  std::optional<double> waits_ns;   // in the sum of all for the last one, the median; or no sum
  double late_ns = 0;               // its median less that of the others; below 0: it is early
  double uncertainty_ns = 0;
  std::optional<double> together;  // its work beside the others, in units of its work alone
  std::optional<double> score;     // fastest median work of all to its own
  rules::WhoIsLate found;          // of the case
  bool is_late = false;            // it is one of those
};

/// By case and member.
std::vector<SkewRow> skew_rows(const SessionData& session);

/// One per case: who keeps the others waiting, or that nobody does; of one GPU that it means
/// nothing.
std::vector<Finding> skew_findings(const SessionData& session);

}  // namespace launchgap
