#include "harness/trace/tracer.h"

#include <cstdlib>
#include <string_view>
#include <unistd.h>

#include "harness/core/clock.h"
#include "harness/device/backend.h"
#include "harness/device/host/recorder.h"
#include "harness/trace/cupti/cupti_tracer.h"

namespace launchgap {
namespace {

/// The host device traces itself, on the clock that everything else is on.
class HostTracer : public Tracer {
 public:
  explicit HostTracer(TraceLevel level)
      : level_(level),
        recorder_(
            {.kernels = level >= TraceLevel::kernels, .everything = level == TraceLevel::all}) {
    host::recorder = &recorder_;
  }
  TraceLevel level() const override { return level_; }
  void collect(activity::Trace& trace, bool) override { recorder_.take(trace); }
  std::int64_t clock_ns() override { return now_ns(); }
  std::optional<LoadedLibrary> loaded_library() const override { return std::nullopt; }

 private:
  TraceLevel level_;
  host::Recorder recorder_;
};

bool traced = false;

bool is_set(const char* variable) {
  const char* const value = std::getenv(variable);
  return value && *value;
}

}  // namespace

Tracer& start_tracer(const std::string& backend, TraceLevel level) {
  traced = true;                    // also if it fails: CUPTI may be half-way in
  static Tracer* tracer = nullptr;  // lives on: records may still be written while the process ends
  if (tracer) throw Error("this process is being traced already");
  if (backend_named(backend).recorded_by == RecordedBy::cupti) {
    tracer = new cupti::CuptiTracer(level);
  } else {
    tracer = new HostTracer(level);
  }
  return *tracer;
}

bool process_is_traced() {
  return traced;
}

std::optional<std::string> tool_by_environment() {
  for (char** variable = environ; *variable; ++variable) {
    const std::string_view text = *variable;
    if (text.starts_with("NSYS_PROFILING_SESSION_ID=") ||
        text.starts_with("NSYS_TARGET_STD_REDIRECT_ACTION=")) {
      return "nsys";
    }
    if (text.starts_with("NV_NSIGHT_")) return "ncu";
  }
  if (is_set("CUDA_INJECTION64_PATH")) return "an injected tool";
  return std::nullopt;
}

}  // namespace launchgap
