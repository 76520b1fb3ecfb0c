#include "harness/recording/published_session.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "harness/core/case_name.h"
#include "harness/core/errors.h"
#include "harness/core/output_file.h"
#include "harness/core/plan.h"
#include "harness/core/printable.h"
#include "harness/core/text.h"
#include "harness/core/trace_state.h"
#include "harness/core/utc.h"
#include "harness/core/version.h"
#include "harness/device/algorithm_name.h"
#include "harness/device/shape_text.h"
#include "harness/record/records.h"
#include "harness/record/session_record.h"
#include "harness/record/writer.h"
#include "harness/recording/import_folder.h"
#include "harness/recording/published_table.h"
#include "harness/recording/recorded_gpus.h"

namespace launchgap::recording {
namespace {

namespace fs = std::filesystem;

DeviceFacts published_facts(const PublishedGpu& gpu, int index) {
  DeviceFacts facts;
  // As JSON no two GPUs have one text.
  facts.uuid = "published-" + digest(Json{gpu.name, gpu.cuda, gpu.driver}.dump());
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
      : folder_(request.output) {
    session_.session_id = fmt::format("published-{}", digest_of_files(request.files));
    session_.source = std::string(kPublished);
    session_.begin_utc = utc_now();
    session_.command_line = request.command_line;
    session_.profile = Profile::full;
    session_.tracing = {text_of(TraceState::off), ""};
    session_.launchgap_version = kVersion;
    session_.build = {kBuildType, kCompiler, kGitRevision};
    session_.host.node = std::string(kPublished);
    session_.replicates = 1;
    for (const auto& [gpu, families] : tables.gpus()) add(gpu, families);
    for (const std::string& source : sources_)
      session_.notes.push_back({"info", "published: " + source});
    session_.end_utc = utc_now();
    session_.state = "complete";
    write_file(folder_ / "session.json",
               record_to_json(session_).dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
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
    session_.devices.push_back(facts);
    for (const auto& [family, cases] : families) {
      RecordWriter writer = begin(gpu, facts, family);
      for (const auto& [name, own] : cases) write(writer, name, own);
      EndRecord end;
      end.status = "ok";
      writer.write(record_to_json(end));
    }
  }

  RecordWriter begin(const PublishedGpu& gpu, const DeviceFacts& facts, const std::string& family) {
    const std::string file = fmt::format("{}.{}.{}.r0.jsonl", kPublished, facts.uuid, family);
    RecordWriter writer = RecordWriter::create(folder_ / "records" / file_name_part(file));
    RunRecord run;
    run.session_id = *session_.session_id;
    run.node = std::string(kPublished);
    run.arm = std::string(kPublished);
    run.setup = ProcessConfig(family);
    run.device = facts;
    run.trace_state = text_of(TraceState::off);
    run.versions = std::map<std::string, std::string>{{"cuda", gpu.cuda}, {"driver", gpu.driver}};
    run.fingerprint =
        Json{{"device", facts.name}, {"cuda", gpu.cuda}, {"driver_version", gpu.driver}};
    writer.write(record_to_json(run));
    return writer;
  }

  void write(RecordWriter& writer, const std::string& name, const PublishedCase& own) {
    std::map<std::string_view, double> values;
    for (const PublishedValue& value : own.values) values.emplace(value.metric->key, value.value);
    const PublishedOrigin& origin = *own.origin;
    sources_.insert(fmt::format("{} ({})", origin.source, origin.licence));
    values_ += values.size();
    if (const std::optional<double> operations = operations_of(CaseName::parse(name))) {
      constexpr double kTeraTimesNano = 1e3;
      const std::pair<std::string_view, std::string_view> both[] = {{"tflops", "device_ns"},
                                                                    {"device_ns", "tflops"}};
      for (const auto& [known, wanted] : both) {
        const auto found = values.find(known);
        if (found != values.end())
          values.try_emplace(wanted, *operations / found->second / kTeraTimesNano);
      }
    }
    Block block({}, 1);
    block.keep(0);
    block.close();
    std::vector<Column> columns;
    for (const auto& [metric, value] : values) columns.push_back({metric, {value}});
    writer.write_samples(name, 0, 0, block, columns);
    SummaryRecord summary;
    summary.case_name = name;
    summary.status = Status::ok;
    summary.n = 1;
    summary.method = published_method(origin.algorithm, origin.source, origin.software);
    writer.write(record_to_json(summary));
  }

  fs::path folder_;
  SessionRecord session_;
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
      fmt::format("tables of published values and recordings cannot be one session: {} is such a "
                  "table, {} is none",
                  printable(table->string()),
                  printable(other->string())));
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
