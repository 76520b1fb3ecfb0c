#include "harness/doctor/libraries/loader_trace.h"

#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <link.h>
#include <optional>
#include <set>
#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/core/errors.h"
#include "harness/core/number_text.h"
#include "harness/core/printable.h"
#include "harness/core/system_files.h"
#include "harness/doctor/libraries/elf_file.h"

namespace launchgap::doctor {
namespace {

constexpr std::size_t kMaxLine = 1 << 16;
constexpr std::size_t kMaxProcesses = 4096;
constexpr std::size_t kMaxSearches = 8192;
constexpr std::size_t kMaxAttempts = 256;
constexpr std::size_t kMaxName = 4096;
constexpr std::size_t kMaxKeptBytes = 32 << 20;

bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

/// "/opt/lib" of "/opt/lib/glibc-hwcaps/x86-64-v3" and of "/opt/lib/tls/haswell/x86_64": the folder
/// that somebody named, of those that the loader makes of it.
std::string_view named_folder(std::string_view folder) {
  if (const auto at = folder.find("/glibc-hwcaps/"); at != std::string_view::npos)
    return folder.substr(0, at);
  // The subfolders before glibc 2.33; "x86_64" is one only behind or in place of another.
  static const std::set<std::string_view> legacy = {
      "tls", "haswell", "xeon_phi", "avx512_1", "x86_64", "aarch64", "atomics"};
  std::string_view named = folder;
  for (;;) {
    const std::size_t slash = named.rfind('/');
    if (slash == std::string_view::npos || slash == 0) return named;
    if (!legacy.contains(named.substr(slash + 1))) return named;
    named = named.substr(0, slash);
  }
}

std::string_view folder_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

PathOrigin origin_of(std::string_view words) {
  PathOrigin origin;
  if (words == "LD_LIBRARY_PATH") {
    origin.kind = PathOrigin::Rule::ld_library_path;
  } else if (take_prefix(words, "RPATH from file ")) {
    origin = {PathOrigin::Rule::rpath, "", std::string(words)};
  } else if (take_prefix(words, "RUNPATH from file ")) {
    origin = {PathOrigin::Rule::runpath, "", std::string(words)};
  } else if (words == "system search path") {
    origin.kind = PathOrigin::Rule::default_folder;
  }
  return origin;
}

/// "NAME" of "NAME [0];  needed by X [0]"; `rest` is what follows. Nothing if it has not this form.
std::optional<std::string_view> name_of(std::string_view text, std::string_view& rest) {
  for (std::size_t at = text.find(" ["); at != std::string_view::npos;
       at = text.find(" [", at + 1)) {
    std::size_t end = at + 2;
    while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
    if (end == at + 2 || !text.substr(end).starts_with("];")) continue;
    rest = text.substr(end + 2);
    while (rest.starts_with(' ')) rest.remove_prefix(1);
    return text.substr(0, at);
  }
  return std::nullopt;
}

std::string_view without_namespace(std::string_view text) {
  const std::size_t at = text.rfind(" [");
  return at == std::string_view::npos || !text.ends_with(']') ? text : text.substr(0, at);
}

std::string bounded(std::string_view text) {
  return std::string(text.substr(0, kMaxName));
}

}  // namespace

std::string PathOrigin::text() const {
  switch (kind) {
    case Rule::given_path:
      return "the path that the program gave";
    case Rule::ld_library_path:
      return "LD_LIBRARY_PATH entry " + printable(folder);
    case Rule::rpath:
      return "RPATH of " + printable(of_file);
    case Rule::runpath:
      return "RUNPATH of " + printable(of_file);
    case Rule::cache:
      return "the loader's cache";
    case Rule::default_folder:
      return "default folder " + printable(folder);
    case Rule::unknown:
      return "a reason that the loader did not tell";
  }
  return "";
}

std::string LoaderSearch::why() const {
  if (already_loaded) return origin.text() + "; it was loaded before under another name";
  if (!found.empty()) return origin.text();
  if (!searched) return "no file of this path could be loaded";
  std::vector<std::string> places;
  bool by_default = false;
  for (const Attempt& attempt : attempts) {
    // Default folders are the same for everybody: one word for all of them.
    const bool is_default = attempt.origin.kind == PathOrigin::Rule::default_folder;
    std::string place = is_default ? "the default folders" : attempt.origin.text();
    by_default = by_default || is_default;
    if (std::ranges::find(places, place) == places.end()) places.push_back(std::move(place));
  }
  const auto cache = std::ranges::find(places, "the loader's cache");
  if (by_default && cache == places.end()) places.insert(places.end() - 1, "the loader's cache");
  if (places.empty()) return "looked for in the loader's cache and the default folders";
  return fmt::format("looked for in {}", fmt::join(places, ", "));
}

void LoaderTraceReader::read(std::string_view piece) {
  while (!piece.empty()) {
    const std::size_t end = piece.find('\n');
    const std::string_view part = piece.substr(0, end);
    rest_.append(part);
    // The longest lines are search paths, whose end says what they are: the middle is given up.
    if (rest_.size() > 2 * kMaxLine) rest_.erase(kMaxLine, rest_.size() - 2 * kMaxLine);
    if (end == std::string_view::npos) return;
    line(rest_);
    rest_.clear();
    piece.remove_prefix(end + 1);
  }
}

void LoaderTraceReader::line(std::string_view text) {
  // "     12345:\t…"
  while (text.starts_with(' ')) text.remove_prefix(1);
  const pid_t pid = take_number<pid_t>(text).value_or(0);
  if (pid <= 0 || !take_prefix(text, ":\t")) return;
  if (!processes_.contains(pid) && processes_.size() >= kMaxProcesses) return;
  ProcessTrace& trace = processes_[pid];
  ReadingState& state = states_[pid];

  std::string_view rest;
  if (take_prefix(text, "file=")) {
    if (const auto name = name_of(text, rest)) wanted(trace, state, *name, rest);
  } else if (take_prefix(text, "find library=")) {
    const auto name = name_of(text, rest);
    if (!name) return;
    state.origin = {};
    state.last_path.clear();
    LoaderSearch* const search = search_of(trace, state, *name);
    if (search) search->searched = true;
    state.current = search ? static_cast<std::size_t>(search - trace.searches.data()) + 1 : 0;
  } else if (take_prefix(text, " search path=")) {
    // "/a:/b\t\t(RPATH from file ./x)"
    const std::size_t open = text.rfind("\t\t(");
    const bool whole = open != std::string_view::npos && text.ends_with(')');
    state.origin = whole ? origin_of(text.substr(open + 3, text.size() - open - 4)) : PathOrigin{};
  } else if (take_prefix(text, " search cache=")) {
    state.origin = {PathOrigin::Rule::cache, "", ""};
  } else if (take_prefix(text, "  trying file=")) {
    attempt(trace, state, text);
  } else if (take_prefix(text, "initialize program: ")) {
    trace.program = bounded(text);
  }
}

void LoaderTraceReader::wanted(ProcessTrace& trace,
                               ReadingState& state,
                               std::string_view name,
                               std::string_view rest) {
  const bool needed = take_prefix(rest, "needed by ");
  const bool dlopened = !needed && take_prefix(rest, "dynamically loaded by ");
  if (needed || dlopened) {
    state.current = 0;
    const std::string_view by = without_namespace(rest);
    if (keep_ && !keep_(name, by)) return;
    if (!has_room(trace, name.size())) return;
    LoaderSearch search;
    search.wanted = bounded(name);
    search.requested_by = bounded(by);
    search.dlopened = dlopened;
    trace.searches.push_back(std::move(search));
    state.by_name[bounded(name)] = trace.searches.size();
    return;
  }
  if (rest.starts_with("generating link map")) {
    LoaderSearch* const search = search_of(trace, state, name);
    if (!search) return;
    if (!search->searched) {
      search->found = search->wanted;
      search->origin = {PathOrigin::Rule::given_path, std::string(folder_of(name)), ""};
    } else if (search == current_search(trace, state) && !state.last_path.empty()) {
      search->found = state.last_path;
      search->origin = state.last_origin;
      if (search->attempts.empty() || search->attempts.back().path != state.last_path)
        keep_attempt(trace, *search, state);
    }
  } else if (rest.starts_with("destroying link map")) {
    // This names the file, not what was wanted.
    for (LoaderSearch& search : trace.searches) {
      if (search.found == name) search.unloaded = true;
    }
  }
}

void LoaderTraceReader::attempt(ProcessTrace& trace, ReadingState& state, std::string_view path) {
  const std::string_view folder = folder_of(path), named = named_folder(folder);
  state.last_path = bounded(path);
  state.last_origin = state.origin;
  state.last_origin.folder = bounded(named);
  // One below a subfolder is only told if it is what was taken.
  if (state.current > 0 && named == folder)
    keep_attempt(trace, trace.searches[state.current - 1], state);
}

void LoaderTraceReader::keep_attempt(ProcessTrace& trace,
                                     LoaderSearch& search,
                                     const ReadingState& state) {
  if (search.attempts.size() >= kMaxAttempts || !has_room(trace, state.last_path.size())) return;
  search.attempts.push_back({state.last_path, state.last_origin});
}

bool LoaderTraceReader::has_room(ProcessTrace& trace, std::size_t bytes) {
  kept_bytes_ += bytes + sizeof(LoaderSearch);
  if (kept_bytes_ <= kMaxKeptBytes && trace.searches.size() < kMaxSearches) return true;
  trace.truncated = true;
  return false;
}

LoaderSearch* LoaderTraceReader::search_of(ProcessTrace& trace,
                                           ReadingState& state,
                                           std::string_view name) {
  const auto found = state.by_name.find(name);
  if (found != state.by_name.end()) return &trace.searches[found->second - 1];
  // Libraries of LD_PRELOAD are looked for without a word of who wants them.
  if ((keep_ && !keep_(name, "")) || !has_room(trace, name.size())) return nullptr;
  LoaderSearch search;
  search.wanted = bounded(name);
  trace.searches.push_back(std::move(search));
  state.by_name[bounded(name)] = trace.searches.size();
  return &trace.searches.back();
}

LoaderSearch* LoaderTraceReader::current_search(ProcessTrace& trace, const ReadingState& state) {
  return state.current == 0 ? nullptr : &trace.searches[state.current - 1];
}

ProcessTrace parse_loader_trace(std::string_view text, pid_t pid) {
  LoaderTraceReader reader;
  reader.read(text);
  const auto found = reader.processes().find(pid);
  return found == reader.processes().end() ? ProcessTrace{} : found->second;
}

void resolve_already_loaded(std::vector<LoaderSearch>& searches) {
  for (LoaderSearch& search : searches) {
    if (!search.found.empty()) continue;
    if (!search.searched) {
      if (search.wanted.find('/') == std::string::npos || why_not_loadable(search.wanted)) continue;
      search.found = search.wanted;
      search.origin = {PathOrigin::Rule::given_path, std::string(folder_of(search.wanted)), ""};
      search.already_loaded = true;
    } else if (!search.attempts.empty() && !why_not_loadable(search.attempts.back().path)) {
      search.found = search.attempts.back().path;
      search.origin = search.attempts.back().origin;
      search.already_loaded = true;
    }
  }
}

std::map<std::string, std::string> loader_trace_environment(const std::filesystem::path& folder) {
  return {{"LD_DEBUG", "libs,files"}, {"LD_DEBUG_OUTPUT", (folder / "loader").string()}};
}

std::vector<LoaderSearch> trace_loading(const std::vector<std::string>& names) {
  const char* const output = std::getenv("LD_DEBUG_OUTPUT");
  if (!output || !std::getenv("LD_DEBUG"))
    throw Error("the loader was not asked to say what it does (LD_DEBUG, LD_DEBUG_OUTPUT)");
  const std::string file = fmt::format("{}.{}", output, getpid());
  constexpr std::size_t kMost = 64 << 20;
  const SystemFiles files;
  const std::size_t before = files.read(file, kMost).value_or("").size();

  struct Opened {
    std::string path, error;
  };
  std::vector<Opened> opened;
  for (const std::string& name : names)
    opened.push_back([&]() -> Opened {
      dlerror();
      void* const handle = dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL);
      link_map* map = nullptr;
      if (handle && dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map) return {map->l_name, ""};
      const char* const error = dlerror();
      return {"", printable(error ? error : "no reason was given")};
    }());

  const std::string text = files.read(file, kMost).value_or("");
  ProcessTrace trace =
      parse_loader_trace(std::string_view(text).substr(std::min(before, text.size())), getpid());
  std::vector<LoaderSearch> searches;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto traced = std::ranges::find(trace.searches, names[i], &LoaderSearch::wanted);
    LoaderSearch search;
    if (traced != trace.searches.end()) search = *traced;
    search.wanted = names[i];
    search.error = opened[i].error;
    search.unloaded = !search.error.empty() && !search.found.empty();
    if (search.error.empty() && search.found.empty()) {
      // The loader says nothing more of a file that is in the process already.
      search.already_loaded = true;
      search.found = opened[i].path;
      if (!search.attempts.empty()) search.origin = search.attempts.back().origin;
    }
    searches.push_back(std::move(search));
  }
  for (LoaderSearch& search : trace.searches) {
    if (std::ranges::find(names, search.wanted) == names.end())
      searches.push_back(std::move(search));
  }
  return searches;
}

}  // namespace launchgap::doctor
