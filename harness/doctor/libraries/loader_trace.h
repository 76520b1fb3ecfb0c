// What glibc's loader says it looked for: LD_DEBUG=libs,files, one file per process.
// The messages are those of elf/dl-load.c, dl-object.c and dl-open.c, the same since glibc 2.2.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace launchgap::doctor {

/// Why the loader looked into a folder.
struct PathOrigin {
  enum class Rule {
    given_path,       // the program asked for a file by its path
    ld_library_path,  // an entry of LD_LIBRARY_PATH
    rpath,            // DT_RPATH of `of_file`
    runpath,          // DT_RUNPATH of `of_file`
    cache,            // /etc/ld.so.cache, made by ldconfig
    default_folder,   // /lib, /usr/lib and the like
    unknown,
  };
  Rule kind = Rule::unknown;
  std::string folder;   // the entry: without the subfolders for kinds of processors
  std::string of_file;  // whose RPATH or RUNPATH

  /// "LD_LIBRARY_PATH entry /opt/old/lib", "RUNPATH of /usr/bin/x", "the loader's cache", "default
  /// folder /usr/lib"; printable.
  std::string text() const;
  friend bool operator==(const PathOrigin&, const PathOrigin&) = default;
};

/// One library that was wanted, and everything the loader tried for it.
struct LoaderSearch {
  struct Attempt {
    std::string path;
    PathOrigin origin;
  };

  std::string wanted;        // "libcusolver.so.10", or a path
  std::string requested_by;  // the file that asked; empty for a library of LD_PRELOAD
  bool dlopened = false;     // asked for while running; otherwise linked (NEEDED), or preloaded
  bool searched = false;     // by name; a path is taken or not
  /// In the loader's order. Subfolders for kinds of processors are left out unless taken.
  std::vector<Attempt> attempts;
  std::string found;      // the file that was taken; empty if none was
  PathOrigin origin;      // of `found`
  bool unloaded = false;  // it was taken, and given back since something that it needs is missing
  bool already_loaded = false;  // `found` was in the process before, under another name
  std::string error;            // dlopen's words, where they are known

  /// Why this file was taken ("LD_LIBRARY_PATH entry /opt/old/lib"), or where it was looked for.
  std::string why() const;
};

/// The searches of one process.
struct ProcessTrace {
  std::string program;  // as the loader names it; empty if it has not come that far
  std::vector<LoaderSearch> searches;
  bool truncated = false;  // there were more than are kept
};

/// Reads a trace piece by piece, in any pieces: lines can be cut, torn or of several processes.
/// Memory and time are bounded by what it keeps, not by what it reads.
class LoaderTraceReader {
 public:
  using SearchFilter = std::function<bool(std::string_view wanted, std::string_view requested_by)>;

  /// Keeps the searches for which `keep` is true; all without it.
  explicit LoaderTraceReader(SearchFilter keep = {}) : keep_(std::move(keep)) {}

  void read(std::string_view piece);
  /// By process id: children that were forked write into their parent's file.
  const std::map<pid_t, ProcessTrace>& processes() const { return processes_; }

 private:
  struct ReadingState {
    PathOrigin origin;        // of the paths that are being tried
    std::size_t current = 0;  // the search in progress, 1-based; 0: none that is kept
    std::map<std::string, std::size_t, std::less<>> by_name;  // the latest search for it
    std::string last_path;
    PathOrigin last_origin;
  };

  void line(std::string_view text);
  void wanted(ProcessTrace& trace,
              ReadingState& state,
              std::string_view name,
              std::string_view rest);
  void attempt(ProcessTrace& trace, ReadingState& state, std::string_view path);
  void keep_attempt(ProcessTrace& trace, LoaderSearch& search, const ReadingState& state);
  bool has_room(ProcessTrace& trace, std::size_t bytes);
  LoaderSearch* search_of(ProcessTrace& trace, ReadingState& state, std::string_view name);
  static LoaderSearch* current_search(ProcessTrace& trace, const ReadingState& state);

  SearchFilter keep_;
  std::string rest_;  // of a line that has no end yet
  std::size_t kept_bytes_ = 0;
  std::map<pid_t, ProcessTrace> processes_;
  std::map<pid_t, ReadingState> states_;
};

/// What one file of a trace says of process `pid`, or of all that wrote to it.
ProcessTrace parse_loader_trace(std::string_view text, pid_t pid);

/// A name that is opened by another name of the same file leaves no word of success in the trace.
/// Where the last file that was tried exists and can be loaded, it was taken.
void resolve_already_loaded(std::vector<LoaderSearch>& searches);

/// The environment by which a process leaves its trace in `folder`.
std::map<std::string, std::string> loader_trace_environment(const std::filesystem::path& folder);

/// For a worker process that was started with that environment: opens each library with dlopen, in
/// this order, and says what the loader took and why, or its error. Libraries stay open. The
/// searches of libraries that these needed follow. Throws Error if the environment is not set.
std::vector<LoaderSearch> trace_loading(const std::vector<std::string>& names);

}  // namespace launchgap::doctor
