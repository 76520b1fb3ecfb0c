#include "harness/core/output_file.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "harness/core/errors.h"

namespace launchgap {
namespace {

namespace fs = std::filesystem;

/// Where the links lead, to something that is there or not.
fs::path behind_links(fs::path path) {
  constexpr int kMostLinks = 40;  // as the kernel has it
  std::error_code no_link;
  for (int i = 0; i < kMostLinks; ++i) {
    const fs::path target = fs::read_symlink(path, no_link);
    if (no_link) break;
    path = path.parent_path() / target;
  }
  return path;
}

/// Something is there that is to be written to, and not replaced.
bool is_special(const fs::path& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

}  // namespace

OutputFile::OutputFile(const fs::path& path) : path_(path), place_(path) {
  if (is_special(path)) {
    descriptor_ = open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
  } else {
    place_ = behind_links(path);
    std::error_code failed;
    errno = EISDIR;
    if (!fs::is_directory(place_, failed)) {
      // Not the file's name, which may be as long as a name can be.
      for (int i = 0; descriptor_ < 0 && (i == 0 || (errno == EEXIST && i < 100)); ++i) {
        temporary_ = place_.parent_path() / fmt::format(".launchgap-{}-{}", getpid(), i);
        descriptor_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      }
    }
    if (descriptor_ < 0) temporary_.clear();
  }
  if (descriptor_ < 0) throw WriteError(path_);
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) close(descriptor_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void OutputFile::write(std::string_view text) {
  constexpr std::size_t kMostKept = 1 << 16;
  buffer_ += text;
  if (buffer_.size() > kMostKept) flush();
}

void OutputFile::commit() {
  flush();
  if (close(std::exchange(descriptor_, -1)) != 0) throw WriteError(path_);
  if (temporary_.empty()) return;
  if (rename(temporary_.c_str(), place_.c_str()) != 0) throw WriteError(path_);
  temporary_.clear();
}

void OutputFile::flush() {
  for (std::string_view left = buffer_; !left.empty();) {
    const ssize_t written = ::write(descriptor_, left.data(), left.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw WriteError(path_);
    left.remove_prefix(static_cast<std::size_t>(written));
  }
  buffer_.clear();
}

void check_output_place(const fs::path& path) {
  // To open a pipe would wait for its reader.
  if (!is_special(path)) OutputFile{path};
}

void make_output_folder(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  std::error_code failed;
  if (fs::exists(folder, failed) &&
      !(fs::is_directory(folder, failed) && fs::is_empty(folder, failed))) {
    throw UsageError("{} exists already and is not an empty folder: name another with -o",
                     folder.string());
  }
  fs::create_directories(folder, failed);
  if (failed) throw UsageError("{} cannot be made: {}", folder.string(), failed.message());
}

void write_file(const fs::path& path, std::string_view text) {
  OutputFile file(path);
  file.write(text);
  file.commit();
}

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
