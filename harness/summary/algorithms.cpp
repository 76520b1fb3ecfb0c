#include "harness/summary/algorithms.h"

#include <cstdlib>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/core/trace_state.h"
#include "harness/measure/benchmark.h"

namespace launchgap {
namespace {

/// More of one process than a product has, and names that fill a line: what is kept of them.
constexpr std::size_t kMostListed = 4, kLongestName = 200;

/// Launched by a library, with nothing else between them but the gate.
bool is_work_of_library(const CaseName& name) {
  for (const Benchmark& known : all_benchmarks()) {
    if (known.name != name.benchmark) continue;
    const TracedAs as = known.traced_as(name);
    return as == TracedAs::work || as == TracedAs::gated_work;
  }
  return false;
}

std::string text_of_kernels(const std::vector<CountedKernels>& kernels) {
  std::set<std::string> texts;
  for (const CountedKernels& kernel : kernels) {
    if (kernel.name.empty() || kernel.name.starts_with("launchgap")) continue;  // the gate
    texts.insert(
        fmt::format("{} {}", kernel.name.substr(0, kLongestName), fmt::join(kernel.grid, "x")));
  }
  if (texts.size() > kMostListed) texts.erase(std::next(texts.begin(), kMostListed), texts.end());
  return fmt::to_string(fmt::join(texts, " + "));
}

/// By device, process configuration and case.
using TracedCase = std::tuple<std::string, ProcessConfig, std::string>;

std::map<TracedCase, std::set<std::string>> kernels_of_cases(const SessionData& session) {
  std::map<TracedCase, std::set<std::string>> kernels;
  for (const TraceInfo& trace : session.traces) {
    const TraceRecord& record = trace.record;
    if (record.of_run() || record.state != text_of(TraceState::ok) || !record.kernels) continue;
    std::string text = text_of_kernels(*record.kernels);
    if (!text.empty())
      kernels[{trace.device, trace.process_config, *record.case_name}].insert(std::move(text));
  }
  return kernels;
}

}  // namespace

std::map<CaseKey, std::set<std::string>> algorithms_of_cases(const SessionData& session) {
  const auto kernels = kernels_of_cases(session);
  std::map<CaseKey, std::set<std::string>> algorithms;
  for (const auto& [key, data] : session.cases) {
    std::set<std::string> known;
    for (const auto& [replicate, algorithm] : data.algorithms) known.insert(algorithm);
    if (known.empty() && is_work_of_library(key.name)) {
      const auto traced = kernels.find({key.device, key.process_config, key.name.text()});
      if (traced != kernels.end()) known = traced->second;
    }
    if (!known.empty()) algorithms[key] = std::move(known);
  }
  return algorithms;
}

std::optional<double> waves_of(std::string_view method) {
  if (!method.starts_with("cuBLASLt ")) return std::nullopt;
  const std::size_t end = method.find(" waves");
  if (end == std::string_view::npos) return std::nullopt;
  const std::size_t before = method.rfind(' ', end - 1);
  const std::string number(method.substr(before + 1, end - before - 1));
  if (number.empty() || number.find_first_not_of("0123456789.") != std::string::npos)
    return std::nullopt;
  return std::strtod(number.c_str(), nullptr);
}

}  // namespace launchgap
