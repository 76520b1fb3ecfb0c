#include "harness/cli/page.h"

#include <cstdlib>

#include "harness/core/errors.h"
#include "harness/core/input_file.h"
#include "harness/core/output_file.h"
#include "harness/core/plan.h"
#include "harness/core/say.h"
#include "harness/core/stop.h"
#include "harness/gap/gap.h"
#include "harness/run/process.h"
#include "harness/summary/all_tables.h"

namespace launchgap::cli {
namespace {

namespace fs = std::filesystem;

std::string python(const fs::path& root) {
  if (const char* own = std::getenv("LAUNCHGAP_PYTHON"); own && *own) return own;
  const fs::path venv = root / ".venv/bin/python3";
  std::error_code ignored;
  return fs::exists(venv, ignored) ? venv.string() : "python3";
}

}  // namespace

PythonPackage::PythonPackage() {
  const fs::path bin = fs::path(own_executable()).parent_path();
  std::error_code ignored;
  for (const fs::path& root : {bin / "../share/launchgap", bin / "../.."}) {
    if (!fs::exists(root / "reports/launchgap_report/__main__.py", ignored)) continue;
    root_ = fs::weakly_canonical(root);
    return;
  }
  throw Error("the page cannot be made: the folder reports/ is not beside {}", bin.string());
}

ProgramRequest PythonPackage::request(const std::string& module,
                                      const std::vector<std::string>& arguments,
                                      const fs::path& scratch) const {
  ProgramRequest request;
  request.arguments = {python(root_), "-m", module};
  request.arguments.insert(request.arguments.end(), arguments.begin(), arguments.end());
  // Its linear algebra is small, and where memory is short OpenBLAS waits for ever for its threads.
  // Files of the folder in which one stands are not Python's modules.
  request.environment = {{"PYTHONPATH", (root_ / "reports").string()},
                         {"PYTHONSAFEPATH", "1"},
                         {"OPENBLAS_NUM_THREADS", "1"},
                         {"PYTHONDONTWRITEBYTECODE", "1"},
                         {"TMPDIR", scratch.string()}};
  return request;
}

namespace {

constexpr std::size_t kLargestPage = std::size_t{1} << 31;

/// Of a table that others have published a page shows the beginning: what it says of them all is
/// said in the comparison's tables.
std::size_t rows_on_page(const SessionData& session) {
  constexpr std::size_t kMostPublished = 20'000;
  return session.has_arm(kPublished) ? kMostPublished : kAllRows;
}

/// How long the page may take to draw.
double page_limit_s() {
  constexpr double kLimitS = 1800;
  const char* const chosen = std::getenv("LAUNCHGAP_PAGE_TIMEOUT");
  const double seconds = chosen ? std::strtod(chosen, nullptr) : 0;
  return seconds > 0 ? seconds : kLimitS;
}

/// Throws Error unless there is a page.
void check_drawn(const ProcessEnd& end, const std::string& python) {
  if (end.exit_code == ProgramOutcome::kNotFound)
    throw Error(
        "the page cannot be made: there is no {} to run; install Python 3 with matplotlib "
        "and jinja2 (in a checkout, scripts/setup does)",
        python);
  if (!end.clean())
    throw Error("the page was not made (the line above says why); {} {}", python, end.text());
}

/// The tables of a page, in a temporary folder, and the Python that draws it.
class PageInMaking {
 public:
  /// Throws Error where nothing can be written.
  explicit PageInMaking(fs::path output) : output_(std::move(output)) {
    check_output_place(output_);
    if (scratch_.path().empty()) throw Error(with_errno("a temporary folder cannot be made"));
  }

  /// For tables. Where it cannot be made, the first table says so.
  fs::path add_folder(const std::string& name) const {
    std::error_code failed;
    fs::create_directory(scratch_.path() / name, failed);
    return scratch_.path() / name;
  }
  void add_argument(const std::string& option, const fs::path& value) {
    arguments_.push_back(option);
    arguments_.push_back(value.string());
  }
  void add_session(const fs::path& session, const fs::path& tables) {
    add_argument("--session", session);
    add_argument("--tables", tables);
  }

  /// Runs Python, which writes its own errors to standard error. Throws Stopped once a signal was
  /// noted, and Error if there is no page, or it takes too long.
  void draw() {
    const fs::path page = scratch_.path() / "page.html";
    add_argument("-o", page);
    ProgramRequest request = package_.request("launchgap_report", arguments_, scratch_.path());
    request.limit_s = page_limit_s();
    const ProgramOutcome outcome = run_program(request);
    stop_if_asked();
    if (outcome.late)
      throw Error("the page was not drawn within {:g} s (LAUNCHGAP_PAGE_TIMEOUT)", request.limit_s);
    check_drawn(outcome.end, request.arguments[0]);
    write_file(output_, InputFile(page).text(kLargestPage));
  }

 private:
  const PythonPackage package_;
  const fs::path output_;
  const TemporaryFolder scratch_;
  std::vector<std::string> arguments_;
};

}  // namespace

Summarised::Summarised(const fs::path& folder)
    : session(read_session(folder)),
      rows(summarise(session)),
      impossible(take_impossible(rows)),
      slow_samples(session, rows) {}

GapRows gap_of(const std::vector<std::unique_ptr<Summarised>>& sessions) {
  std::vector<gap::ComparedSession> compared;
  for (const auto& one : sessions)
    compared.push_back({&one->session, &one->rows, &one->impossible});
  return gap::generation_gap(compared);
}

void write_gap_tables(const std::vector<std::unique_ptr<Summarised>>& sessions,
                      const GapRows& gap,
                      TableUse use,
                      const fs::path& folder) {
  SessionData of_all;  // tables of a comparison are of no single session
  for (const auto& one : sessions) of_all.id += (of_all.id.empty() ? "" : " ") + one->session.id;
  const std::vector<SummaryRow> none;
  const SlowSamples no_samples(of_all, none);
  write_tables({of_all, none, no_samples, nullptr, &none, &gap}, use, folder);
}

void write_page(const std::vector<std::unique_ptr<Summarised>>& sessions,
                const GapRows& gap,
                const fs::path& output) {
  PageInMaking page(output);
  for (std::size_t i = 0; i < sessions.size(); ++i) {
    const fs::path folder = page.add_folder(std::to_string(i));
    write_tables(
        sessions[i]->table_inputs(), TableUse::details, folder, rows_on_page(sessions[i]->session));
    page.add_session(sessions[i]->session.folder, folder);
  }
  const fs::path of_gap = page.add_folder("gap");
  write_gap_tables(sessions, gap, TableUse::comparison, of_gap);
  page.add_argument("--comparison", of_gap);
  page.draw();
}

void write_fleet_page(const FleetTables& tables, const fs::path& output) {
  PageInMaking page(output);
  const fs::path folder = page.add_folder("fleet");
  write_tables(tables.inputs(), TableUse::fleet, folder);
  page.add_session(tables.inputs().session.folder, folder);
  page.draw();
}

bool offer_page(const std::vector<std::unique_ptr<Summarised>>& sessions, const fs::path& folder) {
  try {
    write_page(sessions, gap_of(sessions), folder / "report.html");
    answer("Page:   {}\n", (folder / "report.html").string());
    return true;
  } catch (const Stopped&) {
    throw;
  } catch (const Error& error) {
    say("launchgap: {}. `launchgap report {}` makes it later, here or elsewhere.",
        error.what(),
        folder.string());
    return false;
  }
}

}  // namespace launchgap::cli
