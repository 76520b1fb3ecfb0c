// Where an imported run comes from, and how good its recording is, as a record with its fields.
// docs/record-schema.md says what they mean.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/record/fields.h"

namespace launchgap {

/// Records of the file that were not taken, "calls that are in two rows".
struct LeftOutRecords {
  std::string what;
  std::uint64_t count = 0;

  static void fields(auto& self, auto&& field) {
    field("what", self.what);
    field("count", self.count);
  }
};

/// One process of a recording, on one GPU.
struct RecordingRecord {
  static constexpr std::string_view kName = "recording";
  std::string file;      // its name, without the folder
  std::string recorder;  // "Nsight Systems 2024.5.1"
  std::string form;      // "SQLite, schema 3.13.2"
  std::string clock;     // "Unix time"
  std::optional<std::uint64_t> pid;
  std::optional<std::int64_t> rank;
  std::optional<std::int64_t> ranks;  // that the job has, recorded or not
  std::int64_t tick_ns = 1;
  /// The device's clock is ahead of the host's by so much, at least and at most, as far as causes
  /// come before effects.
  std::optional<std::int64_t> clock_ahead_least_ns, clock_ahead_most_ns;
  std::optional<double> clock_drift_ppm;
  /// Where they disagree and it is known: how far ahead it is at the first launch, give or take.
  std::optional<std::int64_t> clock_offset_ns;
  std::optional<double> clock_offset_error_ns;
  bool clock_corrected = false;  // whether the samples are on the host's clock for it
  std::string clock_problem;     // why launch latencies are missing; empty where they are not
  std::uint64_t calls = 0, threads = 0, streams = 0;
  /// What the program did with its allocator on this GPU; absent where nothing recorded that.
  std::optional<std::uint64_t> allocations, releases, failed_allocations;
  std::optional<std::uint64_t> unseen_releases;   // of what was allocated before it began
  std::optional<std::uint64_t> missing_releases;  // the address was allocated again
  std::optional<std::uint64_t> most_live_bytes, live_at_end_bytes;
  std::vector<LeftOutRecords> left_out;
  std::vector<std::string> remarks;

  static void fields(auto& self, auto&& field) {
    field.optional("file", self.file);
    field.optional("recorder", self.recorder);
    field.optional("form", self.form);
    field.optional("clock", self.clock);
    field("pid", self.pid);
    field("rank", self.rank);
    field("ranks", self.ranks);
    field.optional("tick_ns", self.tick_ns);
    field("clock_ahead_least_ns", self.clock_ahead_least_ns);
    field("clock_ahead_most_ns", self.clock_ahead_most_ns);
    field("clock_drift_ppm", self.clock_drift_ppm);
    field("clock_offset_ns", self.clock_offset_ns);
    field("clock_offset_error_ns", self.clock_offset_error_ns);
    field.optional("clock_corrected", self.clock_corrected);
    field.optional("clock_problem", self.clock_problem);
    field.optional("calls", self.calls);
    field.optional("threads", self.threads);
    field.optional("streams", self.streams);
    field("allocations", self.allocations);
    field("releases", self.releases);
    field("failed_allocations", self.failed_allocations);
    field("unseen_releases", self.unseen_releases);
    field("missing_releases", self.missing_releases);
    field("most_live_bytes", self.most_live_bytes);
    field("live_at_end_bytes", self.live_at_end_bytes);
    field.optional("left_out", self.left_out);
    field.optional("remarks", self.remarks);
  }
};

}  // namespace launchgap
