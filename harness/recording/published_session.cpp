#include "harness/recording/published_session.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "harness/core/case_name.h"
#include "harness/core/csv_table.h"
#include "harness/core/errors.h"
#include "harness/core/input_file.h"
#include "harness/core/metric.h"
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
#include "harness/recording/recorded_gpus.h"

namespace launchgap::recording {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestFirstLine = 4096;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
/// Beyond these a time or a rate computed of it is no number any more.
constexpr double kLeastValue = 1e-30, kMostValue = 1e30;

/// What a case's values are of one row each.
struct PublishedCase {
  std::map<std::string, double> values;  // by metric
  std::map<std::string, std::size_t> lines;
  std::string software;  // "cuBLAS 7.5"
  std::string source, licence;
  std::string algorithm;  // empty: not published
};

struct PublishedGpu {
  std::string name, cuda, driver;
  auto operator<=>(const PublishedGpu&) const = default;
};

using Cases = std::map<CaseName, PublishedCase>;

/// "  column value: …", with file and line before it.
[[noreturn]] void refuse(const CsvReader& row, std::string_view column, const std::string& why) {
  throw Error(fmt::format("{}, column {}: {}", row.where(), column, why));
}

/// Which cell of a row has what.
class Columns {
 public:
  explicit Columns(const CsvReader& reader) : reader_(reader) {
    std::set<std::string_view> known;
    for (const std::string_view column : kPublishedColumns) {
      known.insert(column);
      places_[column] = reader.column(column);
    }
    for (const std::string_view column : kOptionalPublishedColumns) {
      known.insert(column);
      const auto found = std::ranges::find(reader.header(), column);
      if (found != reader.header().end())
        places_[column] = static_cast<std::size_t>(found - reader.header().begin());
    }
    for (const std::string& column : reader.header()) {
      if (!known.contains(column))
        throw Error(fmt::format("{}, column {}: a table of published values has no such column",
                                reader.where(),
                                printable(column, 100)));
    }
  }

  /// Empty where the table does not have it.
  std::string of(std::string_view column) const {
    const auto place = places_.find(column);
    return place == places_.end() ? "" : reader_.cells()[place->second];
  }
  /// Refuses an empty one.
  std::string needed(std::string_view column) const {
    std::string text = of(column);
    if (text.empty()) refuse(reader_, column, "it is empty");
    return text;
  }

 private:
  const CsvReader& reader_;
  std::map<std::string_view, std::size_t> places_;
};

double value_of(const CsvReader& row, const Columns& columns) {
  const std::string text = columns.needed("value");
  double value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || end != text.data() + text.size() || !std::isfinite(value) ||
      value <= 0)
    refuse(row, "value", fmt::format("'{}' is no number above 0", printable(text, 50)));
  if (value < kLeastValue || value > kMostValue)
    refuse(
        row,
        "value",
        fmt::format("'{}' is not from {:g} to {:g}", printable(text, 50), kLeastValue, kMostValue));
  return value;
}

std::string metric_of(const CsvReader& row, const Columns& columns) {
  std::string key = columns.needed("metric");
  const std::string unit = columns.of("unit");
  const Metric* const known = find_metric(key);
  if (!known) {
    std::vector<std::string> names;
    for (const Metric& metric : all_metrics()) names.emplace_back(metric.key);
    refuse(row,
           "metric",
           fmt::format("there is no metric '{}'{}", printable(key, 50), did_you_mean(key, names)));
  }
  if (known->unit != unit)
    refuse(row,
           "unit",
           fmt::format("{} is in {}, and not in '{}'", key, known->unit, printable(unit, 50)));
  return key;
}

/// "matmul/shapes".
bool is_benchmark(std::string_view text) {
  const auto is_word = [](std::string_view word) {
    return !word.empty() && std::ranges::all_of(word, [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
    });
  };
  const std::size_t slash = text.find('/');
  return slash != text.npos && is_word(text.substr(0, slash)) && is_word(text.substr(slash + 1));
}

CaseName case_of(const CsvReader& row, const Columns& columns) {
  const std::string benchmark = columns.needed("benchmark");
  if (!is_benchmark(benchmark))
    refuse(row,
           "benchmark",
           fmt::format("'{}' is none, as matmul/shapes is: `launchgap list benchmarks`",
                       printable(benchmark, 100)));
  try {
    CaseName name = CaseName::parse(benchmark + "/" + columns.needed("case"));
    if (name.benchmark != benchmark)
      throw Error("it begins with what is no axis: axis:value/axis:value");
    return name;
  } catch (const Error& error) {
    refuse(row, "case", error.what());
  }
}

/// As the method of a summary names it.
std::string algorithm_cell(const CsvReader& row, const Columns& columns) {
  std::string text = columns.of("algorithm");
  if (!text.empty() && std::ranges::find(algorithm_names(), text) == algorithm_names().end())
    refuse(row,
           "algorithm",
           fmt::format("there is no algorithm '{}'{}",
                       printable(text, 50),
                       did_you_mean(text, {algorithm_names().begin(), algorithm_names().end()})));
  return text;
}

