#include "harness/measure/neighbour.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <fcntl.h>
#include <filesystem>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/device/backend.h"
#include "kernels/kernels.h"

extern char** environ;

namespace launchgap {
namespace {

constexpr int kSecondsToOpen = 60;
constexpr int kSecondsToAnswer = 10;
constexpr char kReady = 'o';
constexpr unsigned long long kKernelNs = 10'000;
constexpr int kLaunchesAtOnce = 32;  // so that it answers within a millisecond

/// The launchgap that this program is, or that lies beside it.
std::string launchgap_binary() {
  std::error_code problem;
  const auto own = std::filesystem::read_symlink("/proc/self/exe", problem);
  if (problem) throw Error("/proc/self/exe cannot be read: {}", problem.message());
  return own.parent_path() / "launchgap";
}

bool send_byte(int socket, char byte) {
  return send(socket, &byte, 1, MSG_NOSIGNAL) == 1;
}

/// A byte within `milliseconds`; 0 where there is none, or nobody to send one.
char receive_byte(int socket, int milliseconds) {
  pollfd readable = {socket, POLLIN, 0};
  int found = 0;
  do {
    found = poll(&readable, 1, milliseconds);
  } while (found < 0 && errno == EINTR);
  char byte = 0;
  return found > 0 && recv(socket, &byte, 1, 0) == 1 ? byte : '\0';
}

/// The last line that was printed to a file.
std::string last_line(int file) {
  std::array<char, 4096> text{};
  const off_t size = lseek(file, 0, SEEK_END);
  const off_t from = std::max<off_t>(0, size - static_cast<off_t>(text.size()));
  const ssize_t n = pread(file, text.data(), text.size(), from);
  if (n <= 0) return "";
  std::string all(text.data(), static_cast<std::size_t>(n));
  while (!all.empty() && all.back() == '\n') all.pop_back();
  return all.substr(all.rfind('\n') + 1);
}

}  // namespace

Neighbour::Neighbour(const DeviceFacts& device, int cpu) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    throw Error(with_errno("a socket cannot be made"));
  socket_ = ends[0];
  output_ = memfd_create("launchgap-neighbour", MFD_CLOEXEC);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  if (output_ >= 0) {
    posix_spawn_file_actions_adddup2(&actions, output_, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output_, STDERR_FILENO);
  }
  // The same number would keep its close-on-exec flag.
  const int given = fcntl(ends[1], F_DUPFD_CLOEXEC, 10);
  posix_spawn_file_actions_adddup2(&actions, given, kNeighbourSocket);
  std::string binary, command = "worker", option = "--neighbour", uuid = device.uuid,
                      number = std::to_string(cpu);
  int failed = 0;
  try {
    binary = launchgap_binary();
    std::array<char*, 6> argv = {
        binary.data(), command.data(), option.data(), uuid.data(), number.data(), nullptr};
    failed = posix_spawn(&pid_, binary.c_str(), &actions, nullptr, argv.data(), environ);
  } catch (const Error&) {
    failed = ENOENT;
  }
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  ::close(given);
  if (failed) {
    pid_ = -1;
    end();
    errno = failed;
    throw Error(with_errno(fmt::format("the second process ({}) cannot be started", binary)));
  }
  try {
    expect(kReady, kSecondsToOpen);
  } catch (...) {
    end();
    throw;
  }
}

Neighbour::~Neighbour() {
  end();
}

void Neighbour::work() {
  ask(Ask::work);
}

void Neighbour::rest() {
  ask(Ask::rest);
}

void Neighbour::ask(Ask what) {
  if (!send_byte(socket_, static_cast<char>(what))) ended();
  expect(static_cast<char>(what), kSecondsToAnswer);
}

void Neighbour::expect(char answer, int seconds) {
  if (receive_byte(socket_, 1000 * seconds) != answer) ended();
}

void Neighbour::ended() {
  constexpr int kTries = 20;
  int status = 0;
  pid_t gone = 0;
  for (int i = 0; i < kTries && gone == 0; ++i) {
    gone = waitpid(pid_, &status, WNOHANG);
    if (gone == 0) usleep(10'000);
  }
  const std::string said = last_line(output_);
  const std::string with = said.empty() ? "" : "; it said: " + said;
  if (gone != pid_) throw Error("the second process does not answer{}", with);
  pid_ = -1;
  if (WIFSIGNALED(status)) {
    throw Error("the second process was killed by signal {}{}", WTERMSIG(status), with);
  }
  throw Error("the second process exited with {}{}", WEXITSTATUS(status), with);
}

void Neighbour::end() noexcept {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  for (int* const descriptor : {&socket_, &output_}) {
    if (*descriptor >= 0) ::close(*descriptor);
    *descriptor = -1;
  }
}

int serve_as_neighbour(std::string_view uuid, int cpu) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  try {
    bind_thread({cpu});
    const std::unique_ptr<Device> device = backend_of_uuid(uuid).open(std::string(uuid), {});
    const std::unique_ptr<Kernel> kernel = device->load(kernels::spin_kernel);
    const std::unique_ptr<Stream> stream = device->create_stream();
    const auto launch = [&] {
      for (int i = 0; i < kLaunchesAtOnce; ++i) {
        unsigned long long nanoseconds = kKernelNs;
        unsigned* counter = nullptr;
        void* arguments[] = {&nanoseconds, &counter};
        stream->launch(*kernel, {1, 1}, arguments);
      }
      stream->wait();
    };
    launch();  // loads what is to be loaded
    send_byte(kNeighbourSocket, kReady);
    for (;;) {
      const char asked = receive_byte(kNeighbourSocket, -1);
      if (asked == '\0') return 0;  // the parent is gone
      if (asked == 'w') launch();
      if (!send_byte(kNeighbourSocket, asked)) return 0;
      if (asked != 'w') continue;
      pollfd readable = {kNeighbourSocket, POLLIN, 0};
      while (poll(&readable, 1, 0) == 0) launch();
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return static_cast<int>(ExitCode::failed);
  }
}

}  // namespace launchgap
