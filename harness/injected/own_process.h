// The process that the recorder is in: what it must not suffer by it, and what it is.
#pragma once

#include <csignal>
#include <cstdint>

namespace launchgap::injected {

/// While it lives, a file that becomes too large for the process's limit ends a write, and not the
/// program.
class FileLimitIgnored {
 public:
  FileLimitIgnored() {
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  ~FileLimitIgnored() {
    if (sigismember(&before_, SIGXFSZ) == 1) return;
    const timespec none{};
    sigtimedwait(&signal_, nullptr, &none);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  FileLimitIgnored(const FileLimitIgnored&) = delete;
  FileLimitIgnored& operator=(const FileLimitIgnored&) = delete;

 private:
  sigset_t signal_{}, before_{};
};

/// Whether no thread but the caller's is left: main has ended by pthread_exit(), and so have all
/// others. The C library ends a process with its last thread, and the recorder's must not be it.
bool is_last_thread();

/// Of a distributed job, by whoever started it; -1 if nobody says.
std::int64_t rank_of_environment();

}  // namespace launchgap::injected
