#include "harness/doctor/programs/watch_program.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/core/clock.h"
#include "harness/core/errors.h"
#include "harness/core/number_text.h"
#include "harness/core/printable.h"
#include "harness/core/stop.h"
#include "harness/doctor/programs/process_files.h"
#include "harness/doctor/programs/trace_folder.h"

namespace launchgap::doctor {
namespace {

constexpr std::int64_t kShortest_ns = 20'000'000, kLongest_ns = 250'000'000;
constexpr std::size_t kMaxProcesses = 1024;
constexpr std::array kForwarded = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

/// The signals that are handed on are taken from a descriptor; all is as it was at the end.
class Signals {
 public:
  Signals() {
    sigset_t taken;
    sigemptyset(&taken);
    sigaddset(&taken, SIGCHLD);
    for (const int signal : kForwarded) sigaddset(&taken, signal);
    pthread_sigmask(SIG_BLOCK, &taken, &mask_);
    // An ignored SIGCHLD, which a parent can hand down, would take the program's exit code away.
    struct sigaction by_default {};
    by_default.sa_handler = SIG_DFL;
    sigaction(SIGCHLD, &by_default, &child_);
    descriptor_ = signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
    if (descriptor_ < 0) {
      restore();
      throw Error(with_errno("signals cannot be taken"));
    }
  }
  ~Signals() {
    if (descriptor_ >= 0) close(descriptor_);
    restore();
  }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  int descriptor() const { return descriptor_; }
  void restore() const {
    sigaction(SIGCHLD, &child_, nullptr);
    pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
  }
  /// Hands on what somebody sent to this process alone. What the terminal sends, the program gets
  /// by itself, and what it sends itself is its own affair.
  void forward(pid_t pid) const {
    signalfd_siginfo info{};
    while (read(descriptor_, &info, sizeof(info)) == sizeof(info)) {
      const bool sent = info.ssi_code != SI_KERNEL && static_cast<pid_t>(info.ssi_pid) != pid;
      if (info.ssi_signo != SIGCHLD && sent) kill(pid, static_cast<int>(info.ssi_signo));
    }
  }

 private:
  sigset_t mask_{};
  struct sigaction child_ {};
  int descriptor_ = -1;
};

/// The loader keeps the file of its account open under the lowest free number and writes to that
/// number until the process ends, whatever it is then: a script's `exec 3>log` would find the
/// loader's words in its log. So the numbers that scripts use are taken before the loader comes,
/// by /dev/null, which they can replace. The limit is POSIX's: shells keep to 10 and above.
void take_low_descriptors() {
  constexpr int kFirst = 3, kEnd = 10;
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  const int high = fcntl(null, F_DUPFD_CLOEXEC, kEnd);
  for (int descriptor = kFirst; descriptor < kEnd; ++descriptor) {
    const int flags = fcntl(descriptor, F_GETFD);
    if (flags < 0 || (flags & FD_CLOEXEC)) dup2(high, descriptor);
  }
}

/// What root starts often becomes another user's without a new process (gosu, setpriv), whose
/// loader goes on in the same file.
void share_account(const std::map<std::string, std::string>& environment) {
  const auto output = environment.find("LD_DEBUG_OUTPUT");
  if (geteuid() != 0 || output == environment.end()) return;
  const std::string path = fmt::format("{}.{}", output->second, getpid());
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0) return;
  fchmod(file, 0666);  // whatever the umask
  close(file);
}

/// Forks and executes. Returns the process, or -1 and why in `error`.
pid_t start(const WatchRequest& request,
            const std::map<std::string, std::string>& environment,
            const Signals& signals,
            int& error) {
  std::vector<std::string> texts = request.command;
  std::vector<char*> arguments;
  for (std::string& text : texts) arguments.push_back(text.data());
  arguments.push_back(nullptr);
  std::array<int, 2> report{};
  if (pipe2(report.data(), O_CLOEXEC) != 0) throw Error(with_errno("a pipe cannot be made"));

  const pid_t pid = fork();
  if (pid == 0) {
    for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
    signals.restore();
    restore_broken_pipes();  // ignored here, and `yes | head` relies on ending by it
    const int answer = fcntl(report[1], F_DUPFD_CLOEXEC, 10);
    share_account(environment);
    if (environment.contains("LD_DEBUG")) take_low_descriptors();
    execvp(arguments[0], arguments.data());
    const int failed = errno;
    [[maybe_unused]] const ssize_t ignored = write(answer, &failed, sizeof(failed));
    _exit(127);
  }
  const int fork_error = errno;
  close(report[1]);
  error = 0;
  ssize_t n = 0;
  do {
    n = read(report[0], &error, sizeof(error));
  } while (n < 0 && errno == EINTR);
  close(report[0]);
  if (pid < 0) {
    errno = fork_error;
    throw Error(with_errno("the program's process cannot be made"));
  }
  if (n != sizeof(error)) return pid;
  waitpid(pid, nullptr, 0);
  return -1;
}

/// What is known of all processes that were ever seen, brought up to date from time to time.
class Watch {
 public:
  Watch(pid_t pid, const WatchRequest& request, const SystemFiles& system, TraceFolder* folder)
      : pid_(pid), request_(request), system_(system), folder_(folder) {}

