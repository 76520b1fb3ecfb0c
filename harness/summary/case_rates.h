// The matrix products, convolutions and measured ceilings of a session, beside what their GPU can
// do at most.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/summary/ceiling.h"
#include "harness/summary/session_data.h"

namespace launchgap {

struct CaseRate {
  CaseKey key;
  Rate rate;                       // of it the median over all samples
  std::optional<double> copy_gbs;  // in place of it, of a copy within the device's memory
  JudgedRate judged;
};

/// What of a case its rate is held against the ceiling by.
struct RatedCase {
  std::optional<double> tflops, copy_gbs;  // medians
  std::string algorithm;                   // one of algorithm_names(), or empty
  std::optional<double> clock_mhz;         // as in Rate
};

/// Nothing where the case has no rate that anything bounds: none of a matrix product, a convolution
/// or a measured ceiling with a type of elements, nor of a copy within the device's memory.
std::optional<CaseRate> case_rate(const CaseKey& key,
                                  const DeviceFacts& device,
                                  const RatedCase& rated);

/// Every case that has a rate and a type of elements, and every copy within a device's memory, in
/// the order of the session's cases.
std::vector<CaseRate> case_rates(const SessionData& session);

/// The cases whose rate cannot be, and why: what says it of a case counts in no headline, digest or
/// comparison.
std::map<CaseKey, std::string> impossible_cases(const SessionData& session);

/// "41.8 TFLOP/s is 2.66 times the ceiling of fp32, 15.7 TFLOP/s at 1530 MHz."; of a copy "2200
/// GB/s is 1.08 times the published bandwidth of the memory, 2039 GB/s."
std::string above_ceiling_text(const CaseRate& rate);

}  // namespace launchgap
