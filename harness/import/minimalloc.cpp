#include <algorithm>
#include <array>
#include <optional>
#include <tuple>
#include <vector>

#include "harness/core/errors.h"
#include "harness/core/number_text.h"
#include "harness/import/readers.h"
#include "harness/import/text_lines.h"

namespace launchgap::recording {
namespace {

/// The columns that matter, each by the names that it has in the wild.
enum BlockField : std::size_t { kId, kLower, kUpper, kSize, kFields };
constexpr std::array<std::array<std::string_view, 3>, kFields> kNames = {{
    {"id", "buffer_id", "buffer"},
    {"lower", "start", "begin"},
    {"upper", "end", "end"},
    {"size", "size", "size"},
}};

std::vector<std::string_view> fields_of(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  std::vector<std::string_view> fields;
  for (std::size_t begin = 0; begin <= line.size();) {
    const std::size_t end = std::min(line.find(',', begin), line.size());
    fields.push_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  return fields;
}

/// Where each column stands; nothing if one is missing, or the first is not the block's.
std::optional<std::array<std::size_t, kFields>> places_of(std::string_view head) {
  const std::vector<std::string_view> fields = fields_of(head);
  std::array<std::size_t, kFields> places{};
  for (std::size_t column = 0; column < kFields; ++column) {
    const auto found = std::ranges::find_if(fields, [&](std::string_view field) {
      return std::ranges::find(kNames[column], field) != kNames[column].end();
    });
    if (found == fields.end()) return std::nullopt;
    places[column] = static_cast<std::size_t>(found - fields.begin());
  }
  return places;
}

std::optional<std::uint64_t> number_in(const std::vector<std::string_view>& fields,
                                       std::size_t place) {
  return place < fields.size() ? number_of_text<std::uint64_t>(fields[place]) : std::nullopt;
}

}  // namespace

bool is_minimalloc(std::string_view begin) {
  const std::size_t end = begin.find('\n');
  return end != std::string_view::npos && places_of(begin.substr(0, end)).has_value();
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
  const auto places = places_of(line);
  if (!places) throw Error("line 1: it has not the columns id, lower, upper and size");
  std::uint64_t address = 0;  // a number for each block
  while (lines.next(line)) {
    if (line.empty()) continue;
    const std::vector<std::string_view> fields = fields_of(line);
    const auto begins = number_in(fields, (*places)[kLower]);
    const auto ends = number_in(fields, (*places)[kUpper]);
    const auto size = number_in(fields, (*places)[kSize]);
    const auto fail = [&](std::string_view what) {
      throw Error("line {}: {}", lines.number(), what);
    };
    if (!begins || !ends || !size) fail("it has no lower, upper and size that can be");
    const std::uint64_t lower = *begins, upper = *ends, bytes = *size;
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
