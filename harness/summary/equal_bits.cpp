#include "harness/summary/equal_bits.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "harness/core/text.h"
#include "harness/device/backend.h"
#include "harness/summary/session_findings.h"
#include "harness/summary/table_makers.h"

namespace launchgap {
namespace {

/// One way in which bits differ: what is said of it, and what helps on a GPU and on the host.
struct Situation {
  std::string_view variant;  // "": between processes, of every variant
  Severity severity;
  std::string_view sentence;  // of {0}, "2 of 8 products"
  std::string_view on_gpu, on_host;
};

constexpr Situation kSituations[] = {
    {"again",
     Severity::act,
     "Of {}, not all results have the same bits though they were computed in one stream, one after "
     "the "
     "other: the library adds in an order that changes.",
     "Compare results within a tolerance; or choose another algorithm (cublasLtMatmul with "
     "CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, which can forbid that sums are split).",
     "Compare results within a tolerance, or let the library use one thread."},
    {"",
     Severity::act,
     "Of {}, the results of fresh processes differ in bits though nothing else does.",
     "Set a workspace of the same size in every process (cublasSetWorkspace, or "
     "CUBLAS_WORKSPACE_CONFIG=:4096:8), and compare the versions of the libraries; if they still "
     "differ, compare results within a tolerance.",
     "Let the library use the same number of threads and the same code in every process, or "
     "compare "
     "results within a tolerance."},
    {"streams_own",
     Severity::act,
     "Of {}, results that are computed in 4 streams at once differ in bits, though each stream has "
     "a "
     "handle and a workspace of its own.",
     "Compute what must have equal bits in one stream, or compare results within a tolerance.",
     "Compute what must have equal bits in one thread at a time, or compare results within a "
     "tolerance."},
    {"streams_shared",
     Severity::act,
     "Of {}, results that one handle computes in 4 streams at once differ in bits: it takes "
     "another "
     "workspace for another stream.",
     "Give each stream a handle of its own and that a workspace of its own (cublasSetWorkspace "
     "after "
     "cublasSetStream), or set CUBLAS_WORKSPACE_CONFIG=:4096:8 before the process begins.",
     ""},
    {"workspace",
     Severity::note,
     "Of {}, the bits of the result depend on the size of the workspace, by which the library "
     "chooses "
     "how to add.",
     "Set a workspace of the same size wherever results are compared (cublasSetWorkspace, or "
     "CUBLAS_WORKSPACE_CONFIG=:4096:8).",
     ""},
};

bool differs_in(const BitsCounts& counts, const Situation& situation) {
  return situation.variant.empty() ? counts.distinct_between > 1 : counts.distinct_within > 1;
}

std::string evidence_of(const BitsCounts& counts, const Situation& situation) {
  const std::string text = counts.name.text();
  if (situation.variant.empty())
    return fmt::format("{}: {} different results in {} processes",
                       text,
                       counts.distinct_between,
                       counts.processes);
  return fmt::format(
      "{}: {} different results in one process, by at most {:.1e} of the largest "
      "element{}",
      text,
      counts.distinct_within,
      counts.largest_difference,
      counts.different.empty() ? "" : " (other bits: " + counts.different + ")");
}

/// Of one device; `cases` are those that the situation is about, of which some differ.
Finding bits_finding(const std::vector<const BitsCounts*>& cases,
                     const Situation& situation,
                     const std::string& device,
                     bool on_gpu) {
  Finding finding = new_finding(
      FindingSource::session, "bits-differ", situation.severity, device, cases.front()->device);
  std::size_t differ = 0;
  for (const BitsCounts* const counts : cases) {
    if (!differs_in(*counts, situation)) continue;
    ++differ;
    finding.evidence.emplace_back(evidence_of(*counts, situation));
    finding.cases += (finding.cases.empty() ? "" : " ") + counts->name.text();
  }
  finding.sentence = fmt::format(fmt::runtime(situation.sentence),
                                 fmt::format("{} of {}", differ, counted(cases.size(), "product")));
  finding.remedy = on_gpu ? situation.on_gpu : situation.on_host;
  return finding;
}

/// A case but for what is done to it.
auto product_of(const BitsCounts& counts) {
  return std::tuple(counts.device, counts.name.at("shape"), counts.name.at("type"));
}

}  // namespace

std::vector<BitsCounts> bits_counts(const SessionData& session) {
  std::map<std::pair<std::string, CaseName>, std::map<int, const ResultBits*>> groups;
  for (const BitsInfo& info : session.bits)
    groups[{info.device, CaseName::parse(info.record.case_name)}][info.replicate] = &info.record;
  std::vector<BitsCounts> all;
  for (const auto& [key, processes] : groups) {
    BitsCounts counts;
    std::tie(counts.device, counts.name) = key;
    // Not of a benchmark that another version may have.
    if (!counts.name.find("variant") || !counts.name.find("shape") || !counts.name.find("type"))
      continue;
    std::set<std::string> hashes;
    for (const auto& [replicate, bits] : processes) {
      hashes.insert(bits->hash);
      counts.results += bits->results;
      counts.largest_difference = std::max(counts.largest_difference, bits->largest_difference);
      if (bits->distinct <= counts.distinct_within) continue;
      counts.distinct_within = bits->distinct;
      counts.different = bits->different;
    }
    counts.processes = static_cast<int>(processes.size());
    counts.distinct_between = static_cast<int>(hashes.size());
    all.push_back(std::move(counts));
  }
  return all;
}

std::vector<Finding> bits_findings(const SessionData& session) {
  const DeviceLabels labels(session);
  const std::vector<BitsCounts> all = bits_counts(session);
  // What differs when it is computed again differs between processes too, and in other streams.
  std::set<decltype(product_of(all.front()))> unsteady;
  for (const BitsCounts& counts : all) {
    if (counts.variant() == "again" && counts.distinct_within > 1)
      unsteady.insert(product_of(counts));
  }
  std::vector<Finding> findings;
  for (const DeviceFacts& device : session.devices) {
    for (const Situation& situation : kSituations) {
      std::vector<const BitsCounts*> cases;
      for (const BitsCounts& counts : all) {
        const bool known = situation.variant != "again" && unsteady.contains(product_of(counts));
        const bool about = situation.variant.empty() ? counts.processes > 1
                                                     : counts.variant() == situation.variant;
        if (counts.device == device.uuid && about && !known) cases.push_back(&counts);
      }
      if (std::ranges::any_of(
              cases, [&](const BitsCounts* counts) { return differs_in(*counts, situation); }))
        findings.push_back(bits_finding(cases, situation, labels.of(device.uuid), is_gpu(device)));
    }
  }
  return findings;
}

Table bits_table() {
  using Row = const BitsCounts&;
  return make_table<BitsCounts>(
      "bits.csv",
      "device and case whose results were compared by their bits",
      TableUse::session,
      [](const TableInputs& from) { return bits_counts(from.session); },
      {{"device_id", &BitsCounts::device},
       {"case", [](Row row) { return row.name.text(); }},
       {"variant",
        "What was done besides computing the product alone.",
        [](Row row) { return row.variant(); }},
       {"runs", "Processes that computed it.", &BitsCounts::processes},
       {"results", "Results, of all processes together.", &BitsCounts::results},
       {"distinct_within",
        "How many of the results of one process differ in a bit, in the process that has the most; "
        "1: all are equal.",
        &BitsCounts::distinct_within},
       {"distinct_between",
        "How many of the first results of each process differ in a bit; 1: all are equal.",
        &BitsCounts::distinct_between},
       {"largest_difference",
        "Between two results of one process, in one element, as a part of the largest magnitude of "
        "an "
        "element.",
        &BitsCounts::largest_difference},
       {"different",
        "Which results of that process differ from its first one; empty: none.",
        &BitsCounts::different}});
}

}  // namespace launchgap
