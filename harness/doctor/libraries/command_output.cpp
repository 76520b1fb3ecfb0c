#include "harness/doctor/libraries/command_output.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <string_view>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/core/clock.h"

extern char** environ;

namespace launchgap::doctor {
namespace {

/// Starts it in a process group of its own with its output on `pipe`; -1 if it cannot be started.
pid_t start(const std::vector<std::string>& argv, int output) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);

  std::vector<std::string> texts = argv;
  std::vector<char*> arguments;
  for (std::string& text : texts) arguments.push_back(text.data());
  arguments.push_back(nullptr);
  std::vector<char*> variables;
  for (char** variable = environ; *variable; ++variable) {
    if (!std::string_view(*variable).starts_with("LD_DEBUG")) variables.push_back(*variable);
  }
  variables.push_back(nullptr);
  pid_t pid = -1;
  const int failed =
      posix_spawnp(&pid, arguments[0], &actions, &attributes, arguments.data(), variables.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return failed ? -1 : pid;
}

/// Everything up to the end of file; nothing if there is too much of it or it takes too long.
std::optional<std::string> read_all(int file, std::int64_t until, std::size_t limit) {
  std::string text;
  std::array<char, 16384> chunk;
  for (;;) {
    const std::int64_t left_ms = (until - now_ns()) / 1'000'000;
    if (left_ms <= 0) return std::nullopt;
    pollfd readable{file, POLLIN, 0};
    if (poll(&readable, 1, static_cast<int>(std::min<std::int64_t>(left_ms, 100))) <= 0) continue;
    const ssize_t n = read(file, chunk.data(), chunk.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return std::nullopt;
    if (n == 0) return text;
    text.append(chunk.data(), static_cast<std::size_t>(n));
    if (text.size() > limit) return std::nullopt;
  }
}

}  // namespace

std::optional<std::string> output_of(const std::vector<std::string>& argv,
                                     double seconds,
                                     std::size_t limit) {
  std::array<int, 2> ends{};
  if (argv.empty() || pipe2(ends.data(), O_CLOEXEC) != 0) return std::nullopt;
  const pid_t pid = start(argv, ends[1]);
  close(ends[1]);
  if (pid < 0) {
    close(ends[0]);
    return std::nullopt;
  }
  const std::int64_t until = now_ns() + static_cast<std::int64_t>(seconds * 1e9);
  std::optional<std::string> text = read_all(ends[0], until, limit);
  close(ends[0]);
  int status = 0;
  pid_t waited = 0;
  // Its output can be closed and it still be there.
  while (text && (waited = waitpid(pid, &status, WNOHANG)) == 0 && now_ns() < until) usleep(500);
  if (waited == 0) {
    kill(-pid, SIGKILL);
    // A process that is stuck in the kernel is left behind.
    for (int i = 0; i < 1000 && waitpid(pid, &status, WNOHANG) == 0; ++i) usleep(1000);
    return std::nullopt;
  }
  if (waited < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0) return std::nullopt;
  return text;
}

}  // namespace launchgap::doctor
