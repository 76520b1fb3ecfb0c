#include "harness/run/session_folder.h"

#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/core/output_file.h"
#include "harness/device/backend.h"
#include "harness/measure/pattern_list.h"
#include "harness/record/records.h"

namespace launchgap {

namespace fs = std::filesystem;

SessionFolder::SessionFolder(fs::path path, SessionRecord record)
    : path_(std::move(path)), record_(std::move(record)) {
  std::error_code failed;
  if (fs::exists(path_, failed) &&
      !(fs::is_directory(path_, failed) && fs::is_empty(path_, failed))) {
    throw UsageError(
        "{} exists already and is not an empty folder: name another with -o, or remove it",
        path_.string());
  }
  fs::create_directories(path_ / "records", failed);
  if (failed) throw UsageError("{} cannot be made: {}", path_.string(), failed.message());
}

void SessionFolder::write(const char* state, const std::vector<DeviceFacts>& devices) {
  record_.state = state;
  record_.devices = devices;
  write_session(path_, record_);
}

void SessionFolder::write_last(const char* state, const std::vector<DeviceFacts>& devices) {
  try {
    write(state, devices);
  } catch (const WriteError&) {
    constexpr std::string_view kRunning = "\"state\": \"running\"",
                               kStopped = "\"state\": \"stopped\"";
    static_assert(kRunning.size() == kStopped.size());
    std::fstream file(path_ / "session.json", std::ios::in | std::ios::out | std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    const std::size_t at = text.find(kRunning);
    if (at != std::string::npos) {
      file.seekp(static_cast<std::streamoff>(at));
      file << kStopped;
    }
    throw;
  }
}

std::vector<std::string> SessionFolder::keep_patterns() const {
  std::vector<std::string> files;
  if (record_.patterns.empty()) return files;
  std::error_code failed;
  fs::create_directories(path_ / "patterns", failed);  // that it cannot be, writing says
  for (const PatternOrigin& origin : record_.patterns) {
    const fs::path file = fs::absolute(path_) / "patterns" / (origin.name + ".csv");
    files.push_back(file.string());
    write_file(file, pattern_text(pattern_named(origin.name)));
  }
  return files;
}

fs::path SessionFolder::records(const PlannedRun& run,
                                const DeviceFacts& device,
                                int attempt) const {
  return path_ / "records" /
         records_file_name(record_.host.node,
                           is_gpu(device) ? device.uuid : device.backend,
                           {.device = device.uuid,
                            .replicate = run.replicate,
                            .arm = std::string(name_of(run.arm)),
                            .process_config = run.process_config,
                            .cases = {}},
                           attempt);
}

RecordWriter SessionFolder::reopen_records(const PlannedRun& run,
                                           const DeviceFacts& device,
                                           int attempt) const {
  const fs::path file = records(run, device, attempt);
  std::error_code ignored;
  const bool begun = fs::exists(file, ignored) && fs::file_size(file, ignored) > 0;
  RecordWriter writer = RecordWriter::reopen(file);
  if (!begun) {
    RunRecord record;
    record.session_id = record_.session_id.value_or("");
    record.node = record_.host.node;
    record.replicate = run.replicate;
    record.arm = name_of(run.arm);
    record.process_config = run.process_config;
    record.attempt = attempt;
    record.begin_utc = utc_now();
    record.device = device;
    record.simulated = device.simulated;
    writer.write(record_to_json(record));
  }
  return writer;
}

}  // namespace launchgap
