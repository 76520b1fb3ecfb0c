// The session of a tuner's files.
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "harness/core/csv_writer.h"
#include "harness/core/errors.h"
#include "harness/core/text.h"
#include "harness/import/import_folder.h"
#include "harness/import/tuner_cache.h"
#include "harness/record/session_record.h"
#include "harness/record/writer.h"

namespace launchgap::recording {
namespace {

namespace fs = std::filesystem;

void write_times(const fs::path& file, const TunerCache& cache) {
  CsvWriter out(file, {"configuration", "ns", "runs", "log_sd", "failure"});
  for (const TunedConfiguration& one : cache.configurations)
    out.row({one.values,
             one.failure.empty() ? cell(one.ns) : "",
             fmt::format("{}", one.runs),
             fmt::format("{:.6g}", one.log_sd),
             one.failure});
  out.commit();
}

class TunerSession {
 public:
  explicit TunerSession(const ImportRequest& request)
      : request_(request), session_(session_of_import(request, "tuned", kPublished)) {
    session_.source = std::string(kPublished);
    session_.tuned.emplace();
    fs::create_directories(request.output / "tuning");
  }

  void add(const fs::path& file, const TunerCache& cache) {
    const auto [place, is_new] =
        files_.emplace(std::tuple(cache.gpu, cache.kernel, cache.problem), file);
    if (!is_new)
      throw Error("{}: {} of {} on {} is in {} already",
                  file.string(),
                  cache.kernel,
                  cache.problem,
                  cache.gpu,
                  place->second.string());
    const std::string name = fmt::format("{}.csv", session_.tuned->size());
    write_times(request_.output / "tuning" / name, cache);
    session_.tuned->push_back(
        {uuid_of(cache.gpu), cache.kernel, cache.problem, cache.parameters, name});
    configurations_ += cache.configurations.size();
    for (const TunedConfiguration& one : cache.configurations) failed_ += !one.failure.empty();
  }

  std::string finish() {
    session_.end_utc = utc_now();
    session_.state = "complete";
    write_session(request_.output, session_);
    return fmt::format("{} of {} on {}, {} failed: nothing was measured here",
                       counted(configurations_, "configuration"),
                       counted(files_.size(), "tuning"),
                       counted(devices_.size(), "GPU"),
                       failed_);
  }

 private:
  std::string uuid_of(const std::string& gpu) {
    const auto known = devices_.find(gpu);
    if (known != devices_.end()) return known->second;
    DeviceFacts facts;
    facts.uuid = "tuned-" + digest(gpu).substr(0, 12);
    facts.name = gpu;
    facts.backend = "cuda";
    facts.index = static_cast<int>(session_.devices.size());
    facts.usable = true;
    session_.devices.push_back(facts);
    return devices_[gpu] = facts.uuid;
  }

  const ImportRequest& request_;
  SessionRecord session_;
  std::map<std::tuple<std::string, std::string, std::string>, fs::path> files_;
  std::map<std::string, std::string> devices_;  // UUIDs by name
  std::size_t configurations_ = 0, failed_ = 0;
};

}  // namespace

std::vector<std::string> import_tuner_caches(const ImportRequest& request) {
  make_import_folder(request.output);
  try {
    TunerSession session(request);
    for (const fs::path& file : request.files) {
      if (!is_tuner_cache(file))
        throw Error(
            "{}: it is no cache of Kernel Tuner, as the first file is; import each kind by itself",
            file.string());
      session.add(file, read_tuner_cache(file));
    }
    return {session.finish()};
  } catch (const UsageError&) {
    remove_import(request.output);
    throw;
  } catch (const Error& error) {
    remove_import(request.output);
    throw UsageError(error.what());
  } catch (...) {
    remove_import(request.output);
    throw;
  }
}

}  // namespace launchgap::recording