  /// True if one of its processes lives on: whatever that starts finds the folder's name in its
  /// environment.
  bool outlived() const {
    if (!folder_) return false;
    for (const std::string& entry : proc_.entries("/proc")) {
      const std::optional<pid_t> pid = number_of_text<pid_t>(entry);
      if (pid && is_ours(*pid)) return true;
    }
    return false;
  }

  /// True if anything new was seen.
  bool look() {
    const std::size_t before = size();
    const bool searched = folder_ && folder_->read();
    std::vector<pid_t> tree = process_tree(pid_, proc_);
    for (const pid_t pid : tree) look_at(pid);
    std::ranges::sort(tree);
    // A process leaves the tree when its parent ends, and still writes its loader's account.
    for (const pid_t pid : folder_ ? folder_->pids() : std::set<pid_t>{}) {
      if (!std::ranges::binary_search(tree, pid) && is_ours(pid)) look_at(pid);
    }
    ask_nvml();
    return searched || size() != before;
  }

  ProgramFacts result(bool traced) {
    if (folder_) folder_->read();
    ProgramFacts program;
    program.traced = traced;
    processes_[pid_].pid = pid_;  // it may have been too quick to be seen
    if (folder_) add_searches();
    program.processes.push_back(processes_[pid_]);
    for (const auto& [pid, facts] : processes_) {
      if (pid != pid_) program.processes.push_back(facts);
    }
    if (folder_ && folder_->limited()) {
      program.limitations.push_back(
          "The loader wrote more than is read: libraries that it looked for late are not known.");
    }
    if (too_many_) {
      program.limitations.push_back(fmt::format(
          "It has had more than {} processes; not all of them were looked at.", kMaxProcesses));
    }
    return program;
  }

 private:
  void look_at(pid_t pid) {
    const auto known = processes_.find(pid);
    if (known == processes_.end() && processes_.size() >= kMaxProcesses) forget_the_dull();
    if (known == processes_.end() && processes_.size() >= kMaxProcesses) {
      too_many_ = true;
      return;
    }
    ProcessFacts fresh;
    ProcessFacts& facts = known == processes_.end() ? fresh : known->second;
    const bool alive = look_at_process(pid, proc_, system_, facts);
    if (alive && known == processes_.end()) processes_.emplace(pid, std::move(fresh));
  }

  /// A process id is used again some day.
  bool is_ours(pid_t pid) const {
    const auto variables = proc_.read(fmt::format("/proc/{}/environ", pid));
    return variables && variables->find(folder_->path().string()) != std::string::npos;
  }

  /// Shells and compilers come and go by the thousand.
  void forget_the_dull() {
    std::erase_if(processes_, [this](const auto& entry) {
      return entry.first != pid_ && !entry.second.asked();
    });
  }

  void ask_nvml() {
    if (!request_.computing || now_ns() - asked_nvml_at_ < kLongest_ns) return;
    for (const pid_t pid : request_.computing()) {
      if (const auto known = processes_.find(pid); known != processes_.end())
        known->second.listed_by_nvml = true;
    }
    asked_nvml_at_ = now_ns();
  }

  void add_searches() {
    for (auto& [pid, trace] : folder_->processes()) {
      if (trace.searches.empty() && !processes_.contains(pid)) continue;
      ProcessFacts& facts = processes_[pid];
      facts.pid = pid;
      facts.loader_told = true;
      if (facts.command.empty()) facts.command = printable(trace.program, 200);
      resolve_already_loaded(trace.searches);
      facts.searches = std::move(trace.searches);
    }
    for (auto& [pid, facts] : processes_) {
      for (MappedLibrary& library : facts.libraries) name_origin(facts, library);
    }
  }

  /// By its own searches, or those of the process that it was forked from.
  void name_origin(const ProcessFacts& facts, MappedLibrary& library) const {
    const auto by = [&library](const ProcessFacts& process) {
      for (const LoaderSearch& search : process.searches) {
        std::error_code failed;
        if (search.found.empty() ||
            (search.found != library.path &&
             std::filesystem::canonical(search.found, failed) != library.path))
          continue;
        library.origin = search.origin;
        library.name = search.wanted.substr(search.wanted.rfind('/') + 1);
        return true;
      }
      return false;
    };
    if (by(facts)) return;
    for (const auto& [pid, other] : processes_) {
      if (by(other)) return;
    }
  }

