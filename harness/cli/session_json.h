// What a session shows, as JSON: what `run` and `report` answer to programs.
#pragma once

#include "harness/cli/page.h"
#include "harness/record/json.h"

namespace launchgap::cli {

/// {"session_id", "folder", "page", "problems"}, and the tables that say most, each as a list of
/// rows by the columns of docs/tables.md. `page` is empty if there is none.
Json session_as_json(const Summarised& summarised, const std::filesystem::path& page);

/// The tables of the comparison that say most: {"answers", "values", "classes", "limits", "tuned"},
/// each a list of rows.
Json gap_as_json(const GapRows& gap);

}  // namespace launchgap::cli
