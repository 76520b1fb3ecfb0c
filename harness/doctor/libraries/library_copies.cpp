#include "harness/doctor/libraries/library_copies.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <poll.h>
#include <spawn.h>
#include <string_view>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/core/clock.h"
#include "harness/core/text.h"
#include "harness/doctor/libraries/elf_file.h"

extern char** environ;

namespace launchgap::doctor {
namespace fs = std::filesystem;

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

/// The standard output of a program that ended with 0 within `seconds`; nothing otherwise, and when
/// it printed more than 4 MiB. `argv[0]` is looked for in PATH unless it is a path. Its standard
/// input is empty, its errors are dropped, and so is LD_DEBUG.
std::optional<std::string> output_of(const std::vector<std::string>& argv, double seconds) {
  constexpr std::size_t kLimit = 4 << 20;
  std::array<int, 2> ends{};
  if (argv.empty() || pipe2(ends.data(), O_CLOEXEC) != 0) return std::nullopt;
  const pid_t pid = start(argv, ends[1]);
  close(ends[1]);
  if (pid < 0) {
    close(ends[0]);
    return std::nullopt;
  }
  const std::int64_t until = now_ns() + static_cast<std::int64_t>(seconds * 1e9);
  std::optional<std::string> text = read_all(ends[0], until, kLimit);
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

fs::path real_file(const fs::path& path) {
  std::error_code failed;
  fs::path real = fs::canonical(path, failed);
  return failed ? path : real;
}

std::vector<std::string> default_folders() {
  return {"/lib/x86_64-linux-gnu",
          "/usr/lib/x86_64-linux-gnu",
          "/lib/aarch64-linux-gnu",
          "/usr/lib/aarch64-linux-gnu",
          "/lib64",
          "/usr/lib64",
          "/lib",
          "/usr/lib"};
}

}  // namespace

LoaderCache LoaderCache::of(const SystemFiles& system) {
  // Not in the PATH of most users.
  for (const char* ldconfig : {"/sbin/ldconfig", "/usr/sbin/ldconfig", "ldconfig"}) {
    std::vector<std::string> argv = {ldconfig, "-p"};
    if (system.simulated()) {
      std::error_code failed;  // ldconfig would wait for a pipe's other end
      if (!fs::is_regular_file(system.at("/etc/ld.so.cache"), failed)) return {};
      argv.insert(argv.end(), {"-C", system.at("/etc/ld.so.cache").string()});
    }
    if (const auto text = output_of(argv, 2)) return parse(*text);
  }
  return {};
}

LoaderCache LoaderCache::parse(std::string_view text) {
  LoaderCache cache;
  for (const std::string_view line : parts_of(text, "\n")) {
    // "\tlibcuda.so.1 (libc6,x86-64) => /usr/lib/x86_64-linux-gnu/libcuda.so.1"
    const std::size_t name_end = line.find(" ("), arrow = line.find(") => ");
    if (!line.starts_with('\t') || name_end == std::string_view::npos ||
        arrow == std::string_view::npos || arrow < name_end) {
      continue;
    }
    cache.paths_[std::string(line.substr(1, name_end - 1))].emplace_back(line.substr(arrow + 5));
  }
  return cache;
}

std::vector<std::string> LoaderCache::paths(const std::string& name) const {
  const auto found = paths_.find(name);
  return found == paths_.end() ? std::vector<std::string>{} : found->second;
}

std::vector<std::string> LoaderCache::names_with(const std::string& beginning) const {
  std::vector<std::string> names;
  for (auto at = paths_.lower_bound(beginning);
       at != paths_.end() && at->first.starts_with(beginning);
       ++at) {
    names.push_back(at->first);
  }
  return names;
}

std::vector<LibraryCopy> other_copies(const std::string& name,
                                      const std::string& taken,
                                      std::string_view ld_library_path,
                                      const LoaderCache& cache,
                                      const SystemFiles& system) {
  std::vector<LibraryCopy> copies;
  std::vector<fs::path> seen;
  // What was taken is what a process saw, not a path below a test's root.
  if (!taken.empty()) seen.push_back(real_file(taken));
  const auto add = [&](const fs::path& file, std::string path, PathOrigin origin) {
    const fs::path real = real_file(file);
    std::error_code failed;
    if (!fs::exists(real, failed) || std::ranges::find(seen, real) != seen.end()) return;
    seen.push_back(real);
    if (!why_not_loadable(real)) copies.push_back({std::move(path), std::move(origin)});
  };
  using Rule = PathOrigin::Rule;
  if (!ld_library_path.empty()) {
    for (const std::string& entry : path_entries(ld_library_path)) {
      const std::string path = entry + "/" + name;
      add(path, path, {Rule::ld_library_path, entry, ""});
    }
  }
  for (const std::string& path : cache.paths(name))
    add(system.at(path), path, {Rule::cache, "", ""});
  for (const std::string& folder : default_folders()) {
    const std::string path = folder + "/" + name;
    add(system.at(path), path, {Rule::default_folder, folder, ""});
  }
  return copies;
}

std::vector<std::string> unused_copies(const std::string& name,
                                       const std::vector<std::string>& folders,
                                       const SystemFiles& system) {
  std::vector<std::string> paths;
  std::vector<fs::path> seen;
  for (const std::string& folder : folders) {
    const std::string path = folder + "/" + name;
    if (!system.exists(path)) continue;
    fs::path real = real_file(system.at(path));
    if (std::ranges::find(seen, real) != seen.end() || why_not_loadable(real)) continue;
    seen.push_back(std::move(real));
    paths.push_back(path);
  }
  return paths;
}

std::string library_stem(std::string_view name_or_path) {
  name_or_path.remove_prefix(name_or_path.rfind('/') + 1);
  return std::string(name_or_path.substr(0, name_or_path.find(".so")));
}

bool is_cuda_library(std::string_view name_or_path) {
  const std::string stem = library_stem(name_or_path);
  static constexpr std::array whole = {
      "libcuda",        "libcudart",         "libcublas",       "libcublasLt",   "libcufft",
      "libcufftw",      "libcurand",         "libcusolver",     "libcusolverMg", "libcusparse",
      "libcusparseLt",  "libcupti",          "libnccl",         "libnvrtc",      "libnvJitLink",
      "libnvidia-ml",   "libnvidia-nvvm",    "libnvToolsExt",   "libnvblas",     "libcutensor",
      "libnvinfer",     "libnvinfer_plugin", "libcudadebugger", "libcufile",     "libtorch_cuda",
      "libnvshmem_host"};
  // cuDNN has sub-libraries by many names, the driver one of PTX per version.
  return std::ranges::find(whole, stem) != whole.end() || stem == "libcudnn" ||
         stem.starts_with("libcudnn_") || stem.starts_with("libnvidia-ptxjitcompiler") ||
         stem.starts_with("libnvrtc-builtins");
}

}  // namespace launchgap::doctor
