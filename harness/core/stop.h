// The user's wish to stop: a signal that is noted, and seen to where things can be put away.
#pragma once

#include <csignal>

#include "harness/core/errors.h"

namespace launchgap {

/// The last of SIGINT, SIGTERM and SIGHUP that arrived while it was watched for; 0: none.
extern volatile std::sig_atomic_t stop_signal;

/// Ignores SIGPIPE from here on; to be called once, first of all.
void ignore_broken_pipes() noexcept;
/// In a child that becomes another program: what SIGPIPE did when this one was started.
void restore_broken_pipes() noexcept;

/// Notes them for as long as it lives. A SIGHUP that the caller ignores, as `nohup` does, stays
/// ignored.
class SignalWatch {
 public:
  SignalWatch();
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

 private:
  struct sigaction old_int_ {
  }, old_term_{}, old_hup_{};
};

/// Something was left off because of a signal.
class Stopped : public Error {
 public:
  Stopped() : Error("it was stopped") {}
  ExitCode exit_code() const override { return ExitCode::stopped_early; }
};

/// Throws Stopped if a signal was noted.
inline void stop_if_asked() {
  if (stop_signal) throw Stopped();
}

}  // namespace launchgap
