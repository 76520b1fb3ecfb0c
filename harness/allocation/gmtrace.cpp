#include "harness/allocation/gmtrace.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <iterator>
#include <limits>
#include <optional>
#include <unordered_map>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/core/printable.h"
#include "harness/core/stop.h"
#include "harness/import/compressed_text.h"
#include "harness/import/text_lines.h"

namespace launchgap::allocation {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFirstLine = "# gmtrace 1";
constexpr std::string_view kFirstWords = "# gmtrace ";
constexpr std::string_view kColumns = "seq,t_ns,op,id,size,align,device,stream,thread,tag";
constexpr std::size_t kLongestLine = 4096;

struct OpName {
  Op op;
  std::string_view name;
};
constexpr auto kOps = std::to_array<OpName>({{Op::alloc, "alloc"},
                                             {Op::free_req, "free_req"},
                                             {Op::free, "free"},
                                             {Op::fail, "fail"},
                                             {Op::sync, "sync"},
                                             {Op::step, "step"},
                                             {Op::seg_alloc, "seg_alloc"},
                                             {Op::seg_free, "seg_free"},
                                             {Op::mark, "mark"}});

bool has_allocation(Op op) {
  return op == Op::alloc || op == Op::free || op == Op::free_req;
}

class GmtraceFile : public Trace {
 public:
  explicit GmtraceFile(fs::path file) : file_(std::move(file)) { rewind(); }

  const TraceHead& head() const override { return head_; }
  const TraceFaults& counts() const override { return counts_; }

  void rewind() override {
    head_ = {};
    counts_ = {};
    live_.clear();
    first_id_.reset();
    next_id_ = 0;
    last_seq_.reset();
    last_t_ns_ = std::numeric_limits<std::int64_t>::min();
    named([&] {
      lines_ = std::make_unique<recording::TextLines>(file_, kLongestLine);
      read_head();
    });
  }

  bool next(TraceEvent& event) override {
    bool found = false;
    named([&] {
      std::string_view line;
      while (!found && lines_->next(line)) {
        if (line.empty() || line.front() == '#') continue;
        found = take(line, event);
      }
    });
    return found;
  }

 private:
  void named(const auto& read) const {
    try {
      read();
    } catch (const Stopped&) {
      throw;
    } catch (const Error& error) {
      throw Error("{}: {}", file_.string(), error.what());
    }
  }
  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    throw Error("line {}: {}", lines_->number(), fmt::format(format, std::forward<Args>(args)...));
  }

  void read_head() {
    std::string_view line;
    if (!lines_->next(line)) throw Error("it is empty, and no gmtrace");
    if (line != kFirstLine) {
      if (line.starts_with(kFirstWords))
        throw Error("it is a gmtrace of version '{}', and this launchgap reads 1",
                    printable(line.substr(kFirstWords.size()), 40));
      throw Error("it does not begin with '{}'", kFirstLine);
    }
    while (lines_->next(line)) {
      if (line == kColumns) return;
      if (!line.starts_with('#')) break;
      take_facts(line.substr(1));
    }
    fail("'{}' stands where the columns must be named: {}", printable(line, 80), kColumns);
  }

  /// "source=rmm sizes=requested truncated=0 devices=1"; what is not known says nothing.
  void take_facts(std::string_view text) {
    while (!text.empty()) {
      const std::size_t end = std::min(text.find(' '), text.size());
      const std::string_view word = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      const std::size_t sign = word.find('=');
      if (sign == std::string_view::npos) continue;
      const std::string_view key = word.substr(0, sign), value = word.substr(sign + 1);
      if (key == "source") head_.source = printable(value, 40);
      if (key == "sizes") {
        if (value != "requested" && value != "granted")
          fail("sizes are 'requested' or 'granted', and not '{}'", printable(value, 40));
        head_.sizes = value == "granted" ? Sizes::granted : Sizes::requested;
      }
      if (key == "truncated") {
        if (value != "0" && value != "1")
          fail("truncated is 0 or 1, and not '{}'", printable(value, 40));
        head_.truncated = value == "1";
      }
      if (key == "devices") head_.devices = number<std::uint32_t>(value, "devices").value_or(1);
    }
  }

