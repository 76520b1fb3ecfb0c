#include "harness/run/process.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "harness/core/clock.h"
#include "harness/core/errors.h"
#include "harness/core/system_files.h"

namespace launchgap {
namespace {

constexpr std::size_t kKeptOutput = 8192;

/// A descriptor that closes itself, out of the range that a child is given.
class Descriptor {
 public:
  explicit Descriptor(int descriptor) : descriptor_(fcntl(descriptor, F_DUPFD_CLOEXEC, 10)) {
    ::close(descriptor);
    if (descriptor_ < 0) throw Error(with_errno("no file descriptor is left"));
  }
  Descriptor(Descriptor&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  ~Descriptor() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  int get() const { return descriptor_; }
  int release() { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_;
};

std::pair<Descriptor, Descriptor> make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw Error(with_errno("a pipe cannot be made"));
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

/// The job as a file in memory, so that writing it never waits for the reader.
Descriptor job_file(const Json& job) {
  const int raw = memfd_create("launchgap-job", MFD_CLOEXEC);
  if (raw < 0) throw Error(with_errno("a file in memory cannot be made"));
  Descriptor file(raw);
  const std::string text = to_line(job);
  for (std::size_t written = 0; written < text.size();) {
    const ssize_t n = write(file.get(), text.data() + written, text.size() - written);
    if (n < 0 && errno != EINTR) throw Error(with_errno("a worker's job cannot be written"));
    if (n > 0) written += static_cast<std::size_t>(n);
  }
  lseek(file.get(), 0, SEEK_SET);
  return file;
}

}  // namespace

std::string own_executable() {
  std::array<char, 4096> path{};
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size() - 1);
  if (length <= 0) throw Error(with_errno("/proc/self/exe cannot be read"));
  return path.data();
}

std::string ProcessEnd::text() const {
  if (unknown) return "ended, and how is not known";
  if (signal == 0) return fmt::format("exited with {}", exit_code);
  const char* name = sigabbrev_np(signal);
  return name ? fmt::format("was killed by SIG{}", name)
              : fmt::format("was killed by signal {}", signal);
}

WorkerProcess::WorkerProcess(const Json& job,
                             const std::map<std::string, std::string>& environment) {
  Json own_job = job;
  own_job["parent"] = getpid();
  const Descriptor input = job_file(own_job);
  auto [messages_read, messages_write] = make_pipe();
  auto [output_read, output_write] = make_pipe();

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output_write.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output_write.get(), STDERR_FILENO);
  posix_spawn_file_actions_adddup2(&actions, messages_write.get(), kMessageDescriptor);

  // A group of its own, so that Ctrl-C reaches the parent alone, and the default disposition of
  // signals.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t defaults, unblocked;
  sigfillset(&defaults);
  sigemptyset(&unblocked);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setsigmask(&attributes, &unblocked);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);

  std::map<std::string, std::string> all = environment;
  all.merge(own_environment());
  std::vector<std::string> variables;
  for (const auto& [name, value] : all) variables.push_back(name + "=" + value);
  std::vector<char*> envp;
  for (std::string& variable : variables) envp.push_back(variable.data());
  envp.push_back(nullptr);

