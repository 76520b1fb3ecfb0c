#include "harness/import/event_file.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fcntl.h>
#include <new>
#include <optional>
#include <span>
#include <string_view>
#include <unistd.h>
#include <utility>
#include <zlib.h>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/core/stop.h"
#include "harness/import/event_kinds.h"
#include "harness/import/text_lines.h"
#include "harness/record/schema.h"

namespace launchgap::recording {

namespace fs = std::filesystem;

// --- Writing ---

namespace {

constexpr std::size_t kPerBlock = 8192;

template <class Event>
EventSpan span_of(std::span<const Event> events) {
  EventSpan span;
  for (const Event& event : events) span.add(event);
  return span;
}

/// What a reader must know to pass over a line stands at its beginning.
template <class Event>
void describe_block(std::span<const Event> events, std::string& line) {
  const EventSpan span = span_of(events);
  line.clear();
  fmt::format_to(
      std::back_inserter(line),
      R"({{"schema":"{}","record":"events","kind":"{}","n":{},"first_ns":{},"last_ns":{})",
      kSchema,
      Kind<Event>::name,
      events.size(),
      span.first_ns,
      span.last_ns);
  for (const EventColumn<Event>& column : Kind<Event>::columns) {
    fmt::format_to(std::back_inserter(line), R"(,"{}":[)", column.key);
    static const Event kNone{};
    const Event* before = &kNone;
    for (const Event& event : events) {
      if (before != &kNone) line += ',';
      column.write(event, *before, line);
      before = &event;
    }
    line += ']';
  }
  line += "}\n";
}

Json head_as_json(const EventsHead& head, const Process& process) {
  Json json = new_record("event_names");
  json["recorder"] = head.recorder;
  json["clock"] = head.clock;
  json["pid"] = head.pid;
  if (head.rank) json["rank"] = *head.rank;
  if (!head.case_name.empty()) json["case"] = head.case_name;
  if (head.block) json["block"] = *head.block;
  json["gpus"] = Json::array();
  for (const Gpu& gpu : head.gpus) {
    Json one = {{"number", gpu.number}, {"name", gpu.name}, {"uuid", gpu.uuid}};
    if (!gpu.compute_capability.empty()) one["compute_capability"] = gpu.compute_capability;
    if (gpu.memory_bytes) one["memory_bytes"] = *gpu.memory_bytes;
    json["gpus"].push_back(std::move(one));
  }
  json["threads"] = process.threads;
  json["streams"] = Json::array();
  for (const Stream& stream : process.streams)
    json["streams"].push_back({stream.gpu, stream.context, stream.number});
  json["names"] = process.trace.names();
  json["events"] = process.events();
  EventSpan all;
  for_each_kind([&]<class Event>() {
    for (const Event& event : Kind<Event>::list(process)) all.add(event);
  });
  json["first_ns"] = all.first_ns;
  return json;
}

}  // namespace

EventWriter::EventWriter(const fs::path& file)
    : path_(file), descriptor_(open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644)) {
  if (descriptor_ < 0) throw WriteError(path_);
}

EventWriter::~EventWriter() {
  close(descriptor_);
}

void EventWriter::write(const EventsHead& head, const Process& process) {
  constexpr std::size_t kLong = std::size_t{1} << 20;
  std::string line = to_line(head_as_json(head, process));
  compress(line);
  for_each_kind([&]<class Event>() {
    const std::span<const Event> events = Kind<Event>::list(process);
    for (std::size_t first = 0; first < events.size(); first += kPerBlock) {
      describe_block(events.subspan(first, std::min(kPerBlock, events.size() - first)), line);
      compress(line);
      stop_if_asked();
      if (waiting_.size() > kLong) flush();
    }
  });
  flush();
}

/// A line becomes a gzip member.
void EventWriter::compress(std::string_view line) {
  z_stream stream{};
  // 15 bits of window, and 16 for gzip's header.
  if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::bad_alloc();
  const std::size_t before = waiting_.size();
  waiting_.resize(before + deflateBound(&stream, line.size()));
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(line.data()));
  stream.avail_in = static_cast<uInt>(line.size());
  stream.next_out = reinterpret_cast<Bytef*>(waiting_.data() + before);
  stream.avail_out = static_cast<uInt>(waiting_.size() - before);
  deflate(&stream, Z_FINISH);
  waiting_.resize(waiting_.size() - stream.avail_out);
  deflateEnd(&stream);
}

