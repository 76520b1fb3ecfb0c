#include "harness/run/foreign_program.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "harness/core/clock.h"
#include "harness/core/errors.h"
#include "harness/core/stop.h"
#include "harness/core/system_files.h"

namespace launchgap {
namespace {

/// What execvpe() takes.
std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

pid_t start(const ProgramRequest& request) {
  std::vector<std::string> arguments = request.arguments, variables;
  std::map<std::string, std::string> environment = request.environment;
  environment.merge(own_environment());
  for (const auto& [name, value] : environment) variables.push_back(name + "=" + value);
  const std::vector<char*> argv = pointers(arguments), envp = pointers(variables);
  const pid_t parent = getpid();
  const std::string printed = request.printed.string();
  const pid_t pid = fork();
  // Whoever writes to it is to notice that nobody reads any more.
  if (pid != 0 && request.input >= 0) close(request.input);
  if (pid < 0) throw Error(with_errno(fmt::format("{} cannot be started", arguments[0])));
  if (pid > 0) {
    setpgid(pid, pid);
    return pid;
  }
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  restore_broken_pipes();  // ignored here, and `yes | head` relies on ending by it
  if (request.input >= 0) {
    dup2(request.input, STDIN_FILENO);
  } else if (const int null = open("/dev/null", O_RDONLY | O_CLOEXEC); null >= 0) {
    dup2(null, STDIN_FILENO);
  }
  if (!printed.empty()) {
    const int file = open(printed.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0) _exit(ProgramOutcome::kNotFound);
    dup2(file, STDOUT_FILENO);
    dup2(file, STDERR_FILENO);
  }
  if (request.answers_to_error) dup2(STDERR_FILENO, STDOUT_FILENO);
  if (getppid() == parent) execvpe(argv[0], argv.data(), envp.data());
  _exit(ProgramOutcome::kNotFound);
}

std::int64_t after(double seconds) {
  constexpr double kMost = 1e9;  // seconds, a lifetime
  return now_ns() + static_cast<std::int64_t>(std::min(seconds, kMost) * 1e9);
}

}  // namespace

std::optional<std::filesystem::path> find_program(std::string_view name) {
  const char* const variable = std::getenv("PATH");
  for (const std::string& folder : path_entries(variable ? variable : "", ":")) {
    const std::filesystem::path file = std::filesystem::path(folder) / name;
    std::error_code failed;
    if (std::filesystem::is_regular_file(file, failed) && access(file.c_str(), X_OK) == 0)
      return file;
  }
  return std::nullopt;
}

std::string last_printed(const std::filesystem::path& printed) {
  constexpr std::streamoff kMost = 4096;
  std::ifstream file(printed, std::ios::binary | std::ios::ate);
  if (!file) return "";
  file.seekg(std::max<std::streamoff>(0, file.tellg() - kMost));
  return {std::istreambuf_iterator<char>(file), {}};
}

ProgramOutcome run_program(const ProgramRequest& request) {
  constexpr int kLookUs = 20'000;
  const pid_t pid = start(request);
  ProgramOutcome outcome;
  std::int64_t until = after(request.limit_s);
  bool asked = false;
  int status = 0;
  for (pid_t waited; (waited = waitpid(pid, &status, WNOHANG)) != pid; usleep(kLookUs)) {
    if (waited < 0 && errno == ECHILD) {
      outcome.end.unknown = true;
      return outcome;
    }
    if (stop_signal && !asked) {
      asked = true;
      until = after(request.grace_s);
      if (request.grace_s > 0) kill(-pid, SIGINT);
    }
    if (now_ns() < until) continue;
    outcome.late = !asked;
    kill(-pid, SIGKILL);
    waitpid(pid, &status, 0);
    break;
  }
  if (WIFSIGNALED(status)) {
    outcome.end.signal = WTERMSIG(status);
  } else {
    outcome.end.exit_code = WEXITSTATUS(status);
  }
  return outcome;
}

}  // namespace launchgap
