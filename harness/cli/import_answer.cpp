#include "harness/cli/import_answer.h"

#include <memory>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "harness/cli/console.h"
#include "harness/cli/page.h"
#include "harness/core/output_file.h"
#include "harness/core/say.h"
#include "harness/core/text.h"
#include "harness/import/import_folder.h"
#include "harness/summary/all_tables.h"
#include "harness/summary/job_answer.h"

namespace launchgap::cli {
namespace {

namespace fs = std::filesystem;

/// An answer has no more lines, so that it stands on one screen; allocations have a few of their
/// own.
constexpr std::size_t kMostLines = 14;

/// A line for each process and GPU whose allocations were recorded, as far as they stand on a
/// screen.
std::string allocation_table(const SessionData& session) {
  std::vector<std::vector<std::string>> rows = {{"allocations on",
                                                 "process",
                                                 "allocations",
                                                 "releases",
                                                 "from before",
                                                 "failed",
                                                 "peak",
                                                 "live at the end"}};
  for (const RecordingInfo& info : session.recordings) {
    const RecordingRecord& record = info.record;
    if (!record.allocations) continue;
    const DeviceFacts* const device = session.device(info.device);
    const auto count = [](const std::optional<std::uint64_t>& number) {
      return std::to_string(number.value_or(0));
    };
    const auto bytes = [](const std::optional<std::uint64_t>& number) {
      return bytes_text(static_cast<double>(number.value_or(0)));
    };
    rows.push_back(
        {fmt::format("GPU {}, {}", device ? device->index : 0, device ? device->name : ""),
         record.pid && *record.pid > 0 ? std::to_string(*record.pid) : "–",
         count(record.allocations),
         count(record.releases),
         count(record.unseen_releases),
         count(record.failed_allocations),
         bytes(record.most_live_bytes),
         bytes(record.live_at_end_bytes)});
  }
  if (rows.size() == 1) return "";
  constexpr std::size_t kMostRows = 6;  // with the heading
  if (rows.size() <= kMostRows) return table(rows);
  const std::size_t more = rows.size() - kMostRows;
  rows.resize(kMostRows);
  return table(rows) + fmt::format("and {} more: recordings.csv\n", more);
}

/// Where the answer as JSON goes; "-" is standard output, which then has nothing else.
void write_json(const SessionData& session, const std::string& place) {
  const std::string text = text_of_json(job_json(session), 1);
  if (place == "-") {
    answer("{}\n", text);
  } else {
    write_file(place, text + "\n");
  }
}

}  // namespace

void report_import(const fs::path& folder,
                   bool with_page,
                   const std::string& json,
                   const std::string& more) {
  std::vector<std::unique_ptr<Summarised>> sessions;
  try {
    sessions.push_back(std::make_unique<Summarised>(folder));
    const Summarised& summarised = *sessions.front();
    write_tables(summarised.table_inputs(), TableUse::session, folder);
    if (!json.empty()) write_json(summarised.session, json);
    if (json != "-") {
      // Two more say where tables and page are.
      answer_text(job_text(summarised.session, kMostLines - 2));
      answer_text(allocation_table(summarised.session));
      answer_text(more);
      answer("Tables: {}\n", (folder / "summary.csv").string());
    }
    if (with_page && json == "-") {
      write_page(sessions, gap_of(sessions), folder / "report.html");
    } else if (with_page) {
      offer_page(sessions, folder);
    }
  } catch (...) {
    recording::remove_import(folder);
    throw;
  }
  recording::finish_import(folder);
}

}  // namespace launchgap::cli