  std::string executable = own_executable();
  std::string command = "worker", option = "--job";
  std::array<char*, 4> argv = {executable.data(), command.data(), option.data(), nullptr};
  const int failed =
      posix_spawn(&pid_, executable.c_str(), &actions, &attributes, argv.data(), envp.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (failed) {
    errno = failed;
    pid_ = -1;
    throw Error(with_errno(fmt::format("{} worker cannot be started", executable)));
  }
  end_descriptor_ = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
  messages_ = messages_read.release();
  output_ = output_read.release();
  for (const int descriptor : {messages_, output_}) fcntl(descriptor, F_SETFL, O_NONBLOCK);
}

WorkerProcess::~WorkerProcess() {
  if (!ended()) kill(1);
  for (const int descriptor : {messages_, output_, end_descriptor_}) {
    if (descriptor >= 0) ::close(descriptor);
  }
}

void WorkerProcess::read_into(int& descriptor, std::string& text) {
  // One that prints without end is read from again, and does not keep the others from being read.
  constexpr std::size_t kMostAtOnce = 1 << 20;
  const std::size_t before = text.size();
  std::array<char, 4096> chunk;
  while (descriptor >= 0 && text.size() - before < kMostAtOnce) {
    const ssize_t n = read(descriptor, chunk.data(), chunk.size());
    if (n > 0) {
      text.append(chunk.data(), static_cast<std::size_t>(n));
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
      ::close(descriptor);
      descriptor = -1;
    } else if (errno == EAGAIN) {
      return;
    }
  }
}

std::vector<Json> WorkerProcess::receive() {
  read_into(output_, output_text_);
  if (output_text_.size() > 2 * kKeptOutput)
    output_text_.erase(0, output_text_.size() - kKeptOutput);
  read_into(messages_, message_text_);
  std::vector<Json> messages;
  std::size_t begin = 0;
  for (std::size_t end; (end = message_text_.find('\n', begin)) != std::string::npos;
       begin = end + 1) {
    Json message = Json::parse(message_text_.substr(begin, end - begin), nullptr, false);
    if (!message.is_discarded()) messages.push_back(std::move(message));
  }
  message_text_.erase(0, begin);
  return messages;
}

const std::optional<ProcessEnd>& WorkerProcess::ended() {
  if (end_ || pid_ <= 0) return end_;
  int status = 0;
  const pid_t waited = waitpid(pid_, &status, WNOHANG);
  if (waited == pid_) {
    end_ =
        WIFSIGNALED(status) ? ProcessEnd{0, WTERMSIG(status)} : ProcessEnd{WEXITSTATUS(status), 0};
  } else if (waited < 0 && errno == ECHILD) {
    end_ = ProcessEnd{0, 0, true};
  }
  return end_;
}

bool WorkerProcess::kill(double seconds) {
  if (ended()) return true;
  ::kill(pid_, SIGKILL);
  const std::int64_t until = now_ns() + static_cast<std::int64_t>(seconds * 1e9);
  while (!ended()) {
    if (now_ns() > until) return false;
    usleep(1000);
  }
  return true;
}

std::string WorkerProcess::last_output() const {
  std::string text =
      output_text_.substr(output_text_.size() - std::min<std::size_t>(output_text_.size(), 500));
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  const std::size_t begin = text.find_first_not_of(' ');
  return begin == std::string::npos ? ""
                                    : text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

void wait_for_any(const std::vector<WorkerProcess*>& workers, int milliseconds) {
  std::vector<pollfd> descriptors;
  for (const WorkerProcess* worker : workers) {
    for (const int descriptor :
         {worker->messages_descriptor(), worker->output_descriptor(), worker->end_descriptor()}) {
      if (descriptor >= 0) descriptors.push_back({descriptor, POLLIN, 0});
    }
    if (worker->end_descriptor() < 0) milliseconds = std::min(milliseconds, 20);
  }
  poll(descriptors.data(), descriptors.size(), milliseconds);
}

std::vector<Message> receive_messages(WorkerProcess& worker) {
  std::vector<Message> messages;
  for (const Json& json : worker.receive()) {
    if (auto message = message_from_json(json)) messages.push_back(*std::move(message));
  }
  return messages;
}

void run_worker(const Job& job,
                const std::map<std::string, std::string>& environment,
                double seconds,
                const std::function<bool()>& stopped,
                const std::function<void(const Message&)>& heard) {
  WorkerProcess worker(to_json(job), environment);
  std::string error;
  const std::int64_t until = now_ns() + static_cast<std::int64_t>(seconds * 1e9);
  const auto collect = [&] {
    for (const Message& message : receive_messages(worker)) {
      if (const auto* failed = std::get_if<message::Failed>(&message)) error = failed->error;
      heard(message);
    }
  };
  while (!worker.ended()) {
    if (now_ns() > until) {
      worker.kill(5);
      throw Error("it did not answer within {:.0f} s", seconds);
    }
    if (stopped()) throw Error("it was stopped");
    wait_for_any({&worker}, 200);
    collect();
  }
  collect();
  if (worker.ended()->clean()) return;
  if (!error.empty()) throw Error(error);
  const std::string output = worker.last_output();
  throw Error("its process {}{}{}", worker.ended()->text(), output.empty() ? "" : ": ", output);
}

Json receive_job() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::string text;
  std::array<char, 4096> chunk;
  for (ssize_t n; (n = read(STDIN_FILENO, chunk.data(), chunk.size())) > 0;)
    text.append(chunk.data(), static_cast<std::size_t>(n));
  Json job = Json::parse(text, nullptr, false);
  if (!job.is_object())
    throw UsageError(
        "`worker --job` is internal: it takes a job from `launchgap run` on its standard input");
  if (maybe<pid_t>(job, "parent").value_or(0) != getppid())
    throw Error("the parent of this worker is gone");
  fcntl(kMessageDescriptor, F_SETFD, FD_CLOEXEC);
  return job;
}

void send_message(const Json& message) {
  const std::string line = to_line(message);
  // The reader may be gone, and then nobody is interested.
  [[maybe_unused]] const ssize_t ignored = write(kMessageDescriptor, line.data(), line.size());
}

void report(const Message& message) {
  send_message(to_json(message));
}

}  // namespace launchgap
