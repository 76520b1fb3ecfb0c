// The events of a process, kept: what import and export share, and what one looks at beside an odd
// number. One file for each process, in sections: a recording is one, and of a traced run each case
// has its own, for it is written when the case ends. Each line is a gzip member, so that a reader
// needs memory for one line, and a writer that is killed leaves whole ones. docs/record-schema.md
// has the form.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/import/recording.h"

namespace launchgap::recording {

/// What a section begins with.
struct EventsHead {
  std::string recorder, clock;
  std::uint64_t pid = 0;
  std::optional<std::int64_t> rank;
  std::vector<Gpu> gpus;
  std::string case_name = {};     // of a traced run
  std::optional<int> block = {};  // of the case
  std::int64_t first_ns = 0;      // when its first event began; the writer finds it out
};

/// Writes a file of events, section by section. Throws WriteError.
class EventWriter {
 public:
  /// Where nothing is yet.
  explicit EventWriter(const std::filesystem::path& file);
  ~EventWriter();
  EventWriter(const EventWriter&) = delete;
  EventWriter& operator=(const EventWriter&) = delete;

  /// All of the process's events as a section.
  void write(const EventsHead& head, const Process& process);

 private:
  void compress(std::string_view line);
  void flush();

  std::filesystem::path path_;
  int descriptor_;
  std::string waiting_;  // compressed
};

/// What a reader of events is told.
struct EventVisitor {
  /// At the beginning of each section; may be empty.
  std::function<void(const EventsHead&)> begin;
  /// Of each block of a section: its events and no others, with all of the section's names, threads
  /// and streams.
  std::function<void(const Process&)> block;
  /// Whether events between these times are asked for; blocks that are not are passed over. Where
  /// empty, all are.
  std::function<bool(std::int64_t first_ns, std::int64_t last_ns)> wants = {};
};

/// Reads a file of events, block by block. Throws Error that names the file for what is damaged.
void read_events(const std::filesystem::path& file, const EventVisitor& visitor);

/// "records/x.jsonl" → "events/x.jsonl.gz".
std::filesystem::path events_of(const std::filesystem::path& records_file);

}  // namespace launchgap::recording
