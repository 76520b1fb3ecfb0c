// The tracing of one run: the tracer and its proof, or the word for why there is none.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "harness/record/trace_record.h"
#include "harness/trace/canary.h"
#include "harness/trace/case_trace.h"
#include "harness/trace/tracer.h"

namespace launchgap {

class RunTracing {
 public:
  /// Starts the tracer in a traced run, which must be before the device is opened. What keeps it
  /// from starting is kept, not thrown.
  RunTracing(const std::string& backend, Arm arm, TraceLevel level);

  /// The canary; afterwards cases may be traced, or `problem()` tells why not.
  void prove(Device& device);

  /// Whether this is a traced run; if so, there is a tracer or a problem.
  bool traced() const { return traced_; }
  const std::optional<TraceUnavailable>& problem() const { return problem_; }
  /// "off" in plain runs, "ok", or the problem's word.
  std::string state() const;
  std::optional<LoadedLibrary> loaded_library() const;

  /// A `trace` record of the run: state, level, remarks and what the canary saw.
  TraceRecord record() const;
  /// Forgets what was recorded so far.
  void discard();
  /// The trace of a case that is about to be measured; null in a plain run.
  std::unique_ptr<CaseTrace> of_case(TracedAs as, int operations);
  /// A `trace` record of a case.
  static TraceRecord record(const std::string& case_name, const CaseTrace& trace);

 private:
  bool traced_;
  TraceLevel level_;
  Tracer* tracer_ = nullptr;
  std::optional<TraceUnavailable> problem_;
  Canary canary_;
};

/// Who else watches this process, where somebody does: the tool that whoever started it `named`,
/// one that the environment tells of, or whoever brought CUPTI into the process of a plain run.
std::optional<std::string> watching_tool(Arm arm, const std::optional<std::string>& named);

/// Under a tool no kernel of a GPU may wait for the host: some (ncu) let a launch return only when
/// its kernel has ended.
void keep_kernels_from_waiting(Device& device, const std::optional<std::string>& named = {});

}  // namespace launchgap
