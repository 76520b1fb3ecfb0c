// Worker processes: started fresh, watched over a pipe, and never waited for without a limit.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

#include "harness/run/job.h"
#include "harness/run/message.h"

namespace launchgap {

/// The file of this binary. Throws Error if the system does not tell.
std::string own_executable();

/// A worker: this binary with a job on its standard input. It reports by JSON lines on a pipe of
/// its own; what it or a library prints elsewhere is kept, the last few KiB of it, to explain its
/// end.
class WorkerProcess {
 public:
  /// Starts it. `environment` is added to this process's. Throws Error if the system refuses.
  WorkerProcess(const Json& job, const std::map<std::string, std::string>& environment);
  /// Kills it if it still runs.
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  /// File descriptors to poll for reading; a closed one is -1.
  int messages_descriptor() const { return messages_; }
  int output_descriptor() const { return output_; }
  /// Becomes readable when the process ends; -1 where the kernel has no such thing (before
  /// Linux 5.3).
  int end_descriptor() const { return end_descriptor_; }

  /// Reads what there is, without waiting; complete messages come back in order.
  std::vector<Json> receive();
  /// The end of the process, once it ended; does not wait.
  const std::optional<ProcessEnd>& ended();
  /// Sends SIGKILL and waits up to `seconds`. False if it is still there: stuck in the kernel.
  bool kill(double seconds);

  pid_t pid() const { return pid_; }
  /// The last lines that the process printed, on one line.
  std::string last_output() const;

 private:
  void read_into(int& descriptor, std::string& text);

  pid_t pid_ = -1;
  int messages_ = -1;
  int output_ = -1;
  int end_descriptor_ = -1;
  std::string message_text_;
  std::string output_text_;
  std::optional<ProcessEnd> end_;
};

/// Waits until one of the workers has something to read or ends, at most `milliseconds`, or a
/// signal arrives. A parent that wakes up often would disturb the measurements of its workers.
void wait_for_any(const std::vector<WorkerProcess*>& workers, int milliseconds);

/// What a worker of `run` has said since, in order.
std::vector<Message> receive_messages(WorkerProcess& worker);

/// Runs a worker to its end; `heard` has each message. Throws Error if it fails or takes longer
/// than `seconds`, with what it printed, and if `stopped` becomes true.
void run_worker(
    const Job& job,
    const std::map<std::string, std::string>& environment,
    double seconds,
    const std::function<bool()>& stopped = [] { return false; },
    const std::function<void(const Message&)>& heard = [](const Message&) {});

/// The descriptor on which a worker reports.
inline constexpr int kMessageDescriptor = 3;

/// For a worker's start: dies with its parent, and reads its job. Throws Error if there is none.
Json receive_job();
void send_message(const Json& message);
/// The same, of what a worker of `run` says.
void report(const Message& message);

}  // namespace launchgap
