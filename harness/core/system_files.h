// The files by which a system describes itself: /proc, /sys, /dev, /etc and where libraries are.
// Any of them can be missing, unreadable, enormous or a lie.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace launchgap {

class SystemFiles {
 public:
  /// Everything is looked for below `root`.
  explicit SystemFiles(const std::filesystem::path& root = "/");
  /// Below LAUNCHGAP_SYSTEM_ROOT, where that is set: a system of the tests.
  static SystemFiles of_this_system();

  /// Another root than "/": what is found is no fact about this machine.
  bool simulated() const { return root_ != "/"; }

  /// Where an absolute path really is: "/proc/modules" as "<root>/proc/modules".
  std::filesystem::path at(const std::string& path) const;
  /// The other way round: the absolute path of the system that a real path stands for.
  std::string outside(const std::filesystem::path& real) const;

  /// The beginning of a regular file or of what /proc and /sys serve, without trailing blanks;
  /// nothing if it cannot be read. Never blocks: pipes and devices are not read.
  std::optional<std::string> read(const std::string& path, std::size_t limit = 1 << 20) const;
  /// The names in a folder, sorted; none if it cannot be read.
  std::vector<std::string> entries(const std::string& folder) const;
  bool exists(const std::string& path) const;
  /// What a symbolic link says.
  std::optional<std::string> link(const std::string& path) const;

 private:
  std::filesystem::path root_;
};

/// The files that this process has mapped whose name begins so, links resolved.
std::set<std::string> mapped_files(std::string_view name);

/// The environment of this process.
std::map<std::string, std::string> own_environment();

/// The value of a variable in one; empty where it is not set.
std::string variable_in(const std::map<std::string, std::string>& environment,
                        const std::string& name);

/// "/a", "/b" of "/a:/b"; an empty entry is the current folder. The loader takes ";" for ":" too,
/// PATH does not.
std::vector<std::string> path_entries(std::string_view list, std::string_view separators = ":;");

}  // namespace launchgap
