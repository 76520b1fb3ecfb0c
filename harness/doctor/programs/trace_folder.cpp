#include "harness/doctor/programs/trace_folder.h"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/doctor/libraries/library_copies.h"

namespace launchgap::doctor {
namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t kMaxBytes = 256 << 20;
constexpr std::size_t kMaxFiles = 4096;

/// CUDA's libraries, and what these need.
bool concerns_cuda(std::string_view wanted, std::string_view requested_by) {
  return is_cuda_library(wanted) || is_cuda_library(requested_by);
}

}  // namespace

TraceFolder::TraceFolder() {
  const char* const temporary = std::getenv("TMPDIR");
  std::string path =
      fmt::format("{}/launchgap-doctor-XXXXXX", temporary && *temporary ? temporary : "/tmp");
  if (!mkdtemp(path.data())) {
    path = "/tmp/launchgap-doctor-XXXXXX";
    if (!mkdtemp(path.data())) throw Error(with_errno("a temporary folder cannot be made"));
  }
  path_ = fs::absolute(path);
  // What root starts can become another user's, whose loader must be able to write: where it cannot
  // it writes to standard output. Nobody can list it, and as in /tmp nobody can remove what is
  // another's.
  if (geteuid() == 0) chmod(path_.c_str(), S_ISVTX | 0733);
}

TraceFolder::~TraceFolder() {
  std::error_code ignored;
  if (!kept_) fs::remove_all(path_, ignored);
}

bool TraceFolder::read() {
  std::error_code failed;
  bool news = false;
  for (fs::directory_iterator entry(path_, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    const std::string name = entry->path().filename().string();
    if (!files_.contains(name) && files_.size() >= kMaxFiles) {
      limited_ = true;
      fs::remove(entry->path(), failed);
      continue;
    }
    const auto [file, is_new] =
        files_.try_emplace(name, TraceFile{0, LoaderTraceReader(concerns_cuda), 0});
    news = read_file(name, file->second) || news;
  }
  return news;
}

bool TraceFolder::read_file(const std::string& name, TraceFile& file) {
  const int descriptor = open((path_ / name).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (descriptor < 0) return false;
  struct stat status {};
  if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode) || status.st_nlink != 1) {
    close(descriptor);
    return false;
  }
  const auto size = static_cast<std::uint64_t>(status.st_size);
  const std::uint64_t begin = file.offset;
  static thread_local std::array<char, 1 << 16> chunk;
  while (file.offset < size) {
    if (bytes_ >= kMaxBytes) {
      limited_ = true;
      file.offset = size;
      break;
    }
    const ssize_t n =
        pread(descriptor, chunk.data(), chunk.size(), static_cast<off_t>(file.offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    file.reader.read({chunk.data(), static_cast<std::size_t>(n)});
    file.offset += static_cast<std::uint64_t>(n);
    bytes_ += static_cast<std::uint64_t>(n);
  }
  // The loader appends at the end; what lies before need not be kept. Some file systems cannot.
  if (file.offset > begin) {
    fallocate(descriptor,
              FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
              static_cast<off_t>(begin),
              static_cast<off_t>(file.offset - begin));
  }
  close(descriptor);
  std::size_t searches = 0;
  for (const auto& [pid, trace] : file.reader.processes()) searches += trace.searches.size();
  return searches > std::exchange(file.searches, searches);
}

std::set<pid_t> TraceFolder::pids() const {
  std::set<pid_t> pids;
  for (const auto& [name, file] : files_) {
    for (const auto& [pid, trace] : file.reader.processes()) pids.insert(pid);
  }
  return pids;
}

std::map<pid_t, ProcessTrace> TraceFolder::processes() const {
  std::map<pid_t, ProcessTrace> all;
  for (const auto& [name, file] : files_) {
    for (const auto& [pid, trace] : file.reader.processes()) {
      ProcessTrace& sum = all[pid];
      if (sum.program.empty()) sum.program = trace.program;
      sum.searches.insert(sum.searches.end(), trace.searches.begin(), trace.searches.end());
      sum.truncated = sum.truncated || trace.truncated;
    }
  }
  return all;
}

}  // namespace launchgap::doctor
