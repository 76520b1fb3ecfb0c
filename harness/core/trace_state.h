// Whether a process or a case was traced, and why not: what each state means and what to do.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace launchgap {

enum class TraceState {
  off,
  ok,
  recorded,
  cupti_not_found,
  cupti_too_old,
  no_kernel,
  subscriber_busy,
  insufficient_privileges,
  not_initialized,
  unknown,
  no_records,
  dropped,
  bad_timestamps,
  unjoined,
  clock_step,
};

struct TraceStateInfo {
  TraceState state;
  std::string_view name;  // in records: "degraded:subscriber_busy", with who or what in brackets
  std::string_view meaning;
  std::string_view remedy;
};

/// All states, in the order of the enumeration.
std::span<const TraceStateInfo> trace_states();

/// As records have it: "invalid:dropped", "degraded:subscriber_busy(Nsight Systems)".
std::string text_of(TraceState state, std::string_view detail = {});

/// Whether tracing worked and what it delivered cannot be believed.
bool is_invalid(TraceState state);

}  // namespace launchgap
