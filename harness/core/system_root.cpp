#include "harness/core/system_root.h"

#include <cstdlib>
#include <filesystem>

namespace launchgap {
namespace fs = std::filesystem;

std::string system_root() {
  const char* const wanted = std::getenv("LAUNCHGAP_SYSTEM_ROOT");
  if (!wanted || !*wanted) return "/";
  fs::path root = fs::absolute(wanted).lexically_normal();
  if (!root.has_filename() && root != "/") root = root.parent_path();
  return root.string();
}

std::string system_path(const std::string& path) {
  const std::string root = system_root();
  return root == "/" ? path : root + path;
}

}  // namespace launchgap
