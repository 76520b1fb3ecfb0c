#include "harness/investigate/subject.h"

#include <algorithm>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/core/errors.h"
#include "harness/core/input_file.h"
#include "harness/core/printable.h"
#include "harness/core/text.h"
#include "harness/device/backend.h"
#include "harness/measure/benchmark.h"
#include "harness/record/fields.h"
#include "harness/run/devices.h"

namespace launchgap::investigate {
namespace {

/// How a session was measured, from its session.json.
struct Settings {
  std::optional<std::uint64_t> seed;
  std::optional<Profile> profile;

  static void fields(auto& self, auto&& field) {
    field("seed", self.seed);
    field("profile", self.profile);
  }
};

Settings settings_of(const SessionData& session) {
  constexpr std::size_t kLongest = std::size_t{1} << 28;
  const std::filesystem::path file = session.folder / "session.json";
  try {
    return fields_from_json<Settings>(parse_json(InputFile(file).text(kLongest)));
  } catch (const Error& error) {
    throw Error("{}: {}", file.string(), error.what());
  }
}

[[noreturn]] void refuse(const SessionData& session, const std::string& case_name) {
  constexpr std::size_t kShown = 4, kLongestName = 300;
  std::set<std::string> names;
  for (const auto& [key, data] : session.cases) names.insert(key.name.text());
  const std::string asked = case_name.substr(0, kLongestName);
  // A name without its axes means all that begin so.
  std::vector<std::string> nearest;
  for (const NearName& near : by_nearness(asked, {names.begin(), names.end()})) {
    if (nearest.size() < kShown) nearest.push_back(printable(near.name));
  }
  throw UsageError(
      nearest.empty()
          ? fmt::format("{} has no cases", session.folder.string())
          : fmt::format("{} has no case '{}'. The nearest: {}. summary.csv has all of them",
                        session.folder.string(),
                        printable(case_name),
                        fmt::join(nearest, ", ")));
}

/// The device that is meant, of those that have the case.
DeviceFacts choose_device(const std::vector<DeviceFacts>& having,
                          const std::string& case_name,
                          const std::string& wanted) {
  const std::vector<DeviceFacts> chosen =
      wanted.empty() ? having : select_devices({having, {}}, wanted);
  if (chosen.size() == 1) return chosen.front();
  std::string names;
  for (const DeviceFacts& device : having)
    names += fmt::format("{}{} ({})", names.empty() ? "" : ", ", device.uuid, device.name);
  throw UsageError(
      "{} devices have {}: choose one by --device, of {}", chosen.size(), case_name, names);
}

}  // namespace

Subject find_subject(const SessionData& session,
                     const std::string& case_name,
                     const std::string& device) {
  std::vector<DeviceFacts> having;
  bool known = false;
  for (const auto& [key, data] : session.cases) {
    if (key.name.text() != case_name) continue;
    known = true;
    const DeviceFacts* const facts = session.device(key.device);
    if (facts && std::ranges::find(having, facts->uuid, &DeviceFacts::uuid) == having.end())
      having.push_back(*facts);
  }
  if (!known) refuse(session, case_name);
  const Benchmark& benchmark = benchmark_of(CaseName::parse(case_name));
  if (benchmark.recorded) {
    throw UsageError(
        "{} is what somebody recorded, and nothing can run it again: `launchgap export "
        "{} --format chrome-trace -o TRACE.json.gz` shows its events",
        case_name,
        session.folder.string());
  }
  if (having.empty())
    throw Error(
        "{}: session.json does not have the device of {}", session.folder.string(), case_name);
  const Settings settings = settings_of(session);
  if (!settings.seed || !settings.profile) {
    throw Error(
        "{}: session.json lacks the seed or the profile, so the case cannot be run as "
        "it was",
        session.folder.string());
  }
  return {.session_id = session.id,
          .case_name = case_name,
          .device = choose_device(having, case_name, device),
          .profile = *settings.profile,
          .seed = *settings.seed};
}

}  // namespace launchgap::investigate
