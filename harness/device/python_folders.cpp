#include "harness/device/python_folders.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "harness/core/text.h"

namespace launchgap {
namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMaxFolders = 256;

std::string parent_of(const std::string& path) {
  return fs::path(path).parent_path().string();
}

bool is_folder(const SystemFiles& system, const std::string& path) {
  std::error_code failed;
  return fs::is_directory(system.at(path), failed);
}

/// Where a path leads, all links in it followed inside of the system's root.
std::string without_links(const SystemFiles& system, const std::string& path) {
  fs::path done = "/";
  std::vector<fs::path> rest;  // the next part is the last
  const auto go_on_with = [&](const fs::path& parts) {
    if (parts.is_absolute()) done = "/";
    const fs::path relative = parts.relative_path();
    rest.insert(rest.end(), relative.begin(), relative.end());
    std::reverse(rest.end() - std::distance(relative.begin(), relative.end()), rest.end());
  };
  go_on_with(path);
  for (int links = 0; !rest.empty();) {
    const fs::path part = rest.back();
    rest.pop_back();
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      done = done.parent_path();
    } else if (const auto target = system.link((done / part).string()); target && ++links <= 40) {
      go_on_with(*target);
    } else {
      done /= part;
    }
  }
  return done.string();
}

bool is_program(const SystemFiles& system, const std::string& path) {
  struct stat status {};
  return stat(system.at(without_links(system, path)).c_str(), &status) == 0 &&
         S_ISREG(status.st_mode) && (status.st_mode & 0111) != 0;
}

std::string first_line(const SystemFiles& system, const std::string& file) {
  const std::string text = system.read(file, 4096).value_or("");
  return text.substr(0, text.find_first_of("\r\n"));
}

/// pyenv puts a script named python3 into PATH, which starts the version that is chosen.
/// Source: pyenv's README, "Choosing the Python version".
std::optional<std::string> behind_pyenv(const SystemFiles& system,
                                        const std::map<std::string, std::string>& environment,
                                        const std::string& program) {
  const fs::path folder = fs::path(program).parent_path();
  if (folder.filename() != "shims") return std::nullopt;
  const std::string root = folder.parent_path().string();
  std::string version = variable_in(environment, "PYENV_VERSION");
  for (fs::path at = variable_in(environment, "PWD"); version.empty() && at.has_relative_path();
       at = at.parent_path()) {
    version = first_line(system, at.string() + "/.python-version");
  }
  if (version.empty()) version = first_line(system, root + "/version");
  version = version.substr(0, version.find(':'));
  if (version.empty() || version.find('/') != std::string::npos || version.starts_with('.'))
    return std::nullopt;
  const std::string name = fs::path(program).filename().string();
  const std::string behind = fmt::format("{}/versions/{}/bin/{}", root, version, name);
  return is_program(system, behind) ? std::optional(behind) : std::nullopt;
}

bool is_script(const SystemFiles& system, const std::string& file) {
  return system.read(without_links(system, file), 2).value_or("") == "#!";
}

std::string python_in(const SystemFiles& system, const std::string& folder) {
  for (const char* name : {"python3", "python"}) {
    std::string path = fmt::format("{}/{}", folder, name);
    if (is_program(system, path)) return path;
  }
  return "";
}

void choose(const SystemFiles& system,
            const std::map<std::string, std::string>& environment,
            PythonFolders& python) {
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const std::string prefix = variable_in(environment, variable);
    if (!prefix.starts_with('/')) continue;
    python.executable = python_in(system, prefix + "/bin");
    python.chosen_by = variable;
    if (!python.executable.empty()) return;
  }
  python.chosen_by = "PATH";
  // All folders are searched for python3 before any is for python, as by a user who types it.
  for (const char* name : {"python3", "python"}) {
    for (const std::string& folder : path_entries(variable_in(environment, "PATH"), ":")) {
      const std::string path = folder + "/" + name;
      if (!folder.starts_with('/') || !is_program(system, path)) continue;
      python.executable = behind_pyenv(system, environment, path).value_or(path);
      if (is_script(system, python.executable)) {
        python.unknown =
            fmt::format("{} is a script, and what it starts is not known", python.executable);
      }
      return;
    }
  }
  python.chosen_by.clear();
  python.unknown = "there is no python3 or python in PATH";
}

/// The value of "key = value" in a venv's pyvenv.cfg.
std::string setting(const std::string& text, std::string_view key) {
  for (const std::string_view line : parts_of(text, "\n")) {
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    std::string_view name = line.substr(0, equals), value = line.substr(equals + 1);
    while (name.ends_with(' ')) name.remove_suffix(1);
    while (value.starts_with(' ')) value.remove_prefix(1);
    while (value.ends_with(' ') || value.ends_with('\r')) value.remove_suffix(1);
    if (name == key) return std::string(value);
  }
  return "";
}

