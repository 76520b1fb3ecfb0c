#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "harness/core/csv_writer.h"
#include "harness/core/errors.h"
#include "harness/core/printable.h"
#include "harness/core/text.h"
#include "harness/import/import_folder.h"
#include "harness/import/published_table.h"
#include "harness/record/session_record.h"
#include "harness/record/writer.h"

namespace launchgap::recording {
namespace {

namespace fs = std::filesystem;

DeviceFacts published_facts(const PublishedGpu& gpu, int index) {
  DeviceFacts facts;
  // As JSON no two GPUs have one text.
  facts.uuid = "published-" + digest(text_of_json(Json{gpu.name, gpu.cuda, gpu.driver}));
  facts.name = gpu.name;
  facts.backend = "cuda";
  facts.index = index;
  facts.usable = true;
  return facts;
}

/// "2,233 values of 4 GPUs with 5 sets of CUDA and driver".
std::string gpus_text(const std::vector<DeviceFacts>& devices) {
  std::set<std::string> names;
  for (const DeviceFacts& device : devices) names.insert(device.name);
  std::string text = counted(names.size(), "GPU");
  if (devices.size() > names.size())
    text += fmt::format(" with {} of CUDA and driver", counted(devices.size(), "set"));
  return text;
}

class PublishedSession {
 public:
  PublishedSession(const ImportRequest& request, const PublishedTables& tables)
      : folder_(request.output), session_(session_of_import(request, "published", kPublished)) {
    session_.source = std::string(kPublished);
    fs::create_directories(folder_ / "published");
    session_.published.emplace();
    for (const auto& [gpu, families] : tables.gpus()) add(gpu, families);
    for (const PublishedOrigin& origin : session_.published->origins)
      sources_.insert(fmt::format("{} ({})", origin.source, origin.licence));
    for (const std::string& source : sources_)
      session_.notes.push_back({"info", "published: " + source});
    if (values_ > kMostPublishedCases)
      session_.notes.push_back(
          {"info",
           fmt::format("more than {} values: the comparison of GPUs counts them all, and the "
                       "tables and the page have no single case of them",
                       kMostPublishedCases)});
    session_.end_utc = utc_now();
    session_.state = "complete";
    write_session(folder_, session_);
  }

  std::string line() const {
    return fmt::format("{} of {}, published by {}: nothing was measured here",
                       counted(values_, "value"),
                       gpus_text(session_.devices),
                       counted(sources_.size(), "source"));
  }

 private:
  void add(const PublishedGpu& gpu, const std::map<std::string, PublishedCases>& families) {
    const DeviceFacts facts = published_facts(gpu, static_cast<int>(session_.devices.size()));
    const std::string file = fmt::format("{}.csv", session_.devices.size());
    session_.devices.push_back(facts);
    session_.published->files.push_back({facts.uuid, gpu.cuda, gpu.driver, file});
    CsvWriter out(folder_ / "published" / file, {"case", "metric", "value", "origin"});
    for (const auto& [family, cases] : families) {
      for (const auto& [name, own] : cases) {
        for (const SheetValue& value : own.values)
          out.row({name,
                   std::string(value.metric->key),
                   cell(value.value),
                   std::to_string(place_of(*own.origin))});
        values_ += own.values.size();
      }
    }
    out.commit();
  }

  /// Of an origin among those of the session.
  std::size_t place_of(const PublishedOrigin& origin) {
    const auto [place, is_new] = places_.try_emplace(&origin, places_.size());
    if (is_new) session_.published->origins.push_back(origin);
    return place->second;
  }

  fs::path folder_;
  SessionRecord session_;
  std::map<const PublishedOrigin*, std::size_t> places_;
  std::set<std::string> sources_;
  std::size_t values_ = 0;
};

}  // namespace

bool are_published_sheets(const ImportRequest& request) {
  const auto other = std::ranges::find_if_not(request.files, is_published_sheet);
  if (other == request.files.end()) return true;
  const auto table = std::ranges::find_if(request.files, is_published_sheet);
  if (table == request.files.end()) return false;
  throw UsageError(
      "tables of published values and recordings cannot be one session: {} is such a "
      "table, {} is none",
      printable(table->string()),
      printable(other->string()));
}

std::vector<std::string> import_published(const ImportRequest& request) {
  PublishedTables tables(request.benchmarks);
  try {
    for (const fs::path& file : request.files) tables.read(file);
  } catch (const Error& error) {
    throw UsageError(error.what());
  }
  make_import_folder(request.output);
  try {
    return {PublishedSession(request, tables).line()};
  } catch (...) {
    remove_import(request.output);
    throw;
  }
}

}  // namespace launchgap::recording
