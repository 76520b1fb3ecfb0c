// `--json` of a command: a file, or standard output.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "harness/cli/page.h"
#include "harness/record/json.h"

namespace launchgap::cli {

/// Where a command's JSON goes. For "-" that is standard output, which then has nothing else: what
/// people read goes to standard error.
class JsonOutput {
 public:
  static JsonOutput to_standard_output();
  /// Adds --json, which takes a FILE or "-"; alone it is "-". It must outlive the parsing.
  void add_option(CLI::App& command, const std::string& what);
  bool asked() const { return !place_.empty(); }
  /// The file; empty where it is standard output, or not asked for.
  std::string file() const;
  /// Before anything is measured. Throws WriteError if no file can be written there.
  void begin() const;
  /// Throws WriteError.
  void write(const Json& json) const;

  /// The word that CLI11 took for the file and that is none, having neither a dot nor a folder:
  /// "list --json devices". Empty if it is one.
  std::string take_back();

 private:
  std::string place_;
};

// --- What a session shows, as JSON: what `run` and `report` answer to programs ---

/// {"session_id", "folder", "page", "problems"}, and the tables that say most, each as a list of
/// rows by the columns of docs/tables.md. `page` is empty if there is none.
Json session_as_json(const Summarised& summarised, const std::filesystem::path& page);

/// The tables of the comparison that say most: {"answers", "values", "classes", "limits", "tuned"},
/// each a list of rows.
Json gap_as_json(const GapRows& gap);

/// {"session_id", "folder", "page"}, and the tables of a fleet that say most.
Json fleet_as_json(const FleetTables& tables, const std::filesystem::path& page);

}  // namespace launchgap::cli
