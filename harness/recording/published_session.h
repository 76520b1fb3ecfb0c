// A session of what others have published: tables with a value per GPU and case, each with its
// source and licence. Nothing in it was measured or recorded here, and it says so.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/recording/imported_session.h"

namespace launchgap::recording {

/// What a table of published values must have, and what it may have.
inline constexpr std::string_view kPublishedColumns[] =
    {"gpu", "benchmark", "case", "metric", "unit", "value", "source", "licence"};
inline constexpr std::string_view kOptionalPublishedColumns[] = {"library",
                                                                 "library_version",
                                                                 "cuda",
                                                                 "driver",
                                                                 "algorithm"};

inline constexpr std::size_t kLongestSheet = std::size_t{512} << 20;  // bytes

/// Whether a file is such a table: by its first line.
bool is_published_sheet(const std::filesystem::path& file);

/// Makes a session of such tables: a device for each GPU with its CUDA and driver, a run for each
/// family, with the arm `published`. A product or convolution whose shape is in its case has both
/// `tflops` and `device_ns`, of which one may be computed from the other.
///
/// Throws UsageError, which names file, line and column, for what is no table, not UTF-8, longer
/// than kLongestSheet, a value that is no number above 0, a metric that launchgap does not know or
/// has in another unit, a case that is none, an algorithm that launchgap does not know, or a value
/// that is there twice. Nothing is left then.
std::vector<std::string> import_published(const ImportRequest& request);

}  // namespace launchgap::recording
