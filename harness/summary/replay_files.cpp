#include "harness/summary/replay_files.h"

#include <algorithm>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/core/input_file.h"

namespace launchgap {

namespace fs = std::filesystem;

void read_replays(SessionData& session) {
  constexpr std::size_t kLongest = std::size_t{256} << 20;
  std::vector<fs::path> files;
  std::error_code failed;
  for (fs::directory_iterator entry(session.folder / "replays", failed), end;
       !failed && entry != end;
       entry.increment(failed)) {
    if (entry->path().extension() == ".json") files.push_back(entry->path());
  }
  std::ranges::sort(files);
  for (const fs::path& file : files) {
    try {
      const Json json = parse_json(InputFile(file).text(kLongest));
      if (field<std::string>(json, "record") != ReplayRecord::kName)
        throw Error("it is no replay of allocations");
      session.replays.push_back({file.stem().string(), fields_from_json<ReplayRecord>(json)});
    } catch (const Error& error) {
      session.problems.push_back(fmt::format("{}: {}", file.string(), error.what()));
    }
  }
}

}  // namespace launchgap