  /// Grows with everything that is seen.
  std::size_t size() const {
    std::size_t sum = processes_.size();
    for (const auto& [pid, facts] : processes_)
      sum += facts.libraries.size() + facts.nodes_open.size() + facts.nodes_mapped.size();
    return sum;
  }

  const pid_t pid_;
  const WatchRequest& request_;
  const SystemFiles& system_;
  const SystemFiles proc_{};  // a program that really runs is in the real /proc
  TraceFolder* const folder_;
  std::map<pid_t, ProcessFacts> processes_;
  std::int64_t asked_nvml_at_ = -kLongest_ns;
  bool too_many_ = false;
};

/// Looks until the program has ended, or enough is known; its status is collected.
int watch_to_the_end(pid_t pid,
                     const Signals& signals,
                     Watch& watch,
                     const std::function<bool()>& enough) {
  std::int64_t interval = kShortest_ns;
  bool looks = true;
  for (;;) {
    const std::int64_t begin = now_ns();
    looks = looks && !(enough && enough());
    const bool new_seen = looks && watch.look();
    interval = new_seen ? kShortest_ns : std::min(interval + interval / 8, kLongest_ns);
    // Looking must not cost more than a tenth of one processor.
    interval = std::clamp(10 * (now_ns() - begin), interval, 4 * kLongest_ns);
    const std::int64_t until = now_ns() + interval;
    for (std::int64_t left = interval; left > 0; left = until - now_ns()) {
      pollfd signalled{signals.descriptor(), POLLIN, 0};
      poll(&signalled, 1, static_cast<int>(left / 1'000'000) + 1);
      signals.forward(pid);
      int status = 0;
      const pid_t waited = waitpid(pid, &status, WNOHANG);
      if (waited == pid) return status;
      if (waited < 0 && errno == ECHILD) throw Error("the program's end was taken by another");
    }
  }
}

std::string shown_command(const std::vector<std::string>& command) {
  return printable(fmt::format("{}", fmt::join(command, " ")), 200);
}

}  // namespace

WatchResult watch_program(const WatchRequest& request, const SystemFiles& system) {
  if (request.command.empty() || request.command.front().empty())
    throw UsageError(
        "`--` is followed by the command to watch: launchgap doctor -- python train.py");
  WatchResult result;
  std::unique_ptr<TraceFolder> folder;
  std::map<std::string, std::string> environment;
  std::string not_traced;
  if (!request.traces_loader) {
    not_traced = "its loader was not traced";
  } else if (std::getenv("LD_DEBUG") || std::getenv("LD_DEBUG_OUTPUT")) {
    not_traced = "LD_DEBUG or LD_DEBUG_OUTPUT is set already and was left alone";
  } else {
    try {
      folder = std::make_unique<TraceFolder>();
      environment = loader_trace_environment(folder->path());
    } catch (const Error& failed) {
      not_traced = failed.what();
    }
  }

  environment.insert(request.environment.begin(), request.environment.end());
  const Signals signals;
  int error = 0;
  const pid_t pid = start(request, environment, signals, error);
  if (pid < 0) {
    result.exit_code = error == ENOENT ? 127 : 126;
    result.not_started =
        fmt::format("{}: {}",
                    printable(request.command.front()),
                    error == ENOENT && request.command.front().find('/') == std::string::npos
                        ? "command not found"
                        : std::strerror(error));
    return result;
  }
  Watch watch(pid, request, system, folder.get());
  const int status = watch_to_the_end(pid, signals, watch, request.enough);
  result.facts = watch.result(folder != nullptr);
  if (watch.outlived()) {
    // A loader that cannot open its account writes it to standard output instead.
    folder->keep();
    result.facts.limitations.push_back(
        fmt::format("Some of its processes still run and are no longer watched. Their loaders "
                    "write to {}: remove it when they have ended.",
                    printable(folder->path().string())));
  }
  result.facts.command = shown_command(request.command);
  if (!not_traced.empty()) {
    result.facts.limitations.push_back(
        fmt::format("Libraries that it did not find are not known: {}.", printable(not_traced)));
  }
  if (WIFSIGNALED(status)) {
    result.facts.signal = WTERMSIG(status);
    result.exit_code = 128 + WTERMSIG(status);
  } else {
    result.facts.exit_code = result.exit_code = WEXITSTATUS(status);
  }
  return result;
}

}  // namespace launchgap::doctor
