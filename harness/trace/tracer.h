// Tracing a process: what is recorded, by whom, and why it may be impossible.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/core/errors.h"
#include "harness/core/process_config.h"
#include "harness/core/trace_state.h"
#include "harness/device/activity.h"
#include "harness/device/facts.h"

namespace launchgap {

/// Why there is no trace.
class TraceUnavailable : public Error {
 public:
  /// `detail` tells who has CUPTI, or with which code it refused.
  TraceUnavailable(TraceState state, const std::string& reason, const std::string& detail = {})
      : Error(text_of(state, detail) + ": " + reason),
        state_(state),
        text_(text_of(state, detail)) {}
  /// As records have it.
  const std::string& state() const { return text_; }
  bool invalid() const { return is_invalid(state_); }

 private:
  TraceState state_;
  std::string text_;
};

/// A source of activity records. There is at most one per process, it is started before the device
/// is opened, and it records until the process ends: stopping it could only go wrong.
class Tracer {
 public:
  virtual ~Tracer() = default;
  virtual TraceLevel level() const = 0;
  /// Appends the records of everything that is complete; the caller has waited for the device. With
  /// `forced` also what the source holds back because something beside it is incomplete.
  virtual void collect(activity::Trace& trace, bool forced) = 0;
  /// The clock of the records, in nanoseconds.
  virtual std::int64_t clock_ns() = 0;
  virtual std::optional<LoadedLibrary> loaded_library() const = 0;
  /// Remarks for the record: calls that the library does not know, what was enabled instead.
  virtual std::vector<std::string> notes() const { return {}; }
};

/// Starts tracing this process's use of a backend. Throws TraceUnavailable. The
/// result is never destroyed.
Tracer& start_tracer(const std::string& backend, TraceLevel level);

/// Whether start_tracer() has been called: such a process ends by _Exit, with CUPTI in it.
bool process_is_traced();

/// Whether CUPTI can be loaded here, without touching it further; else why not.
std::optional<std::string> why_no_cupti();

/// The name of a profiler or debugger that this process seems to run under, by its environment:
/// "nsys", "ncu", "an injected tool". The proof is CUPTI's answer to the one who asks.
std::optional<std::string> tool_by_environment();

}  // namespace launchgap
