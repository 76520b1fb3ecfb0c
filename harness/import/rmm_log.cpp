#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "harness/core/csv_table.h"
#include "harness/core/errors.h"
#include "harness/core/number_text.h"
#include "harness/core/printable.h"
#include "harness/import/decimal.h"
#include "harness/import/readers.h"
#include "harness/import/text_lines.h"

namespace launchgap::recording {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kDay = 86'400 * kSecond;

enum Field : std::uint8_t { thread, time, end, action, gpu, pointer, size, stream, fields };

/// The columns of a dialect; those that nobody asks for are not named.
struct Dialect {
  std::string_view head;
  std::string_view begin;  // by which it is known
  struct Column {
    std::string_view name;
    Field field;
  };
  std::span<const Column> columns;
};
constexpr Dialect::Column kAdaptorColumns[] = {{"Thread", thread},
                                               {"Time", time},
                                               {"Action", action},
                                               {"Pointer", pointer},
                                               {"Size", size},
                                               {"Stream", stream}};
constexpr Dialect::Column kManagerColumns[] = {{"Event Type", action},
                                               {"Device ID", gpu},
                                               {"Address", pointer},
                                               {"Stream", stream},
                                               {"Size (bytes)", size},
                                               {"End", end}};
constexpr Dialect kDialects[] = {
    {"Thread,Time,Action,Pointer,Size,Stream", "Thread,Time,", kAdaptorColumns},
    {"Time,Action,Pointer,Size,Stream", "Time,Action,", kAdaptorColumns},
    {"Event Type,Device ID,Address,Stream,Size (bytes),…",
     "Event Type,Device ID,",
     kManagerColumns}};

const Dialect* dialect_of(std::string_view begin) {
  const auto found = std::ranges::find_if(
      kDialects, [&](const Dialect& dialect) { return begin.starts_with(dialect.begin); });
  return found == std::end(kDialects) ? nullptr : &*found;
}

/// The cells of a line. Nothing if a quote is not closed.
bool split(std::string_view line, std::vector<std::string>& out) {
  return read_csv_record(line, out).empty();
}

std::optional<std::uint64_t> number(std::string_view text, int base) {
  if (text.starts_with("0x") || text.starts_with("0X")) {
    text.remove_prefix(2);
    base = 16;
  }
  return number_of_text<std::uint64_t>(text, base);
}

/// A time of day as nanoseconds: HH:MM:SS.ffffff, or with a colon before the fraction.
struct TimeOfDay {
  std::int64_t ns = 0;
  bool colon = false;
};
std::optional<TimeOfDay> time_of_day(std::string_view text) {
  const auto part = [&](std::size_t at, std::uint64_t most) -> std::optional<std::int64_t> {
    const auto value = text.size() >= at + 2 ? number(text.substr(at, 2), 10) : std::nullopt;
    if (!value || *value > most) return std::nullopt;
    return static_cast<std::int64_t>(*value);
  };
  const auto hours = part(0, 23), minutes = part(3, 59), seconds = part(6, 60);
  if (!hours || !minutes || !seconds || text[2] != ':' || text[5] != ':') return std::nullopt;
  TimeOfDay time{((*hours * 60 + *minutes) * 60 + *seconds) * kSecond, false};
  if (text.size() == 8) return time;
  const std::string_view digits = text.substr(9);
  if ((text[8] != '.' && text[8] != ':') || digits.empty() || digits.size() > 9)
    return std::nullopt;
  const auto fraction = number(digits, 10);
  if (!fraction || digits.starts_with("0x")) return std::nullopt;
  time.colon = text[8] == ':';
  std::int64_t ns = static_cast<std::int64_t>(*fraction);
  for (std::size_t i = digits.size(); i < 9; ++i) ns *= 10;
  time.ns += ns;
  return time;
}

class Log {
 public:
  Log(const std::filesystem::path& file, Recording& recording)
      : lines_(file, 1 << 16),
        recording_(recording),
        process_(recording.processes.emplace_back()) {}

  void read() {
    lines_.limit_unpacking(kMostUnpacking);
    std::string_view line;
    lines_.next(line);
    read_head(line);
    while (lines_.next(line)) {
      if (line.empty()) continue;
      // What was not flushed is lost, and the line that it tore ends anywhere.
      if (lines_.torn() && !is_whole(line)) {
        recording_.leave_out("last lines that are cut off");
        break;
      }
      take(line);
    }
    if (process_.allocations.empty()) throw Error("it is a log of RMM without a single event");
    if (went_back_ > 0)
      recording_.remarks.push_back(fmt::format(
          "the times of {} lines go back, first on line {}: they are put at that of the "
          "line before, in whose order they are",
          went_back_,
          first_back_));
  }
  bool is_compressed() const { return lines_.is_compressed(); }
  bool of_day() const { return column_[time].has_value(); }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error("line {}: {}", lines_.number(), what);
  }

  void read_head(std::string_view line) {
    const Dialect* const dialect = dialect_of(line);
    if (!dialect) fail("it is no head of a log of RMM");
    std::vector<std::string> names;
    if (!split(line, names)) fail("a quote is not closed");
    for (const Dialect::Column& column : dialect->columns) {
      const auto at = std::ranges::find(names, column.name);
      if (at != names.end()) column_[column.field] = static_cast<std::size_t>(at - names.begin());
    }
    count_ = names.size();
    if (!column_[action] || !column_[pointer] || !column_[size] || !column_[stream] ||
        (!column_[time] && !column_[end]))
      fail(fmt::format("it is no head of a log of RMM, which has {}", dialect->head));
  }

