// What the page draws of a benchmark, as data: it is written into tables.json, and the page draws
// it.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace launchgap {

/// A line of a figure over an axis, or a row of a figure without one.
struct FigureLine {
  /// Stand for a value that was measured: the smallest, the largest, and the largest that most of
  /// the figure's rows have.
  static constexpr std::string_view kLeast = "@least", kMost = "@most", kCommon = "@common";

  std::string label;
  /// Axes and the values that a case must have; it may have others.
  std::vector<std::pair<std::string, std::string>> params;
  std::string metric;
};

/// A metric over a numeric axis, a line per device and entry of `lines`; without an axis a row per
/// entry, in it a mark per device.
struct Figure {
  std::string caption;
  std::vector<FigureLine> lines;
  std::string axis = {};
  std::string axis_unit = {};  // empty: a plain number
  bool each_device = false;    // a figure per device, in which colours tell the lines apart
  /// Of a figure without `axis`: a row for each measured value of this one, with a mark per line.
  std::string each = {};
};

}  // namespace launchgap
