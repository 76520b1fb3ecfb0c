#include "harness/core/pattern.h"

#include <algorithm>
#include <array>
#include <concepts>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "harness/core/csv_table.h"
#include "harness/core/errors.h"
#include "harness/core/input_file.h"
#include "harness/core/number_text.h"
#include "harness/core/printable.h"
#include "harness/core/text.h"

namespace launchgap {
namespace {

constexpr PatternActionInfo kActions[] = {
    {PatternAction::ahead, "ahead", "what the stream still has to do from before the step"},
    {PatternAction::kernel, "kernel", "a launch"},
    {PatternAction::copy_to_device, "copy_to_device", "a copy from the host"},
    {PatternAction::copy_to_host, "copy_to_host", "a copy to the host"},
    {PatternAction::copy, "copy", "a copy within the device"},
    {PatternAction::fill, "fill", "memory is filled"},
    {PatternAction::wait, "wait", "the host waits for a stream"},
    {PatternAction::wait_all, "wait_all", "the host waits for the device"},
    {PatternAction::allocate, "allocate", "a block of memory is allocated"},
    {PatternAction::allocate_pooled, "allocate_pooled", "a block is taken from the device's pool"},
    {PatternAction::release, "release", "a block of memory is given back"},
    {PatternAction::record_event, "record_event", "an event is recorded in the stream"},
    {PatternAction::wait_event, "wait_event", "the stream waits for an event"},
};

constexpr const char* kColumns[] =
    {"action", "stream", "gap_ns", "call_ns", "device_ns", "bytes", "number", "blocks"};

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

/// Sums that stay at the largest number.
std::int64_t plus(std::int64_t a, std::int64_t b) {
  return b > kMost - a ? kMost : a + b;
}

template <std::integral Number>
Number number_in(const CsvReader& reader, std::size_t column, std::string_view name) {
  const std::string& cell = reader.cells()[column];
  if (cell.empty()) return 0;
  const std::optional<Number> value = number_of_text<Number>(cell);
  if (!value) {
    throw Error("{}, column {}: '{}' is no number that it may have",
                reader.where(),
                name,
                printable(cell, 60));
  }
  return *value;
}

PatternAction action_in(const CsvReader& reader, const std::string& name) {
  const auto* const found = std::ranges::find(kActions, name, &PatternActionInfo::name);
  if (found != std::end(kActions)) return found->action;
  std::vector<std::string> names;
  for (const PatternActionInfo& info : kActions) names.emplace_back(info.name);
  throw Error("{}: there is no action '{}'{}",
              reader.where(),
              printable(name, 60),
              did_you_mean(name, names));
}

std::string length_text(std::int64_t nanoseconds) {
  return duration_text(static_cast<std::uint64_t>(nanoseconds));
}

/// Looks at a pattern operation by operation.
class Check {
 public:
  void take(const PatternOperation& operation) {
    ++place_;
    check_times(operation);
    if (operation.stream >= kMostPatternStreams) {
      fail("its stream is number {}, and there may be {}", operation.stream, kMostPatternStreams);
    }
    if (operation.bytes > kMostBytes)
      fail("it is of {} bytes: nothing has so much", operation.bytes);
    if (operation.blocks && !is_copy(operation.action)) fail("only the call of a copy can block");
    const bool sized = is_copy(operation.action) || operation.action == PatternAction::fill ||
                       is_allocation(operation.action);
    if (sized && operation.bytes == 0) fail("it is of 0 bytes");
    if (operation.number > kMostPatternOperations) {
      fail("its number is {}, and may be {}", operation.number, kMostPatternOperations);
    }
    check_number(operation);
    if (operation.action == PatternAction::ahead && place_ != aheads_ + 1)
      fail("what is ahead of the step comes first");
    aheads_ += operation.action == PatternAction::ahead ? 1 : 0;
    works_ = works_ || is_work(operation.action);
  }
  void end() const {
    if (!works_) throw Error("it has no kernel, copy or fill");
  }

