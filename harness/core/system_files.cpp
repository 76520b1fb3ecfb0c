#include "harness/core/system_files.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

namespace launchgap {
namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMaxEntries = 256;

}  // namespace

SystemFiles::SystemFiles(const fs::path& root) : root_(root.lexically_normal()) {
  if (root_.empty()) root_ = "/";
  if (!root_.has_filename() && root_ != "/") root_ = root_.parent_path();
}

SystemFiles SystemFiles::of_this_system() {
  const char* const root = std::getenv("LAUNCHGAP_SYSTEM_ROOT");
  return SystemFiles(root && *root ? fs::absolute(root) : fs::path("/"));
}

fs::path SystemFiles::at(const std::string& path) const {
  return root_ / fs::path(path).relative_path();
}

std::string SystemFiles::outside(const fs::path& real) const {
  const std::string prefix = root_.string();
  std::string text = real.string();
  if (simulated() && text.starts_with(prefix + "/")) return text.substr(prefix.size());
  return text;
}

std::optional<std::string> SystemFiles::read(const std::string& path, std::size_t limit) const {
  const int file = open(at(path).c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
  if (file < 0) return std::nullopt;
  struct stat status {};
  std::optional<std::string> text;
  if (fstat(file, &status) == 0 && S_ISREG(status.st_mode)) {
    text.emplace();
    std::array<char, 16384> chunk;
    while (text->size() < limit) {
      const ssize_t n = ::read(file, chunk.data(), std::min(chunk.size(), limit - text->size()));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) text.reset();
      if (n <= 0) break;
      text->append(chunk.data(), static_cast<std::size_t>(n));
    }
  }
  close(file);
  while (text && !text->empty() && (text->back() == '\n' || text->back() == ' ')) text->pop_back();
  return text;
}

std::vector<std::string> SystemFiles::entries(const std::string& folder) const {
  std::vector<std::string> names;
  std::error_code failed;
  for (fs::directory_iterator entry(at(folder), failed), end; !failed && entry != end;
       entry.increment(failed)) {
    names.push_back(entry->path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

bool SystemFiles::exists(const std::string& path) const {
  std::error_code failed;
  return fs::exists(at(path), failed);
}

std::optional<std::string> SystemFiles::link(const std::string& path) const {
  std::error_code failed;
  const fs::path target = fs::read_symlink(at(path), failed);
  if (failed) return std::nullopt;
  return target.string();
}

std::set<std::string> mapped_files(std::string_view name) {
  std::set<std::string> files;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const std::size_t path = line.find('/'), file = line.rfind('/');
    if (path != std::string::npos && line.compare(file + 1, name.size(), name) == 0)
      files.insert(line.substr(path));
  }
  return files;
}

std::map<std::string, std::string> own_environment() {
  std::map<std::string, std::string> environment;
  for (char** variable = environ; *variable; ++variable) {
    const std::string_view text = *variable;
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos)
      environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return environment;
}

std::string variable_in(const std::map<std::string, std::string>& environment,
                        const std::string& name) {
  const auto found = environment.find(name);
  return found == environment.end() ? "" : found->second;
}

std::vector<std::string> path_entries(std::string_view list, std::string_view separators) {
  std::vector<std::string> entries;
  for (std::size_t begin = 0; begin <= list.size() && entries.size() < kMaxEntries;) {
    const std::size_t end = std::min(list.find_first_of(separators, begin), list.size());
    entries.emplace_back(begin == end ? "." : list.substr(begin, end - begin));
    begin = end + 1;
  }
  return entries;
}

}  // namespace launchgap
