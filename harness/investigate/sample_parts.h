// What a sample spent its time with, as a profiler's report shows it: parts that do not overlap and
// add up to the whole.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

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

}  // namespace launchgap::investigate