void EventWriter::flush() {
  const char* at = waiting_.data();
  for (std::size_t left = waiting_.size(); left > 0;) {
    const ssize_t written = ::write(descriptor_, at, left);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw WriteError(path_);
    at += written;
    left -= static_cast<std::size_t>(written);
  }
  waiting_.clear();
}

fs::path events_of(const fs::path& records_file) {
  return records_file.parent_path().parent_path() / "events" /
         (records_file.filename().string() + ".gz");
}

// --- Reading ---

namespace {

template <class Event>
void read_block(const Json& json, Process& process) {
  constexpr auto& kColumns = Kind<Event>::columns;
  auto& events = Kind<Event>::list(process);
  std::optional<std::size_t> n;
  for (const EventColumn<Event>& column : kColumns) {
    if (column.optional && !json.contains(column.key)) continue;
    const Json& values = array_field(json, column.key);
    if (!n) events.resize(*(n = values.size()));
    if (values.size() != *n)
      throw Error(
          "\"{}\" has {} values, and \"{}\" {}", column.key, values.size(), kColumns[0].key, *n);
    static const Event kNone{};
    for (std::size_t i = 0; i < *n; ++i) {
      if (!column.read(events[i], i == 0 ? kNone : events[i - 1], values[i])) {
        throw Error("\"{}\" has a value that cannot be: {}",
                    column.key,
                    values[i].is_number() ? text_of_json(values[i]) : kind_of(values[i]));
      }
    }
  }
}

/// Indices into names, threads and streams that do not exist are nobody's to use.
void check_indices(const Process& process) {
  const auto check = [](std::size_t index, std::size_t size, const char* what) {
    if (index >= size) throw Error("a {} has the number {} of {}", what, index, size);
  };
  const auto known = [](auto value, auto last, const char* what) {
    if (value > last) throw Error("a {} is of a later launchgap: use that one", what);
  };
  const std::size_t names = process.trace.names().size();
  for (const auto& overhead : process.trace.overheads)
    known(overhead.kind, activity::OverheadKind::buffer_request, "kind of overhead");
  for (const auto& call : process.trace.calls) {
    known(call.domain, activity::Domain::runtime, "domain of calls");
    known(call.purpose, activity::Purpose::wait, "purpose of calls");
    check(call.id, names, "name");
    check(call.thread, process.threads.size(), "thread");
  }
  for (const auto& kernel : process.trace.kernels) {
    check(kernel.name, names, "name");
    check(kernel.stream, process.streams.size(), "stream");
  }
  for (const auto& transfer : process.trace.transfers)
    check(transfer.stream, process.streams.size(), "stream");
  for (const auto& wait : process.trace.waits) {
    for (const std::uint32_t stream : {wait.stream, wait.event_stream}) {
      if (stream != activity::Wait::kNoStream) check(stream, process.streams.size(), "stream");
    }
  }
  for (const auto& graph : process.trace.graphs)
    check(graph.stream, process.streams.size(), "stream");
  for (const auto& allocation : process.allocations) {
    known(allocation.action, AllocationAction::fail, "kind of allocation");
    check(allocation.thread, process.threads.size(), "thread");
  }
  for (const auto& range : process.ranges) {
    check(range.name, names, "name");
    check(range.thread, process.threads.size(), "thread");
  }
}

EventsHead read_head(const Json& json, Process& process) {
  EventsHead head;
  head.recorder = field<std::string>(json, "recorder", "");
  head.clock = field<std::string>(json, "clock", "");
  head.pid = process.pid = field<std::uint64_t>(json, "pid", 0);
  head.rank = process.rank = optional_field<std::int64_t>(json, "rank");
  head.case_name = field<std::string>(json, "case", "");
  head.block = optional_field<int>(json, "block");
  head.first_ns = field<std::int64_t>(json, "first_ns");
  for (const Json& one : array_field(json, "gpus")) {
    Gpu gpu;
    gpu.number = field<std::uint64_t>(one, "number", 0);
    gpu.name = field<std::string>(one, "name", "");
    gpu.uuid = field<std::string>(one, "uuid", "");
    gpu.compute_capability = field<std::string>(one, "compute_capability", "");
    gpu.memory_bytes = optional_field<std::uint64_t>(one, "memory_bytes");
    head.gpus.push_back(std::move(gpu));
  }
  for (const auto& thread : field<std::vector<std::string>>(json, "threads"))
    process.threads.push_back(thread);
  for (const Json& stream : array_field(json, "streams")) {
    if (!stream.is_array() || stream.size() != 3) throw Error("a stream has not three numbers");
    Stream one;
    std::size_t i = 0;
    for (std::uint64_t* part : {&one.gpu, &one.context, &one.number}) {
      if (!stream[i].is_number_unsigned()) throw Error("a stream has not three numbers");
      *part = stream[i++].get<std::uint64_t>();
    }
    process.streams.push_back(one);
  }
  process.trace.set_names(field<std::vector<std::string>>(json, "names"));
  return head;
}

/// What stands at the beginning of a line of events.
struct LineHead {
  std::uint64_t n = 0;
  std::int64_t first_ns = 0, last_ns = 0;
};

/// Without a look at the rest of the line; nothing where it does not stand there.
std::optional<LineHead> line_head(std::string_view line) {
  line = line.substr(0, 256);
  const auto number = [&](std::string_view key, auto& value) {
    const std::size_t at = line.find(key);
    if (at == std::string_view::npos) return false;
    const char* const begin = line.data() + at + key.size();
    return std::from_chars(begin, line.data() + line.size(), value).ec == std::errc();
  };
  LineHead head;
  if (line.find(R"("record":"events")") == std::string_view::npos) return std::nullopt;
  if (!number(R"("n":)", head.n) || !number(R"("first_ns":)", head.first_ns) ||
      !number(R"("last_ns":)", head.last_ns))
    return std::nullopt;
  return head;
}

/// Section by section.
class Reader {
 public:
  explicit Reader(const EventVisitor& visitor) : visitor_(visitor) {}

