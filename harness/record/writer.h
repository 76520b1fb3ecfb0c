// Writes session.json, and the records of one run, each as one line and by one write, so that
// whatever kills the process leaves every record before it whole.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "harness/core/block.h"
#include "harness/record/session_record.h"

namespace launchgap {

/// session.json of this folder. Throws WriteError if it cannot be written.
void write_session(const std::filesystem::path& folder, const SessionRecord& session);

class RecordWriter {
 public:
  /// Creates the file; throws WriteError if it exists or cannot be created.
  static RecordWriter create(const std::filesystem::path& path);
  /// Appends to a file whose writer is gone, after cutting off a torn last line. Throws WriteError
  /// if it cannot.
  static RecordWriter reopen(const std::filesystem::path& path);

  RecordWriter(RecordWriter&& other) noexcept;
  ~RecordWriter();

  void write(const Json& record);
  /// A `samples` record. `first` is the index of its first sample in the case and run; `more` are
  /// further metrics of the same samples; `key` is the payload of its first sample's NVTX range.
  void write_samples(std::string_view case_name,
                     int block,
                     std::uint64_t first,
                     const Block& samples,
                     std::span<const Column> more = {},
                     std::optional<std::uint64_t> key = {});

 private:
  RecordWriter(std::filesystem::path path, int descriptor);
  void write_line();

  std::filesystem::path path_;
  int descriptor_;
  std::string line_;
};

}  // namespace launchgap