void read_sheet(const fs::path& file, std::map<PublishedGpu, Cases>& gpus) {
  const std::string name = printable(file.string());
  const std::string read = InputFile(file).text(kLongestSheet);
  std::string_view text = read;
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  check_utf8(text, name);
  if (!text.ends_with('\n'))
    throw Error(fmt::format("{}: its last line has no end; the file may be cut off", name));
  CsvReader row(text, name);
  const Columns columns(row);
  bool any = false;
  while (row.next()) {
    any = true;
    const PublishedGpu gpu{columns.needed("gpu"), columns.of("cuda"), columns.of("driver")};
    PublishedCase& own = gpus[gpu][case_of(row, columns)];
    const std::string metric = metric_of(row, columns);
    const auto [place, is_new] = own.lines.emplace(metric, row.line());
    if (!is_new)
      refuse(row,
             "case",
             fmt::format("a value of it is in line {} already; a file has one library of a GPU",
                         place->second));
    own.values[metric] = value_of(row, columns);
    own.source = columns.needed("source");
    own.licence = columns.needed("licence");
    own.algorithm = algorithm_cell(row, columns);
    own.software = fmt::format("{} {}", columns.of("library"), columns.of("library_version"));
    while (own.software.ends_with(' ')) own.software.pop_back();
  }
  if (!any) throw Error(fmt::format("{}: no value is in it", name));
}

DeviceFacts facts_of(const PublishedGpu& gpu, int index) {
  DeviceFacts facts;
  facts.uuid =
      "published-" + digest(fmt::format("{}|{}|{}", gpu.name, gpu.cuda, gpu.driver)).substr(0, 12);
  facts.name = gpu.name;
  facts.backend = "cuda";
  facts.index = index;
  facts.usable = true;
  return facts;
}

class PublishedSession {
 public:
  PublishedSession(const ImportRequest& request, const std::map<PublishedGpu, Cases>& gpus)
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
    for (const auto& [gpu, cases] : gpus) add(gpu, cases);
    for (const std::string& source : sources_)
      session_.notes.push_back({"info", "published: " + source});
    session_.end_utc = utc_now();
    session_.state = "complete";
    write_file(folder_ / "session.json",
               record_to_json(session_).dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
  }

  std::string line() const {
    return fmt::format("{} of {} {}, published by {}: nothing was measured here",
                       counted(values_, "value"),
                       session_.devices.size(),
                       session_.devices.size() == 1 ? "GPU" : "GPUs",
                       counted(sources_.size(), "source"));
  }

 private:
  void add(const PublishedGpu& gpu, const Cases& cases) {
    const DeviceFacts facts = facts_of(gpu, static_cast<int>(session_.devices.size()));
    session_.devices.push_back(facts);
    std::map<std::string, std::unique_ptr<RecordWriter>> writers;  // by family
    for (const auto& [name, own] : cases) {
      std::unique_ptr<RecordWriter>& writer = writers[name.family()];
      if (!writer) writer = begin(gpu, facts, name.family());
      write(*writer, name, own);
    }
    EndRecord end;
    end.status = "ok";
    for (const auto& [family, writer] : writers) writer->write(record_to_json(end));
  }

  std::unique_ptr<RecordWriter> begin(const PublishedGpu& gpu,
                                      const DeviceFacts& facts,
                                      const std::string& family) {
    const std::string file = fmt::format("{}.{}.{}.r0.jsonl", kPublished, facts.uuid, family);
    auto writer = std::make_unique<RecordWriter>(
        RecordWriter::create(folder_ / "records" / file_name_part(file)));
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
    writer->write(record_to_json(run));
    return writer;
  }

  void write(RecordWriter& writer, const CaseName& name, const PublishedCase& own) {
    std::map<std::string, double> values = own.values;
    values_ += values.size();
    sources_.insert(fmt::format("{} ({})", own.source, own.licence));
    if (const std::optional<double> operations = operations_of(name)) {
      constexpr double kTeraTimesNano = 1e3;
      for (const auto& [known, wanted] :
           {std::pair{"tflops", "device_ns"}, std::pair{"device_ns", "tflops"}}) {
        const auto found = own.values.find(known);
        if (found != own.values.end())
          values.try_emplace(wanted, *operations / found->second / kTeraTimesNano);
      }
    }
    Block block({}, 1);
    block.keep(0);
    block.close();
    std::vector<Column> columns;
    for (const auto& [metric, value] : values) columns.push_back({metric, {value}});
    writer.write_samples(name.text(), 0, 0, block, columns);
    SummaryRecord summary;
    summary.case_name = name.text();
    summary.status = Status::ok;
    summary.n = 1;
    summary.method = published_method(own.algorithm, own.source, own.software);
    writer.write(record_to_json(summary));
  }

  fs::path folder_;
  SessionRecord session_;
  std::set<std::string> sources_;
  std::size_t values_ = 0;
};

}  // namespace

bool is_published_sheet(const fs::path& file) {
  try {
    std::string_view line;
    bool torn = false;
    InputFile input(file);
    if (!input.next_line(line, torn, kLongestFirstLine)) return false;
    if (line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
    const std::string first(line);
    return std::ranges::all_of(kPublishedColumns, [&](std::string_view column) {
      return ("," + first + ",").find(fmt::format(",{}", column)) != std::string::npos;
    });
  } catch (const Error&) {  // whoever reads it says what is wrong with it
    return false;
  }
}

std::vector<std::string> import_published(const ImportRequest& request) {
  std::map<PublishedGpu, Cases> gpus;
  try {
    for (const fs::path& file : request.files) read_sheet(file, gpus);
  } catch (const Error& error) {
    throw UsageError(error.what());
  }
  make_import_folder(request.output);
  try {
    return {PublishedSession(request, gpus).line()};
  } catch (...) {
    remove_import(request.output);
    throw;
  }
}

}  // namespace launchgap::recording