  /// Whether it has all of its fields; the last may still lack its end.
  bool is_whole(std::string_view line) {
    return split(line, values_) && values_.size() >= count_ && !values_[count_ - 1].empty();
  }

  /// Empty if the dialect has none.
  std::string_view value(Field field) const {
    return column_[field] ? std::string_view(values_[*column_[field]]) : std::string_view();
  }

  void take(std::string_view line) {
    if (!split(line, values_)) fail("a quote is not closed");
    // Places in a program (the last column) may have commas.
    if (values_.size() < count_ || (of_day() && values_.size() > count_))
      fail(fmt::format("it has {} fields, and its head {}", values_.size(), count_));
    Allocation next;
    const std::string_view what = value(action);
    if (what == "Realloc")
      return recording_.leave_out("reallocations, which do not tell what they gave back");
    next.action = action_of(what);
    next.at_ns = time_of();
    next.bytes = size_of();
    const auto stream_number = number(value(stream), streams_are_decimal_ ? 10 : 16);
    if (!stream_number && value(stream) != "(nil)")
      fail(fmt::format("'{}' is no stream", printable(value(stream), 40)));
    next.stream = stream_number.value_or(0);
    if (column_[gpu]) {
      const auto known = number(value(gpu), 10);
      if (!known || *known > kMostGpu)
        fail(fmt::format("'{}' is no GPU", printable(value(gpu), 40)));
      next.gpu = *known;
    }
    next.thread = process_.thread(column_[thread] ? value(thread) : "not recorded");
    if (next.action != AllocationAction::fail) next.address = address_of();
    if (check(next)) process_.allocations.push_back(next);
  }

  AllocationAction action_of(std::string_view what) const {
    if (what == "allocate" || what == "Alloc") return AllocationAction::allocate;
    if (what == "free" || what == "Free") return AllocationAction::release;
    if (what == "allocate failure") return AllocationAction::fail;
    fail(fmt::format("'{}' is no action of RMM", printable(what, 40)));
  }

  std::uint64_t size_of() const {
    const auto bytes = natural_of(value(size));
    if (!bytes || *bytes > kMostAllocationBytes)
      fail(fmt::format("'{}' is no size that can be", printable(value(size), 40)));
    return *bytes;
  }

  std::uint64_t address_of() const {
    const std::string_view text = value(pointer);
    if (text == "(nil)") return 0;
    const auto address = number(text, 10);
    if (!address) fail(fmt::format("'{}' is no pointer", printable(text, 40)));
    return *address;
  }

  /// RMM gives nothing for no bytes. What is freed has the size that was allocated; before 2020 a
  /// log does not tell it.
  bool check(const Allocation& next) {
    if (next.action == AllocationAction::fail) return true;
    if (next.address == 0 || (next.action == AllocationAction::allocate && next.bytes == 0)) {
      recording_.leave_out("allocations and releases of no bytes");
      return false;
    }
    if (next.action == AllocationAction::allocate) {
      live_[{next.gpu, next.address}] = next.bytes;
      return true;
    }
    const auto known = live_.find({next.gpu, next.address});
    if (known == live_.end()) return true;
    if (next.bytes != 0 && next.bytes != known->second)
      fail(fmt::format("{} bytes are freed at {:#x}, where {} were allocated",
                       next.bytes,
                       next.address,
                       known->second));
    live_.erase(known);
    return true;
  }

  /// The order of the lines is that in which things happened, and times go with it.
  std::int64_t time_of() {
    std::int64_t at_ns = of_day() ? time_with_day() : seconds_since_start();
    if (at_ns < last_ns_) {
      if (went_back_++ == 0) first_back_ = lines_.number();
      at_ns = last_ns_;
    }
    return last_ns_ = at_ns;
  }
  /// There is no date: where the time goes back by more than half a day, midnight has passed. The
  /// first day is the second, since a time of 0 is one that is not known.
  std::int64_t time_with_day() {
    const auto known = time_of_day(value(time));
    if (!known) fail(fmt::format("'{}' is no time of a day", printable(value(time), 40)));
    // RMM wrote streams in decimal as long as it wrote times so.
    streams_are_decimal_ = known->colon;
    std::int64_t at_ns = day_ * kDay + known->ns;
    if (at_ns + kDay / 2 < last_ns_) {
      ++day_;
      at_ns += kDay;
    }
    return at_ns;
  }
  std::int64_t seconds_since_start() const {
    const std::string_view text = value(end);
    const std::optional<double> seconds = number_of_text<double>(text);
    if (!seconds || !(*seconds >= 0) || *seconds > 1e9)
      fail(fmt::format("'{}' is no time", printable(text, 40)));
    return 1 + std::llround(*seconds * 1e9);
  }

  TextLines lines_;
  Recording& recording_;
  Process& process_;
  std::array<std::optional<std::size_t>, fields> column_;
  std::size_t count_ = 0;  // of columns
  std::vector<std::string> values_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> live_;  // bytes
  std::int64_t last_ns_ = 0, day_ = 1;
  std::uint64_t went_back_ = 0, first_back_ = 0;
  bool streams_are_decimal_ = false;
};

}  // namespace

bool is_rmm_log(std::string_view begin) {
  return dialect_of(begin) != nullptr;
}

Recording read_rmm_log(const std::filesystem::path& file) {
  Recording recording;
  recording.file = file;
  recording.recorder = "RMM";
  Log log(file, recording);
  log.read();
  recording.form = fmt::format("CSV, {}{}",
                               log.of_day() ? "of its logging adaptor" : "of 2019",
                               log.is_compressed() ? ", compressed" : "");
  recording.clock = log.of_day() ? "time of day, of which day is not recorded" : "its start";
  return recording;
}

}  // namespace launchgap::recording
