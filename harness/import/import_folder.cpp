#include "harness/import/import_folder.h"

#include <exception>
#include <fcntl.h>
#include <string>
#include <string_view>
#include <sys/file.h>
#include <system_error>
#include <unistd.h>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/core/input_file.h"
#include "harness/core/output_file.h"

namespace launchgap::recording {
namespace {

namespace fs = std::filesystem;

/// In the folder of an import that is not over, and says whether it made the folder.
constexpr const char* kUnfinished = "unfinished-import";
constexpr std::string_view kMade = "made\n", kTaken = "taken\n";

/// Until the process ends. False if another one has it.
bool lock(const fs::path& file) {
  const int descriptor = open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (descriptor < 0) return true;
  if (flock(descriptor, LOCK_EX | LOCK_NB) == 0) return true;
  close(descriptor);
  return false;
}

}  // namespace

void make_import_folder(const fs::path& path) {
  std::error_code failed;
  if (fs::exists(path / kUnfinished, failed)) {
    if (!lock(path / kUnfinished))
      throw UsageError(
          fmt::format("another import writes to {}: name another with -o", path.string()));
    remove_import(path);
  }
  const bool made = !fs::exists(path, failed);
  make_output_folder(path);
  try {
    write_file(path / kUnfinished, made ? kMade : kTaken);
  } catch (const Error&) {
    if (made) fs::remove(path, failed);
    throw UsageError(fmt::format("nothing can be written to {}", path.string()));
  }
  lock(path / kUnfinished);
  for (const char* folder : {"records", "events"}) {
    if (!failed) fs::create_directories(path / folder, failed);
  }
  if (!failed) return;
  remove_import(path);
  throw UsageError(fmt::format("{} cannot be made: {}", path.string(), failed.message()));
}

void remove_import(const fs::path& folder) noexcept {
  std::error_code ignored;
  std::string made;
  try {
    made = InputFile(folder / kUnfinished).text(64);
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      if (entry.path().filename() != kUnfinished) fs::remove_all(entry.path(), ignored);
    }
  } catch (const std::exception&) {
    return;
  }
  fs::remove(folder / kUnfinished, ignored);
  if (made == kMade) fs::remove(folder, ignored);
}

void finish_import(const fs::path& folder) noexcept {
  std::error_code ignored;
  fs::remove(folder / kUnfinished, ignored);
}

}  // namespace launchgap::recording