  void take(std::string_view line) {
    if (begun_ && visitor_.wants) {
      const std::optional<LineHead> head = line_head(line);
      if (head && !visitor_.wants(head->first_ns, head->last_ns)) {
        seen_ += head->n;
        return;
      }
    }
    const Json json = parse_json(line);
    const auto kind = field<std::string>(json, "record");
    if (kind == "event_names") {
      if (begun_) check_whole();
      begin(json);
    } else if (kind == "events") {
      if (!begun_) throw Error("it does not begin with its names");
      take_events(json);
    }
  }
  void end() const {
    if (!begun_) throw Error("it is empty");
    check_whole();
  }

 private:
  void begin(const Json& json) {
    begun_ = true;
    process_ = Process();
    seen_ = 0;
    told_ = field<std::uint64_t>(json, "events");
    const EventsHead head = read_head(json, process_);
    if (visitor_.begin) visitor_.begin(head);
  }

  void take_events(const Json& json) {
    process_.trace.clear();
    process_.ranges.clear();
    process_.allocations.clear();
    const auto of = field<std::string>(json, "kind");
    for_each_kind([&]<class Event>() {
      if (of == Kind<Event>::name) read_block<Event>(json, process_);
    });
    check_indices(process_);
    seen_ += process_.events();
    visitor_.block(process_);
  }

  /// A member that is cut off at its first bytes is no error to gzip.
  void check_whole() const {
    if (seen_ != told_) throw Error("it has {} of its {} events", seen_, told_);
  }

  const EventVisitor& visitor_;
  Process process_;
  bool begun_ = false;
  std::uint64_t told_ = 0, seen_ = 0;
};

}  // namespace

void read_events(const fs::path& file, const EventVisitor& visitor) {
  try {
    constexpr std::size_t kLongestLine = std::size_t{512} << 20;
    TextLines lines(file, kLongestLine);
    Reader reader(visitor);
    for (std::string_view line; lines.next(line);) {
      stop_if_asked();
      if (lines.torn()) throw Error("it ends in the middle of a block");
      reader.take(line);
    }
    reader.end();
  } catch (const WriteError&) {
    throw;  // of what is made of the events
  } catch (const Stopped&) {
    throw;
  } catch (const Error& error) {
    throw Error("{}: {}", file.string(), error.what());
  }
}

}  // namespace launchgap::recording
