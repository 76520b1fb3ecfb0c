#include "harness/measure/sweep.h"

#include <algorithm>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/core/number_text.h"
#include "harness/core/printable.h"
#include "harness/core/text.h"
#include "harness/measure/benchmark.h"

namespace launchgap {
namespace {

constexpr std::size_t kShown = 60;  // bytes of what was typed in a message

std::vector<Sweep>& sweeps() {
  static std::vector<Sweep> all;
  return all;
}

[[noreturn]] void refuse(std::string_view text, const std::string& why) {
  throw UsageError("--sweep '{}': {}", printable(text, kShown), why);
}

std::uint64_t number_in(std::string_view text, std::string_view number) {
  const auto value = number_of_text<std::uint64_t>(number);
  if (!value || *value < 1 || *value > kLargestSize)
    refuse(text,
           fmt::format(
               "'{}' is no whole number from 1 to {}", printable(number, kShown), kLargestSize));
  return *value;
}

/// Throws UsageError unless a benchmark has such an axis.
void check_axis(std::string_view text, const std::string& axis) {
  std::vector<std::string> known;
  for (const Benchmark& benchmark : all_benchmarks()) {
    for (const Axis& own : benchmark.axes) {
      if (own.largest > 0) known.push_back(own.name);
    }
  }
  if (std::ranges::find(known, axis) != known.end()) return;
  std::ranges::sort(known);
  known.erase(std::unique(known.begin(), known.end()), known.end());
  refuse(text,
         fmt::format("no benchmark has an axis '{}' of sizes; there are {}",
                     printable(axis, kShown),
                     list_text(known)));
}

}  // namespace

Sweep parse_sweep(std::string_view text) {
  const std::size_t equals = text.find('='), first = text.find(':');
  if (equals == 0 || equals == text.npos || first == text.npos || first < equals)
    refuse(text, "it is not AXIS=FROM:TO or AXIS=FROM:TO:STEP, like bytes=4096:8192:64");
  Sweep sweep{std::string(text.substr(0, equals)), {}};
  check_axis(text, sweep.axis);
  const std::size_t second = std::min(text.find(':', first + 1), text.size());
  const std::uint64_t from = number_in(text, text.substr(equals + 1, first - equals - 1)),
                      to = number_in(text, text.substr(first + 1, second - first - 1)),
                      step = second < text.size() ? number_in(text, text.substr(second + 1)) : 1;
  if (to < from) refuse(text, fmt::format("it ends at {}, before {}", to, from));
  if ((to - from) / step >= kMostSizes)
    refuse(
        text,
        fmt::format("these are {} sizes, and {} are the most", (to - from) / step + 1, kMostSizes));
  for (std::uint64_t size = from; size <= to; size += step) sweep.sizes.push_back(size);
  return sweep;
}

void use_sweeps(std::vector<Sweep> all) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (all[i].axis == all[j].axis)
        throw UsageError("--sweep: the axis '{}' is there twice", all[i].axis);
    }
  }
  sweeps() = std::move(all);
}

const Sweep* sweep_of(std::string_view axis) {
  const auto found = std::ranges::find(sweeps(), axis, &Sweep::axis);
  return found == sweeps().end() ? nullptr : &*found;
}

bool has_sweeps() {
  return !sweeps().empty();
}

}  // namespace launchgap