class Folders {
 public:
  Folders(const SystemFiles& system, std::vector<std::string>& folders)
      : system_(system), folders_(folders) {}

  /// A folder as it is, once: lib64 of a venv is a link to its lib.
  void add(const std::string& folder) {
    const std::string plain = fs::path(folder).lexically_normal().string();
    if (folders_.size() >= kMaxFolders || !is_folder(system_, plain)) return;
    const auto where = [this](const std::string& known) { return without_links(system_, known); };
    if (std::ranges::find(folders_, where(plain), where) == folders_.end())
      folders_.push_back(plain);
  }

  /// A folder whose .pth files name others, one per line.
  void add_site(const std::string& folder) {
    if (!is_folder(system_, folder)) return;
    add(folder);
    for (const std::string& entry : system_.entries(folder)) {
      if (!entry.ends_with(".pth") || entry.starts_with('.')) continue;
      const std::string text = system_.read(folder + "/" + entry, 64 << 10).value_or("");
      for (std::string_view line : parts_of(text, "\n")) {
        while (line.ends_with('\r') || line.ends_with(' ')) line.remove_suffix(1);
        // Lines with code are run by Python, and not here.
        if (line.empty() || line.size() > 4096 || line.starts_with('#') ||
            line.starts_with("import ") || line.starts_with("import\t")) {
          continue;
        }
        add((fs::path(folder) / line).string());
      }
    }
  }

  /// Of an installation: Debian's own Python uses dist-packages.
  void add_prefix(const std::string& prefix, const std::string& version) {
    const bool debian = prefix == "/usr";
    if (debian) add_site(fmt::format("/usr/local/lib/python{}/dist-packages", version));
    if (debian) add_site("/usr/lib/python3/dist-packages");
    add_site(fmt::format("{}/lib/python{}/site-packages", prefix, version));
    add_site(fmt::format("{}/lib64/python{}/site-packages", prefix, version));
  }

 private:
  const SystemFiles& system_;
  std::vector<std::string>& folders_;
};

/// "3.11" of /usr/bin/python3.11, or of the only lib/python3.11 below the prefix.
std::string version_of(const SystemFiles& system,
                       const std::string& executable,
                       const std::string& prefix) {
  const auto is_version = [](std::string_view text) {
    return text.size() > 2 && text.size() < 6 && text[1] == '.' &&
           text.find_first_not_of("0123456789.") == std::string_view::npos;
  };
  const std::string name = fs::path(without_links(system, executable)).filename().string();
  if (name.starts_with("python") && is_version(std::string_view(name).substr(6)))
    return name.substr(6);
  std::string found;
  for (const std::string& entry : system.entries(prefix + "/lib")) {
    if (entry.starts_with("python") && is_version(std::string_view(entry).substr(6)))
      found = entry.substr(6);
  }
  return found;
}

}  // namespace

PythonFolders find_python(const SystemFiles& system,
                          const std::map<std::string, std::string>& environment) {
  PythonFolders python;
  choose(system, environment, python);
  if (python.executable.empty() || !python.unknown.empty()) return python;

  const std::string prefix = parent_of(parent_of(python.executable));
  const auto configuration = system.read(prefix + "/pyvenv.cfg", 64 << 10);
  std::string base = parent_of(parent_of(without_links(system, python.executable)));
  if (configuration) {
    if (const std::string home = setting(*configuration, "home"); home.starts_with('/'))
      base = parent_of(home);
  }
  const std::string version = version_of(system, python.executable, configuration ? prefix : base);
  if (version.empty()) {
    python.unknown =
        fmt::format("the version of {} is not told by its name or folders", python.executable);
    return python;
  }
  Folders folders(system, python.folders);
  if (const std::string path = variable_in(environment, "PYTHONPATH"); !path.empty()) {
    for (const std::string& entry : path_entries(path)) {
      if (entry.starts_with('/')) folders.add(entry);
    }
  }
  const bool with_system =
      !configuration || setting(*configuration, "include-system-site-packages") == "true";
  if (configuration) folders.add_prefix(prefix, version);
  const std::string user = variable_in(environment, "PYTHONUSERBASE").empty()
                               ? variable_in(environment, "HOME") + "/.local"
                               : variable_in(environment, "PYTHONUSERBASE");
  if (with_system && variable_in(environment, "PYTHONNOUSERSITE").empty() && user.starts_with('/'))
    folders.add_site(fmt::format("{}/lib/python{}/site-packages", user, version));
  if (with_system) folders.add_prefix(base, version);
  return python;
}

}  // namespace launchgap