  /// Nothing for an empty text.
  template <class Number>
  std::optional<Number> number(std::string_view text, const char* what) const {
    if (text.empty()) return std::nullopt;
    Number value = 0;
    const char* const end = text.data() + text.size();
    const auto [at, failed] = std::from_chars(text.data(), end, value);
    if (failed == std::errc::result_out_of_range)
      fail("{} {} is out of range", what, printable(text, 40));
    if (failed != std::errc() || at != end) {
      if (std::is_unsigned_v<Number> && text.front() == '-')
        fail("{} {} is negative", what, printable(text, 40));
      fail("{} '{}' is no whole number", what, printable(text, 40));
    }
    return value;
  }

  /// False for an event that is left out.
  bool take(std::string_view line, TraceEvent& event) {
    std::array<std::string_view, 10> fields;
    std::size_t begin = 0;
    for (std::size_t i = 0; i + 1 < fields.size(); ++i) {
      const std::size_t end = line.find(',', begin);
      if (end == std::string_view::npos)
        fail("it has {} fields of {}: the file may have been cut off", i + 1, fields.size());
      fields[i] = line.substr(begin, end - begin);
      begin = end + 1;
    }
    event = {};
    const auto seq = number<std::uint64_t>(fields[0], "seq");
    if (!seq) fail("it has no seq");
    if (last_seq_ && *seq <= *last_seq_) fail("seq {} comes after {}", *seq, *last_seq_);
    last_seq_ = seq;
    const auto t_ns = number<std::int64_t>(fields[1], "t_ns");
    if (!t_ns) fail("it has no t_ns");
    event.t_ns = *t_ns;
    const auto op = std::ranges::find(kOps, fields[2], &OpName::name);
    if (op == kOps.end()) fail("there is no op '{}'", printable(fields[2], 40));
    event.op = op->op;
    event.align = number<std::uint64_t>(fields[5], "align").value_or(0);
    event.device = number<std::uint32_t>(fields[6], "device").value_or(0);
    event.stream =
        number<std::uint32_t>(fields[7], "stream").value_or(event.op == Op::sync ? kAllStreams : 0);
    event.thread = number<std::uint32_t>(fields[8], "thread").value_or(0);
    const auto bytes = number<std::uint64_t>(fields[4], "size");
    event.bytes = bytes.value_or(0);
    if (event.bytes > kMostBytes) fail("size {} is more than 1 PiB", event.bytes);
    if (event.align != 0 && !std::has_single_bit(event.align))
      fail("align {} is no power of two", event.align);
    if (event.t_ns < last_t_ns_ && counts_.clock_went_back++ == 0)
      counts_.first_clock_line = lines_->number();
    last_t_ns_ = event.t_ns;
    if (!has_allocation(event.op)) return true;
    const auto id = number<std::uint64_t>(fields[3], "id");
    if (!bytes) fail("it has no size");
    if (!id && !(head_.truncated && event.op != Op::alloc)) fail("it has no id");
    event.id = id.value_or(0);
    return event.op == Op::alloc ? take_alloc(event) : take_free(event, id.has_value());
  }

  bool take_alloc(const TraceEvent& event) {
    const auto [entry, is_new] = live_.try_emplace(event.id, Live{event.bytes, lines_->number()});
    if (!is_new)
      fail("allocation {} is made again, and is live since line {}", event.id, entry->second.line);
    if (first_id_ && event.id < next_id_)
      fail("id {} comes after {}: ids rise, and none is used again", event.id, next_id_ - 1);
    if (!first_id_) first_id_ = event.id;
    next_id_ = event.id + 1;
    return true;
  }

