// A pattern: what a program asked of a device in one of its steps, as operations in the order of
// their calls, with the host's own time between them. It can be done again elsewhere.
// docs/recordings.md has its form as a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace launchgap {

enum class PatternAction : std::uint8_t {
  ahead,           // work from before the step, which the stream still has to do when it begins
  kernel,          // a launch
  copy_to_device,  // from the host
  copy_to_host,
  copy,  // within the device
  fill,
  wait,             // of the host, for a stream
  wait_all,         // of the host, for the device
  allocate,         // a block of memory
  allocate_pooled,  // the same, of the device's pool
  release,          // the same block
  record_event,     // in a stream
  wait_event,       // of a stream, for an event
};

struct PatternActionInfo {
  PatternAction action;
  std::string_view name, meaning;
};
/// All of them, in the order of the enumeration.
std::span<const PatternActionInfo> pattern_actions();
std::string_view name_of(PatternAction action);

constexpr bool is_copy(PatternAction action) {
  return action == PatternAction::copy_to_device || action == PatternAction::copy_to_host ||
         action == PatternAction::copy;
}

/// What a stream does: it can be part of a graph.
constexpr bool is_work(PatternAction action) {
  return action == PatternAction::kernel || action == PatternAction::fill || is_copy(action);
}
constexpr bool is_allocation(PatternAction action) {
  return action == PatternAction::allocate || action == PatternAction::allocate_pooled;
}

/// Times are nanoseconds.
struct PatternOperation {
  PatternAction action = PatternAction::kernel;
  std::uint32_t stream = 0;
  std::int64_t gap_ns = 0;     // of the host, from the end of the call before to this one
  std::int64_t call_ns = 0;    // of the call, where it was recorded
  std::int64_t device_ns = 0;  // of the device
  std::uint64_t bytes = 0;     // of copies, fills and blocks
  /// Of a kernel, copy or fill the launch of the graph that it is part of, from 1, or 0; of a block
  /// or an event which it is.
  std::uint32_t number = 0;
  bool blocks = false;  // a copy whose call returns when it is done
  bool operator==(const PatternOperation&) const = default;
};

/// Where a pattern is from. Fields are those of session.json.
struct PatternOrigin {
  std::string name;    // "resnet50_training": of the axis, and of the file
  std::string gpu;     // that it was recorded on; empty where that is not known
  std::string source;  // "session recorded-1f…, step 12"
  /// From the first call to the end of the last work, and to the return of the last call.
  std::optional<std::int64_t> recorded_ns, recorded_host_ns;
  double kernel_factor = 1;  // kernels last so many times as long as they did
  /// Of calls that are no operations, and gaps therefore.
  std::int64_t other_calls_ns = 0;
  std::string incomplete;  // why nothing can be concluded from it; empty: it can
  std::vector<std::string>
      remarks;  // what the recording does not tell, and what is replayed instead

  static void fields(auto& self, auto&& field) {
    field("name", self.name);
    field.optional("gpu", self.gpu);
    field.optional("source", self.source);
    field("recorded_ns", self.recorded_ns);
    field("recorded_host_ns", self.recorded_host_ns);
    field.optional("kernel_factor", self.kernel_factor);
    field.optional("other_calls_ns", self.other_calls_ns);
    field.optional("incomplete", self.incomplete);
    field.optional("remarks", self.remarks);
  }
};

struct Pattern {
  PatternOrigin origin;
  std::vector<PatternOperation> operations;
};

/// What a pattern comes to.
struct PatternTotals {
  std::size_t kernels = 0;   // also those ahead
  std::size_t launches = 0;  // calls that launch: of a graph one
  std::size_t copies = 0, fills = 0, waits = 0, graphs = 0;
  std::size_t allocations = 0, pooled = 0;  // blocks that are taken; those of them from the pool
  std::uint32_t streams = 0;
  std::int64_t gaps_ns = 0;             // all gaps
  std::int64_t kernel_ns = 0;           // of all kernels together
  std::int64_t longest_ns = 0;          // the gaps together with the work of all streams
  std::uint64_t most_live_bytes = 0;    // of blocks that are allocated
  std::uint64_t device_copy_bytes = 0;  // the largest copy or fill
  std::uint64_t host_copy_bytes = 0;    // the largest from or to the host

  /// Of the device, for all of it.
  std::uint64_t device_bytes() const { return most_live_bytes + 2 * device_copy_bytes; }
};
PatternTotals totals_of(const Pattern& pattern);

inline constexpr std::size_t kMostPatternOperations = 200'000;
inline constexpr std::uint32_t kMostPatternStreams = 128;
/// A pattern that takes longer than this cannot be measured often enough.
inline constexpr std::int64_t kLongestPatternNs = 60'000'000'000;

/// Throws Error that names the operation, from 1, and the figure: times below zero, more streams or
/// operations than may be, longer than kLongestPatternNs, an event that is waited for before it is
/// recorded, a block that is released and not allocated, copies, fills and blocks of nothing, a
/// graph whose works do not follow each other, no work at all.
void check_pattern(const Pattern& pattern);

/// The operations as a table, and back. Reading throws Error, which names table and line, and what
/// check_pattern() does.
std::string pattern_text(const Pattern& pattern);
std::vector<PatternOperation> parse_pattern(std::string_view text, const std::string& name);
inline constexpr std::size_t kLongestPatternFile = std::size_t{32} << 20;  // bytes
Pattern read_pattern(const std::filesystem::path& file);

/// What a name of a case may have: letters, digits, '_', '-' and '.'. All else becomes '_', and
/// what is too long is cut before the `ending`.
std::string pattern_name(std::string_view text, std::string_view ending = {});

}  // namespace launchgap
