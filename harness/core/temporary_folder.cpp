#include "harness/core/temporary_folder.h"

#include <cstdlib>
#include <system_error>

namespace launchgap {

TemporaryFolder::TemporaryFolder(const std::string& prefix) {
  const char* const chosen = std::getenv("TMPDIR");
  for (const std::string folder : {chosen && *chosen ? chosen : "/tmp", "/tmp"}) {
    std::string name = folder + "/" + prefix + "XXXXXX";
    if (!mkdtemp(name.data())) continue;
    path_ = std::filesystem::absolute(name);
    return;
  }
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code failed;
  if (!path_.empty()) std::filesystem::remove_all(path_, failed);
}

}  // namespace launchgap
