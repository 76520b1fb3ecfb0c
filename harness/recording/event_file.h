// The events of a process, kept: what import and export share, and what one looks at beside an odd
// number. One file for each process, gzip in members of one block each, so that a reader needs
// memory for a block, and a writer that is killed leaves whole ones. docs/record-schema.md has the
// form.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "harness/recording/recording.h"

namespace launchgap::recording {

/// What a file of events begins with.
struct EventsHead {
  std::string recorder, clock;
  std::uint64_t pid = 0;
  std::optional<std::int64_t> rank;
  std::vector<Gpu> gpus;
};

/// Writes all of a process. Throws WriteError.
void write_events(const std::filesystem::path& file,
                  const EventsHead& head,
                  const Process& process);

/// Reads a file of events, block by block. Before the first block, the process that is handed over
/// has all names, threads and streams; then with each block the events of it, and no others. Throws
/// Error that names the file for what is damaged.
void read_events(const std::filesystem::path& file,
                 const std::function<void(const EventsHead&)>& begin,
                 const std::function<void(const Process&)>& block);

/// "records/x.jsonl" → "events/x.jsonl.gz".
std::filesystem::path events_of(const std::filesystem::path& records_file);

}  // namespace launchgap::recording
