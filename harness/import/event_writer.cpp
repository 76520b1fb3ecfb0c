#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <new>
#include <span>
#include <string_view>
#include <unistd.h>
#include <utility>
#include <zlib.h>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/core/stop.h"
#include "harness/import/event_file.h"
#include "harness/import/event_kinds.h"
#include "harness/record/schema.h"

namespace launchgap::recording {
namespace {

namespace fs = std::filesystem;

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

}  // namespace launchgap::recording
