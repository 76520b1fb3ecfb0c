#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sys/stat.h>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/core/stop.h"
#include "harness/fleet/merge.h"
#include "harness/summary/session_data.h"

namespace launchgap::fleet {
namespace {

namespace fs = std::filesystem;

/// Whether a records file has the record of its run's end, behind which little can follow.
bool has_end(const fs::path& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return false;
  const std::streamoff size = file.tellg();
  for (const std::streamoff length : {std::streamoff{1} << 12, std::streamoff{1} << 18}) {
    const std::streamoff begin = std::max<std::streamoff>(size - length, 0);
    std::string tail(static_cast<std::size_t>(size - begin), '\0');
    file.seekg(begin);
    if (!file.read(tail.data(), size - begin)) return false;
    if (tail.find("\"record\":\"end\"") != std::string::npos) return true;
    if (begin == 0) return false;
  }
  return false;
}

class Finder {
 public:
  /// Looks into a folder, and below it unless it is a session's.
  void look(const fs::path& folder, int depth) {
    if (stop_signal != 0) throw Stopped();
    std::error_code failed;
    const fs::path place = fs::canonical(folder, failed);
    if (failed) return problem(folder, failed.message());
    if (!seen_.insert(place).second) return;
    if (fs::exists(fs::symlink_status(place / "session.json", failed))) return take(place);
    std::vector<fs::path> below;
    bool has_records = false;
    for (fs::directory_iterator entry(place, failed), end; !failed && entry != end;
         entry.increment(failed)) {
      std::error_code ignored;
      if (!entry->is_directory(ignored)) continue;
      has_records = has_records || entry->path().filename() == "records";
      below.push_back(entry->path());
    }
    if (failed) problem(place, failed.message());
    if (has_records) return problem(place, "it has records and no session.json: copy that too");
    constexpr int kDeepest = 32;
    if (depth == kDeepest && !below.empty())
      return problem(place, fmt::format("folders more than {} deep are not looked at", kDeepest));
    std::ranges::sort(below);
    for (const fs::path& one : below) look(one, depth + 1);
  }

  FoundSessions found() {
    FoundSessions all;
    for (auto& [folder, session] : sessions_) all.sessions.push_back(std::move(session));
    all.problems = std::move(problems_);
    return all;
  }

 private:
  void problem(const fs::path& place, const std::string& what) {
    problems_.push_back(fmt::format("{}: {}", place.string(), what));
  }

  void take(const fs::path& folder) {
    FoundSession session;
    session.folder = folder;
    try {
      session.record = read_patiently(folder);
    } catch (const Error& error) {
      problems_.emplace_back(error.what());
      return;
    }
    if (session.record.parts) {
      for (const SessionPart& part : *session.record.parts) look(folder / part.folder, 0);
      return;
    }
    struct stat facts {};
    if (stat((folder / "session.json").c_str(), &facts) == 0) session.written_s = facts.st_mtime;
    std::error_code failed;
    for (fs::directory_iterator entry(folder / "records", failed), end; !failed && entry != end;
         entry.increment(failed)) {
      if (entry->path().extension() != ".jsonl") continue;
      std::error_code gone;
      const std::uintmax_t bytes = entry->file_size(gone);
      session.record_bytes += gone ? 0 : bytes;
      session.records_files.push_back(entry->path().filename().string());
      if (session.record.state == "complete" && !has_end(entry->path()))
        session.unended_files.push_back(session.records_files.back());
    }
    std::ranges::sort(session.records_files);
    std::ranges::sort(session.unended_files);
    sessions_.emplace(folder, std::move(session));
  }

  static SessionRecord read_patiently(const fs::path& folder) {
    constexpr int kTries = 5;
    for (int i = 1;; ++i) {
      try {
        return read_session_record(folder);
      } catch (const UsageError&) {
        throw;
      } catch (const Error&) {
        if (i == kTries) throw;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(250));
    }
  }

  std::set<fs::path> seen_;
  std::map<fs::path, FoundSession> sessions_;
  std::vector<std::string> problems_;
};

}  // namespace

FoundSessions find_sessions(const std::vector<std::string>& folders) {
  Finder finder;
  for (const std::string& folder : folders) {
    std::error_code failed;
    if (!fs::is_directory(folder, failed)) {
      throw UsageError("{} is not a folder: name folders of sessions, or folders that hold some",
                       folder);
    }
    finder.look(folder, 0);
  }
  return finder.found();
}

}  // namespace launchgap::fleet
