// The events of a traced run that are kept: those around each case's slowest samples, or all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/block.h"
#include "harness/core/case_name.h"
#include "harness/device/facts.h"
#include "harness/import/event_file.h"
#include "harness/record/records.h"
#include "harness/trace/trace_clock.h"

namespace launchgap {

/// Which events of a traced run are kept.
enum class KeptEvents { around_slowest, all };

/// The metric by which samples are slow or not, of those that a case has: from call to kernel, or
/// else the whole way there and back, or else the first that is a time. Nothing if none is one.
std::optional<std::string_view> metric_of_slowness(const std::vector<std::string_view>& metrics,
                                                   const std::vector<Column>& traced);

class EventKeeper {
 public:
  /// For the file of events of a process that records what `device` does. The file is made when
  /// there is something to keep.
  EventKeeper(std::filesystem::path file, const DeviceFacts& device, KeptEvents kept);

  /// A case begins; of the one before, what was not written is forgotten.
  void begin(const CaseName& name);
  /// After a block: `first` is the number of its first sample, `trace` what was recorded of it,
  /// `traced` the values that came of it. Throws WriteError.
  void add(int block,
           std::uint64_t first,
           const Block& samples,
           const std::vector<Column>& traced,
           const activity::Trace& trace,
           const TraceClock& clock);
  /// Writes what is kept of the case, and tells its slowest samples, the slowest first. Throws
  /// WriteError.
  std::vector<SlowSampleRecord> finish();

 private:
  struct KeptBlock {
    int block = 0;
    recording::Process process;
  };

  void note_slow(int block,
                 std::uint64_t first,
                 const Block& samples,
                 const std::vector<Column>& traced,
                 const std::vector<std::int64_t>& bounds);
  /// Whether something happened around one of the block's slow samples.
  bool is_beside_slow(int block, std::int64_t begin_ns, std::int64_t end_ns) const;
  void write(int block, const recording::Process& process);

  std::filesystem::path file_;
  recording::EventsHead head_;
  KeptEvents kept_;
  std::string case_name_;
  std::vector<SlowSampleRecord> slowest_;  // the slowest first
  std::vector<KeptBlock> blocks_;
  std::optional<recording::EventWriter> writer_;
};

}  // namespace launchgap
