#include "harness/cli/page.h"

#include <array>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "harness/core/clock.h"
#include "harness/core/errors.h"
#include "harness/core/input_file.h"
#include "harness/core/output_file.h"
#include "harness/core/say.h"
#include "harness/core/stop.h"
#include "harness/core/temporary_folder.h"
#include "harness/core/text.h"
#include "harness/summary/all_tables.h"

extern char** environ;

namespace launchgap::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLargestPage = std::size_t{1} << 31;

fs::path executable_folder() {
  std::error_code failed;
  const fs::path executable = fs::read_symlink("/proc/self/exe", failed);
  return executable.parent_path();
}

/// The folder that holds `reports/` and `data/`: the package's share folder, or the checkout above
/// build/bin.
fs::path resource_root() {
  const fs::path bin = executable_folder();
  std::error_code ignored;
  for (const fs::path& root : {bin / "../share/launchgap", bin / "../.."}) {
    if (fs::exists(root / "reports/launchgap_report/__main__.py", ignored))
      return fs::weakly_canonical(root);
  }
  throw Error(
      fmt::format("the page cannot be made: the folder reports/ is not beside {}", bin.string()));
}

std::string python(const fs::path& root) {
  if (const char* own = std::getenv("LAUNCHGAP_PYTHON"); own && *own) return own;
  const fs::path venv = root / ".venv/bin/python3";
  std::error_code ignored;
  return fs::exists(venv, ignored) ? venv.string() : "python3";
}

/// How long the page may take to draw.
double page_limit_s() {
  constexpr double kLimitS = 1800;
  const char* const chosen = std::getenv("LAUNCHGAP_PAGE_TIMEOUT");
  const double seconds = chosen ? std::strtod(chosen, nullptr) : 0;
  return seconds > 0 ? seconds : kLimitS;
}

/// Runs a program that writes its own errors to standard error. Returns its exit code, 127 if there
/// is none. It has a group of its own, so that Ctrl-C reaches launchgap alone, and it ends with
/// launchgap; what it needs for a while goes into `scratch`. Throws Stopped once a signal was
/// noted, and Error if it takes too long.
int run_program(std::vector<std::string> arguments,
                const std::string& python_path,
                const fs::path& scratch) {
  // Its linear algebra is small, and where memory is short OpenBLAS waits for ever for its threads.
  // Files of the folder in which one stands are not Python's modules.
  const std::map<std::string, std::string> chosen = {{"PYTHONPATH", python_path},
                                                     {"PYTHONSAFEPATH", "1"},
                                                     {"OPENBLAS_NUM_THREADS", "1"},
                                                     {"PYTHONDONTWRITEBYTECODE", "1"},
                                                     {"TMPDIR", scratch.string()}};
  std::vector<std::string> variables;
  for (const auto& [name, value] : chosen) variables.push_back(name + "=" + value);
  for (char** variable = environ; *variable; ++variable) {
    const std::string text = *variable;
    if (!chosen.contains(text.substr(0, text.find('=')))) variables.push_back(text);
  }
  const auto pointers = [](std::vector<std::string>& texts) {
    std::vector<char*> all;
    for (std::string& text : texts) all.push_back(text.data());
    all.push_back(nullptr);
    return all;
  };
  std::vector<char*> argv = pointers(arguments), envp = pointers(variables);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) throw Error(with_errno(fmt::format("{} cannot be started", arguments[0])));
  if (pid == 0) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent) execvpe(argv[0], argv.data(), envp.data());
    _exit(127);
  }
  setpgid(pid, pid);
  const double limit_s = page_limit_s();
  const std::int64_t until = now_ns() + static_cast<std::int64_t>(limit_s * 1e9);
  int status = 0;
  while (waitpid(pid, &status, WNOHANG) == 0) {
    const bool late = now_ns() > until;
    if (stop_signal || late) {
      kill(-pid, SIGKILL);
      waitpid(pid, &status, 0);
      stop_if_asked();
      throw Error(
          fmt::format("the page was not drawn within {:g} s (LAUNCHGAP_PAGE_TIMEOUT)", limit_s));
    }
    usleep(20'000);
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

Summarised::Summarised(const fs::path& folder)
    : session(read_session(folder)), rows(summarise(session)), slow_samples(session, rows) {}

void write_page(const std::vector<std::unique_ptr<Summarised>>& sessions, const fs::path& output) {
  const fs::path root = resource_root();
  check_output_place(output);
  const TemporaryFolder tables;
  if (tables.path().empty()) throw Error(with_errno("a temporary folder cannot be made"));
  std::vector<std::string> arguments = {python(root), "-m", "launchgap_report"};
  for (std::size_t i = 0; i < sessions.size(); ++i) {
    const fs::path folder = tables.path() / std::to_string(i);
    std::error_code failed;  // the first table says it
    fs::create_directory(folder, failed);
    write_tables(sessions[i]->tabled(), TableUse::details, folder);
    for (const std::string& argument : {std::string("--session"),
                                        sessions[i]->session.folder.string(),
                                        std::string("--tables"),
                                        folder.string()}) {
      arguments.push_back(argument);
    }
  }
  const fs::path page = tables.path() / "page.html";
  for (const std::string& argument : {std::string("--generations"),
                                      (root / "data/generations.csv").string(),
                                      std::string("-o"),
                                      page.string()}) {
    arguments.push_back(argument);
  }
  const int code = run_program(arguments, (root / "reports").string(), tables.path());
  if (code == 127)
    throw Error(
        fmt::format("the page cannot be made: there is no {} to run; scripts/setup installs Python",
                    arguments[0]));
  if (code != 0)
    throw Error(fmt::format(
        "the page was not made (the line above says why); {} exited with {}", arguments[0], code));
  write_file(output, InputFile(page).text(kLargestPage));
}

void offer_page(const std::vector<std::unique_ptr<Summarised>>& sessions, const fs::path& folder) {
  try {
    write_page(sessions, folder / "report.html");
    answer("Page:   {}\n", (folder / "report.html").string());
  } catch (const Stopped&) {
    throw;
  } catch (const Error& error) {
    say("launchgap: {}. `launchgap report {}` makes it later, here or elsewhere.",
        error.what(),
        folder.string());
  }
}

}  // namespace launchgap::cli