  bool take_free(const TraceEvent& event, bool has_id) {
    const auto entry = has_id ? live_.find(event.id) : live_.end();
    if (entry == live_.end()) {
      // Ids rise, so what was made before the trace began is not among its own.
      const bool of_this_trace = first_id_ && event.id >= *first_id_ && event.id < next_id_;
      if (!head_.truncated || (has_id && of_this_trace))
        fail("allocation {} is freed, and is not live: it was freed before or never made",
             event.id);
      if (event.op == Op::free) ++counts_.unseen_frees;
      return false;
    }
    if (entry->second.bytes != event.bytes)
      fail("allocation {} is freed with {} bytes, and was made with {} on line {}",
           event.id,
           event.bytes,
           entry->second.bytes,
           entry->second.line);
    if (event.op == Op::free) {
      live_.erase(entry);
    } else if (std::exchange(entry->second.given_back, true)) {
      fail("allocation {} is given back a second time", event.id);
    }
    return true;
  }

  struct Live {
    std::uint64_t bytes, line;
    bool given_back = false;
  };

  fs::path file_;
  std::unique_ptr<recording::TextLines> lines_;
  TraceHead head_;
  TraceFaults counts_;
  std::unordered_map<std::uint64_t, Live> live_;
  std::optional<std::uint64_t> first_id_;
  std::uint64_t next_id_ = 0;  // above all that were used
  std::optional<std::uint64_t> last_seq_;
  std::int64_t last_t_ns_ = 0;
};

void append_event(std::uint64_t seq, const TraceEvent& event, std::string& text) {
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "{},{},{},", seq, event.t_ns, name_of(event.op));
  if (has_allocation(event.op)) fmt::format_to(out, "{}", event.id);
  const bool has_bytes = has_allocation(event.op) || event.op == Op::fail ||
                         event.op == Op::seg_alloc || event.op == Op::seg_free;
  if (has_bytes) {
    fmt::format_to(out,
                   ",{},{},{},{},{},\n",
                   event.bytes,
                   event.align == 0 ? std::string() : std::to_string(event.align),
                   event.device,
                   event.stream,
                   event.thread);
  } else {
    const bool all = event.op == Op::sync && event.stream == kAllStreams;
    fmt::format_to(out,
                   ",,,{},{},{},\n",
                   event.device,
                   all ? std::string() : std::to_string(event.stream),
                   event.thread);
  }
}

}  // namespace

std::string_view name_of(Op op) {
  return std::ranges::find(kOps, op, &OpName::op)->name;
}

bool is_gmtrace(const fs::path& file) {
  try {
    recording::CompressedText text(file);
    std::string begin(kFirstWords.size(), '\0');
    std::size_t filled = 0;
    while (filled < begin.size()) {
      const std::size_t got = text.read(begin.data() + filled, begin.size() - filled);
      if (got == 0) break;
      filled += got;
    }
    return begin == kFirstWords;
  } catch (const Error&) {
    return false;
  }
}

std::unique_ptr<Trace> open_gmtrace(const fs::path& file) {
  return std::make_unique<GmtraceFile>(file);
}

std::uint64_t write_gmtrace(Trace& trace, const fs::path& file) {
  recording::CompressedOutput out(file);
  const TraceHead& head = trace.head();
  fmt::format_to(std::back_inserter(out.buffer()),
                 "{}\n# source={} sizes={} truncated={} devices={}\n{}\n",
                 kFirstLine,
                 head.source,
                 head.sizes == Sizes::granted ? "granted" : "requested",
                 head.truncated ? 1 : 0,
                 head.devices,
                 kColumns);
  std::uint64_t seq = 0;
  for (TraceEvent event; trace.next(event); ++seq) {
    append_event(seq, event, out.buffer());
    out.flush_if_long();
    if (seq % 65536 == 0) stop_if_asked();
  }
  out.commit();
  return seq;
}

}  // namespace launchgap::allocation
