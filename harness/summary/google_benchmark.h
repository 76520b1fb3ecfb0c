// A session as Google Benchmark writes its results, so that its own tools read them.
#pragma once

#include <cstddef>
#include <filesystem>

#include "harness/summary/session_data.h"

namespace launchgap {

/// Of plain and of recorded runs, a benchmark for each time of a case: its name is
/// `case/metric`, and `case/metric/device:UUID` in a session of several devices. Each process is a
/// repetition whose time is its median; with several come their mean, median, standard deviation
/// and coefficient of variation. Google Benchmark has two times, which are the same here. Returns
/// how many benchmarks there are; if none, nothing is written. Throws WriteError if it cannot be
/// written, and Stopped once a signal was noted.
std::size_t write_google_benchmark(const SessionData& session, const std::filesystem::path& output);

}  // namespace launchgap
