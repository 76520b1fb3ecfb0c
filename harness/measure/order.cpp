#include "harness/measure/order.h"

#include <algorithm>
#include <span>
#include <string_view>

namespace launchgap {
namespace {

constexpr std::string_view kHeadlines[] = {
    "launch call",
    "p99.9",
    "round trip",
    "per launch, burst",
    "matmul fp32, best",
    "matmul bf16, best",
    "convolution fp32, best",
    "allocate 1 MiB",
};

constexpr std::string_view kFigures[] = {
    "launch/api",         "launch/args",          "launch/grid",
    "launch/streams",     "launch/threads",       "launch/graph",
    "launch/cooperative", "launch/dependent",     "launch/priority",
    "launch/wait",        "launch/first",         "launch/after_idle",
    "launch/queue",       "launch/library",       "launch/chain",
    "launch/cscs",        "launch/small_kernels", "matmul/shapes",
    "convolution/shapes", "matmul/choice",        "convolution/selection",
    "matmul/code",        "convolution/code",
};

constexpr std::string_view kAdvice[] = {
    "launch/chain",          "launch/graph",      "launch/small_kernels", "launch/wait",
    "launch/first",          "launch/after_idle", "launch/queue",         "launch/library",
    "launch/cscs",           "launch/api",        "launch/args",          "launch/grid",
    "launch/streams",        "launch/threads",    "launch/cooperative",   "launch/dependent",
    "launch/priority",       "matmul/data",       "matmul/choice",        "matmul/sustained",
    "convolution/selection", "matmul/code",       "convolution/code",
};

std::size_t place_in(std::span<const std::string_view> list, std::string_view name) {
  return static_cast<std::size_t>(std::ranges::find(list, name) - list.begin());
}

}  // namespace

std::size_t place_of(const Headline& headline) {
  return place_in(kHeadlines, headline.heading);
}

std::size_t place_of_figures(const Benchmark& benchmark) {
  return place_in(kFigures, benchmark.name);
}

std::size_t place_of_advice(const Benchmark& benchmark) {
  return place_in(kAdvice, benchmark.name);
}

}  // namespace launchgap
