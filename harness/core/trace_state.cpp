#include "harness/core/trace_state.h"

#include <cstddef>

#include <fmt/format.h>

namespace launchgap {
namespace {

constexpr TraceStateInfo kStates[] = {
    {TraceState::off, "off", "Plain runs: nothing is recorded.", ""},
    {TraceState::ok,
     "ok",
     "100 empty launches were recorded and joined without fault before anything was measured.",
     ""},
    {TraceState::recorded, "recorded", "Somebody else recorded it, and it was imported.", ""},
    {TraceState::cupti_not_found,
     "unavailable:cupti_not_found",
     "CUPTI, NVIDIA's library for tracing, cannot be loaded.",
     "Install it with the CUDA toolkit, or name the file with LAUNCHGAP_LIBCUPTI."},
    {TraceState::cupti_too_old,
     "unavailable:cupti_too_old",
     "The CUPTI that was found is older than CUDA 11.0, and its records cannot be read.",
     "Install that of CUDA 11.0 or later, where the driver allows it."},
    {TraceState::no_kernel,
     "unavailable:no_kernel",
     "The kernel that proves that tracing works could not be loaded.",
     "See whether plain launches work on this device, and how launchgap was built."},
    {TraceState::subscriber_busy,
     "degraded:subscriber_busy",
     "nsys, ncu, a debugger or another client of CUPTI has the process, and only one can.",
     "Run without the tool to get traced runs."},
    {TraceState::insufficient_privileges,
     "degraded:insufficient_privileges",
     "The driver lets only an administrator trace.",
     "Load the nvidia module with NVreg_RestrictProfilingToAdminUsers=0, or run as root."},
    {TraceState::not_initialized,
     "degraded:not_initialized",
     "CUPTI could not be started: the driver is older than CUPTI, or there is none.",
     "Use the CUPTI of the driver's CUDA version, or update the driver."},
    {TraceState::unknown,
     "degraded:unknown",
     "CUPTI refused with a code that has no explanation here.",
     "Look the code up in CUPTI's documentation; the reason has its own words."},
    {TraceState::no_records,
     "invalid:no_records",
     "Tracing was on, and nothing was recorded.",
     "Something may switch tracing off in the process; run without other tools."},
    {TraceState::dropped,
     "invalid:dropped",
     "Records were lost, so nobody knows which launches are missing. None is shown.",
     "Repeat the run on a quieter machine; if it recurs, use fewer launches per block."},
    {TraceState::bad_timestamps,
     "invalid:bad_timestamps",
     "Records cannot be: without a time, an end before the start, a kernel before its launch, an "
     "unknown kind. None is shown.",
     "Update the driver and CUPTI; report it to NVIDIA if it recurs."},
    {TraceState::unjoined,
     "invalid:unjoined",
     "Launches and kernels did not match each other one to one. None is shown.",
     "Run without other tools; if it recurs, try another version of CUPTI."},
    {TraceState::clock_step,
     "invalid:clock_step",
     "One of the clocks jumped by more than 10 us while the case ran, which shifts the trace. None "
     "is shown.",
     "Let the clock settle before measuring: NTP must slew, not step."},
};

}  // namespace

std::span<const TraceStateInfo> trace_states() {
  return kStates;
}

std::string text_of(TraceState state, std::string_view detail) {
  const std::string_view name = kStates[static_cast<std::size_t>(state)].name;
  return detail.empty() ? std::string(name) : fmt::format("{}({})", name, detail);
}

bool is_invalid(TraceState state) {
  return state >= TraceState::no_records;
}

}  // namespace launchgap
