// Sizes of a session that take longer than slightly larger ones: series are found among its cases,
// and judged by harness/stats/padding_gains.h.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/core/finding.h"
#include "harness/stats/padding_gains.h"
#include "harness/summary/session_data.h"

namespace launchgap {

/// A case's name with the number that differs written as "*", and that number.
struct SizedName {
  std::string name;  // "matmul/shapes/shape:*x*x*/library:cublas/type:fp16"
  double size = 0;
  auto operator<=>(const SizedName&) const = default;
};

/// Each series that a case may be of: one for each number in its name that is a size, and one for
/// each number that stands several times in one value (squares), or twice in a row. Sizes are: a
/// number that is a whole value ("bytes:4096"); of a shape's parts, which "-" separates, the
/// numbers of one that is numbers joined by "x", and a batch ("64x64x64-nt-b32",
/// "8x64x56x56-128x3x3"). What has a letter before it is part of a word ("fp16", "conv4_3x3"), and
/// "2024-01-05" is a date. A value with more than 16 numbers has no sizes, nor has a part with a
/// number that begins with 0.
std::vector<SizedName> series_of(const CaseName& name);

/// One size of a series, of which a larger one by at most a quarter was measured.
struct CliffRow {
  CaseKey key;         // of the size
  CaseName padded;     // of `pad_to`
  std::string name;    // of the series
  std::string metric;  // a time
  double size = 0, pad_to = 0;
  double gain = 1;
  std::optional<stats::Interval> interval;
  bool judged = false;        // by enough processes
  bool random_order = false;  // each process measured the sizes in a random order of its own
  bool cliff = false;         // judged, and measured in a random order
  std::size_t processes = 0;  // that have a time of the size
  std::size_t sizes = 0;      // of the series, those without a larger one too

  /// "cliff", "none", "too few processes", or "order not random".
  std::string_view verdict() const;
};

/// Of the plain runs and of published values, by device, series and size, but for cases whose rate
/// cannot be (case_rates.h). Series of fewer than kLeastSizes have none. Where the order of the
/// cases was not random there is no verdict: a machine that slows down while it measures would slow
/// the same sizes in most processes.
inline constexpr std::size_t kLeastSizes = 5;
std::vector<CliffRow> cliff_rows(const SessionData& session);

/// One per device and series that has a cliff.
std::vector<Finding> cliff_findings(const SessionData& session);

}  // namespace launchgap
