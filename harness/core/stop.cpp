#include "harness/core/stop.h"

namespace launchgap {

volatile std::sig_atomic_t stop_signal = 0;

namespace {

struct sigaction broken_pipe_before {};  // by default, as it is where nobody asked

}  // namespace

void ignore_broken_pipes() noexcept {
  struct sigaction ignored {};
  ignored.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignored, &broken_pipe_before);
}

void restore_broken_pipes() noexcept {
  sigaction(SIGPIPE, &broken_pipe_before, nullptr);
}

SignalWatch::SignalWatch() {
  stop_signal = 0;
  struct sigaction action {};
  action.sa_handler = [](int signal) { stop_signal = signal; };
  sigaction(SIGINT, &action, &old_int_);
  sigaction(SIGTERM, &action, &old_term_);
  sigaction(SIGHUP, nullptr, &old_hup_);
  if (old_hup_.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);
}

SignalWatch::~SignalWatch() {
  sigaction(SIGINT, &old_int_, nullptr);
  sigaction(SIGTERM, &old_term_, nullptr);
  sigaction(SIGHUP, &old_hup_, nullptr);
}

}  // namespace launchgap
