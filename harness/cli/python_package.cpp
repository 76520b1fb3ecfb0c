#include "harness/cli/python_package.h"

#include <cstdlib>

#include "harness/core/errors.h"
#include "harness/run/process.h"

namespace launchgap::cli {
namespace {

namespace fs = std::filesystem;

std::string python(const fs::path& root) {
  if (const char* own = std::getenv("LAUNCHGAP_PYTHON"); own && *own) return own;
  const fs::path venv = root / ".venv/bin/python3";
  std::error_code ignored;
  return fs::exists(venv, ignored) ? venv.string() : "python3";
}

}  // namespace

PythonPackage::PythonPackage() {
  const fs::path bin = fs::path(own_executable()).parent_path();
  std::error_code ignored;
  for (const fs::path& root : {bin / "../share/launchgap", bin / "../.."}) {
    if (!fs::exists(root / "reports/launchgap_report/__main__.py", ignored)) continue;
    root_ = fs::weakly_canonical(root);
    return;
  }
  throw Error("the page cannot be made: the folder reports/ is not beside {}", bin.string());
}

ProgramRequest PythonPackage::request(const std::string& module,
                                      const std::vector<std::string>& arguments,
                                      const fs::path& scratch) const {
  ProgramRequest request;
  request.arguments = {python(root_), "-m", module};
  request.arguments.insert(request.arguments.end(), arguments.begin(), arguments.end());
  // Its linear algebra is small, and where memory is short OpenBLAS waits for ever for its threads.
  // Files of the folder in which one stands are not Python's modules.
  request.environment = {{"PYTHONPATH", (root_ / "reports").string()},
                         {"PYTHONSAFEPATH", "1"},
                         {"OPENBLAS_NUM_THREADS", "1"},
                         {"PYTHONDONTWRITEBYTECODE", "1"},
                         {"TMPDIR", scratch.string()}};
  return request;
}

}  // namespace launchgap::cli
