// Tracing by CUPTI's activity records.
//
// What keeps it out of trouble, each learnt by others: kinds are enabled before a context exists
// (kineto#542); launch calls are enabled one by one, not whole domains; no timestamp callback
// (zero timestamps in 12.6 U2 to 13.0); one session per process (graph correlation ids in later
// ones); no cuptiFinalize (kineto#686); buffers are kept for good (pytorch#195471); no CUPTI call
// from destructors or exit handlers.
#pragma once

#include "harness/trace/cupti/cupti.h"
#include "harness/trace/tracer.h"

namespace launchgap::cupti {

class CuptiTracer : public Tracer {
 public:
  explicit CuptiTracer(TraceLevel level);
  TraceLevel level() const override { return level_; }
  void collect(activity::Trace& trace, bool forced) override;
  std::int64_t clock_ns() override;
  std::optional<LoadedLibrary> loaded_library() const override { return cupti_->facts; }
  std::vector<std::string> notes() const override { return notes_; }

 private:
  void subscribe();
  void enable();
  void enable_kind(abi::Kind kind, const char* what);
  void enable_calls();
  void check(abi::Result code, const char* call) const;
  [[noreturn]] void refuse(abi::Result code, const char* call) const;

  TraceLevel level_;
  const Cupti* cupti_ = nullptr;
  abi::Subscriber subscriber_ = nullptr;
  std::vector<std::string> notes_;
};

}  // namespace launchgap::cupti