 private:
  static constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 50;

  template <class... Values>
  [[noreturn]] void fail(fmt::format_string<Values...> form, Values&&... values) const {
    throw Error("operation {}: {}", place_, fmt::format(form, std::forward<Values>(values)...));
  }

  void check_times(const PatternOperation& operation) const {
    for (const auto& [what, time_ns] : {std::pair("gap before it", operation.gap_ns),
                                        {"call", operation.call_ns},
                                        {"work", operation.device_ns}}) {
      if (time_ns < 0) fail("the {} lasts {} ns, which is below zero", what, time_ns);
      if (time_ns > kLongestPatternNs)
        fail("the {} lasts {}; a pattern may last {}",
             what,
             length_text(time_ns),
             length_text(kLongestPatternNs));
    }
  }

  void check_number(const PatternOperation& operation) {
    const std::uint32_t number = operation.number;
    const bool of_graph = is_work(operation.action) && number != 0;
    if (of_graph && number != graph_ && !graphs_.insert(number).second)
      fail("graph {} was launched before: its works must follow each other", number);
    if (of_graph && operation.blocks) fail("a copy of a graph does not block");
    graph_ = of_graph ? number : 0;
    switch (operation.action) {
      case PatternAction::allocate:
      case PatternAction::allocate_pooled:
        if (!blocks_.insert(number).second) fail("block {} is allocated already", number);
        break;
      case PatternAction::release:
        if (blocks_.erase(number) == 0) fail("block {} is not allocated", number);
        break;
      case PatternAction::record_event:
        events_.insert(number);
        break;
      case PatternAction::wait:
        if (number != 0 && !events_.contains(number))
          fail("it waits for event {}, which is not recorded before", number);
        break;
      case PatternAction::wait_event:
        if (!events_.contains(number))
          fail("it waits for event {}, which is not recorded before: that would never end", number);
        break;
      default:
        break;
    }
  }

