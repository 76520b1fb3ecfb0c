// What is read before what: one list each. What is in no list stands behind those that are, by the
// name of its benchmark, so a new benchmark needs no entry.
#pragma once

#include <cstddef>

#include "harness/measure/benchmark.h"

namespace launchgap {

/// Of the columns of the first table, from the left.
std::size_t place_of(const Headline& headline);
/// Of the questions that have figures, on the page from above.
std::size_t place_of_figures(const Benchmark& benchmark);
/// Of the rules of advice: of equal differences, what is usually worth most comes first.
std::size_t place_of_advice(const Benchmark& benchmark);

}  // namespace launchgap
