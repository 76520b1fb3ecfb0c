#include "harness/recording/minimalloc.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/recording/text_lines.h"

namespace launchgap::recording {
namespace {

constexpr std::string_view kHead = "id,lower,upper,size";

/// The fields of a line behind the first, as numbers.
std::optional<std::vector<std::uint64_t>> numbers(std::string_view line) {
  std::vector<std::uint64_t> values;
  for (std::size_t comma = line.find(','); comma != std::string_view::npos;
       comma = line.find(',')) {
    line.remove_prefix(comma + 1);
    std::uint64_t& value = values.emplace_back();
    const std::string_view field = line.substr(0, line.find(','));
    const char* const end = field.data() + field.size();
    const auto [ptr, failed] = std::from_chars(field.data(), end, value);
    if (failed != std::errc() || ptr != end) return std::nullopt;
  }
  return values;
}

}  // namespace

bool is_minimalloc(std::string_view begin) {
  return begin.starts_with(kHead);
}

Recording read_minimalloc(const std::filesystem::path& file) {
  constexpr std::size_t kLongestLine = 4096;
  constexpr std::uint64_t kLatest = std::uint64_t{1} << 62;
  Recording recording;
  recording.file = file;
  recording.recorder = "minimalloc";
  recording.form = "CSV";
  recording.clock = "none: times are steps";
  Process& process = recording.processes.emplace_back();
  process.thread("not recorded");
  TextLines lines(file, kLongestLine);
  lines.limit_unpacking(kMostUnpacking);
  std::string_view line;
  lines.next(line);
  std::uint64_t address = 0;  // a number for each block
  while (lines.next(line)) {
    if (line.empty()) continue;
    const auto values = numbers(line);
    const auto fail = [&](std::string_view what) {
      throw Error(fmt::format("line {}: {}", lines.number(), what));
    };
    if (!values || values->size() < 3) fail("it has no lower, upper and size that can be");
    const std::uint64_t lower = (*values)[0], upper = (*values)[1], bytes = (*values)[2];
    if (upper <= lower || upper > kLatest) fail("it ends before it begins, or too late");
    if (bytes == 0 || bytes > kMostAllocationBytes) fail("it has a size that cannot be");
    ++address;
    const auto add = [&](std::uint64_t at, AllocationAction action) {
      // A time of 0 is one that is not known.
      process.allocations.push_back(
          {static_cast<std::int64_t>(at) + 1, address, bytes, 0, 0, 0, action});
    };
    add(lower, AllocationAction::allocate);
    add(upper, AllocationAction::release);
  }
  if (process.allocations.empty()) throw Error("it has no blocks");
  // What ends when something begins makes room for it.
  std::ranges::sort(process.allocations, {}, [](const Allocation& one) {
    return std::tuple(one.at_ns, one.action == AllocationAction::allocate, one.address);
  });
  return recording;
}

}  // namespace launchgap::recording
