// A session of what others have published: tables with a value per GPU and case, each with its
// source and licence. Nothing in it was measured or recorded here, and it says so.
#pragma once

#include <string>
#include <vector>

#include "harness/import/imported_session.h"

namespace launchgap::recording {

/// Whether all files of a request are tables of published values. Throws UsageError where some are
/// and others are not.
bool are_published_sheets(const ImportRequest& request);

/// Makes a session of such tables: a device for each GPU with its CUDA and driver, and a file of
/// its values (harness/summary/published.h reads it). Returns what a reader should know, one
/// line each.
///
/// Throws UsageError, which names file, line and column, for what is no table, not UTF-8, longer
/// than kLongestSheet, a cell with a control character or too long, a value that is no number above
/// 0, a metric that launchgap does not know or has in another unit, a benchmark, a case or an
/// algorithm that is none, a value that is there twice, or a case whose rows differ in source,
/// licence, library or algorithm. Nothing is left then.
std::vector<std::string> import_published(const ImportRequest& request);

}  // namespace launchgap::recording
