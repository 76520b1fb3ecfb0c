// What a sample spent its time with, as a profiler's report shows it: parts that do not overlap and
// add up to the whole; and which part of its slowest samples makes a case slow.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace launchgap::investigate {

/// Where several hold at once, the first counts.
enum class Part : std::uint8_t { overhead, call, kernel, queue, wait, program };
inline constexpr std::size_t kParts = static_cast<std::size_t>(Part::program) + 1;

struct PartInfo {
  std::string_view key;   // of the column
  std::string_view name;  // in a sentence: "the kernel"
  std::string_view meaning;
};
const PartInfo& info_of(Part part);

/// Nanoseconds by part.
using PartTimes = std::array<std::int64_t, kParts>;

/// What went on from `begin_ns` to `end_ns`.
struct Activity {
  std::int64_t begin_ns = 0, end_ns = 0;
  Part part = Part::program;
};

/// Divides the time of a sample; what lies outside of it does not count, and what no activity
/// covers is the program's.
PartTimes divide(std::int64_t begin_ns, std::int64_t end_ns, std::span<const Activity> activities);

/// A sample of a case: what the session measured, and what the report shows of it.
struct Observation {
  double value = 0;
  std::int64_t range_ns = 0;
  PartTimes parts_ns{};
};

/// The slowest samples beside the others. Means, so that the parts of a difference add up to it.
struct SlowestSamples {
  std::size_t slowest = 0, others = 0;  // samples
  double value_slowest = 0, value_others = 0;
  double range_slowest_ns = 0, range_others_ns = 0;
  std::array<double, kParts> slowest_ns{}, others_ns{};

  double difference_ns() const { return range_slowest_ns - range_others_ns; }
  double difference_ns(Part part) const {
    const auto i = static_cast<std::size_t>(part);
    return slowest_ns[i] - others_ns[i];
  }

  /// The part that moved, if one did: in the report, too, the slowest samples are the longer ones
  /// (half of them longer than nine in ten of the others); this part makes at least half of that;
  /// and it is what is longest beyond the others' mean in at least half of them.
  std::optional<Part> moved;
  std::size_t with_this = 0;  // of the slowest, those of which that holds
  std::string why_none;       // a sentence, where nothing moved
};

/// The slowest are one in twenty, by value, and at least one. Nothing for fewer than ten.
std::optional<SlowestSamples> compare_slowest(std::vector<Observation> observations);

}  // namespace launchgap::investigate