  std::size_t place_ = 0, aheads_ = 0;
  std::uint32_t graph_ = 0;
  std::set<std::uint32_t> graphs_, blocks_, events_;
  bool works_ = false;
};

}  // namespace

std::span<const PatternActionInfo> pattern_actions() {
  return kActions;
}

std::string_view name_of(PatternAction action) {
  return kActions[static_cast<std::size_t>(action)].name;
}

PatternTotals totals_of(const Pattern& pattern) {
  PatternTotals totals;
  std::map<std::uint32_t, std::uint64_t> blocks;
  std::uint64_t live = 0;
  std::uint32_t graph = 0;
  for (const PatternOperation& one : pattern.operations) {
    totals.streams = std::max(totals.streams, one.stream + 1);
    totals.gaps_ns = plus(totals.gaps_ns, one.gap_ns);
    totals.longest_ns = plus(totals.longest_ns, plus(one.gap_ns, one.device_ns));
    const bool kernel = one.action == PatternAction::kernel;
    if (kernel || one.action == PatternAction::ahead) {
      ++totals.kernels;
      totals.kernel_ns = plus(totals.kernel_ns, one.device_ns);
    }
    const bool of_graph = is_work(one.action) && one.number != 0;
    const bool begins = of_graph && one.number != graph;
    if (begins || (kernel && !of_graph)) {
      ++totals.launches;
      totals.graphs += begins ? 1 : 0;
    }
    graph = of_graph ? one.number : 0;
    if (is_copy(one.action)) ++totals.copies;
    if (is_copy(one.action) || one.action == PatternAction::fill)
      totals.device_copy_bytes = std::max(totals.device_copy_bytes, one.bytes);
    if (one.action == PatternAction::copy_to_device || one.action == PatternAction::copy_to_host)
      totals.host_copy_bytes = std::max(totals.host_copy_bytes, one.bytes);
    switch (one.action) {
      case PatternAction::fill:
        ++totals.fills;
        break;
      case PatternAction::wait:
      case PatternAction::wait_all:
        ++totals.waits;
        break;
      case PatternAction::allocate:
      case PatternAction::allocate_pooled:
        ++totals.allocations;
        totals.pooled += one.action == PatternAction::allocate_pooled ? 1 : 0;
        live += blocks[one.number] = one.bytes;
        totals.most_live_bytes = std::max(totals.most_live_bytes, live);
        break;
      case PatternAction::release:
        live -= std::exchange(blocks[one.number], 0);
        break;
      default:
        break;
    }
  }
  return totals;
}

void check_pattern(const Pattern& pattern) {
  if (pattern.operations.size() > kMostPatternOperations) {
    throw Error(
        "it has {} operations, and may have {}", pattern.operations.size(), kMostPatternOperations);
  }
  Check check;
  for (const PatternOperation& operation : pattern.operations) check.take(operation);
  check.end();
  const PatternTotals totals = totals_of(pattern);
  if (totals.longest_ns > kLongestPatternNs) {
    throw Error("its gaps and its work last {} together; a pattern may last {}",
                length_text(totals.longest_ns),
                length_text(kLongestPatternNs));
  }
}

std::string pattern_text(const Pattern& pattern) {
  std::string text = fmt::format("{}\n", fmt::join(kColumns, ","));
  const auto number = [&](auto value) {
    text += ',';
    if (value != 0) text += fmt::format("{}", value);
  };
  for (const PatternOperation& one : pattern.operations) {
    text += name_of(one.action);
    number(one.stream);
    number(one.gap_ns);
    number(one.call_ns);
    number(one.device_ns);
    number(one.bytes);
    number(one.number);
    number(one.blocks ? 1 : 0);
    text += '\n';
  }
  return text;
}

std::vector<PatternOperation> parse_pattern(std::string_view text, const std::string& name) {
  CsvReader reader(text, name);
  std::array<std::size_t, std::size(kColumns)> columns{};
  for (std::size_t i = 0; i < columns.size(); ++i) columns[i] = reader.column(kColumns[i]);
  Pattern pattern;
  while (reader.next()) {
    PatternOperation one;
    one.action = action_in(reader, reader.cells()[columns[0]]);
    one.stream = number_in<std::uint32_t>(reader, columns[1], kColumns[1]);
    one.gap_ns = number_in<std::int64_t>(reader, columns[2], kColumns[2]);
    one.call_ns = number_in<std::int64_t>(reader, columns[3], kColumns[3]);
    one.device_ns = number_in<std::int64_t>(reader, columns[4], kColumns[4]);
    one.bytes = number_in<std::uint64_t>(reader, columns[5], kColumns[5]);
    one.number = number_in<std::uint32_t>(reader, columns[6], kColumns[6]);
    one.blocks = number_in<std::uint32_t>(reader, columns[7], kColumns[7]) != 0;
    pattern.operations.push_back(one);
    if (pattern.operations.size() > kMostPatternOperations) break;
  }
  try {
    check_pattern(pattern);
  } catch (const Error& error) {
    throw Error("{}: {}", name, error.what());
  }
  return std::move(pattern.operations);
}

Pattern read_pattern(const std::filesystem::path& file) {
  const std::string name = printable(file.string());
  const std::string text = InputFile(file).text(kLongestPatternFile);
  check_utf8(text, name);
  Pattern pattern;
  pattern.origin.name = pattern_name(file.stem().string());
  pattern.origin.source = file.filename().string();
  pattern.operations = parse_pattern(text, name);
  return pattern;
}

std::string pattern_name(std::string_view text, std::string_view ending) {
  constexpr std::size_t kLongest = 60, kLongestEnding = 30;
  ending = ending.substr(0, kLongestEnding);
  std::string name(text.substr(0, kLongest - ending.size()));
  name += ending;
  for (char& c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '-' || c == '.';
    if (!plain) c = '_';
  }
  return name.empty() ? "pattern" : name;
}

}  // namespace launchgap
