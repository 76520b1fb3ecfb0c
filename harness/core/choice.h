// What came of one of the ways in which a library could compute a case: which was chosen, and what
// the others would have cost. A record of its own in a run's file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace launchgap {

struct Choice {
  static constexpr std::string_view kName = "choice";

  std::string case_name;
  std::string by;     // who offers or chooses it: "cuBLASLt", "cudnnGet…", "CUDNN_HEUR_MODE_A"
  int candidate = 0;  // in the order in which it is offered, from 0
  std::string algorithm;               // the library's number or name
  std::optional<std::int64_t> engine;  // the library's number, where it has engines
  std::string notes;                   // what the library says of the engine, in words
  std::optional<int> tile, stages, split;
  std::optional<double> waves;
  std::optional<std::uint64_t> workspace_bytes;
  std::optional<double> median_ns;  // as measured here
  std::optional<int> times;         // how often a selection had it first
  std::string outcome;              // chosen, slower, wrong, failed; of a selection: selected
  std::string reason;

  static void fields(auto& self, auto&& field) {
    field("case", self.case_name);
    field("by", self.by);
    field("candidate", self.candidate);
    field("algorithm", self.algorithm);
    field("engine", self.engine);
    field.optional("notes", self.notes);
    field("tile", self.tile);
    field("stages", self.stages);
    field("split", self.split);
    field("waves", self.waves);
    field("workspace_bytes", self.workspace_bytes);
    field("median_ns", self.median_ns);
    field("times", self.times);
    field("outcome", self.outcome);
    field.optional("reason", self.reason);
  }
};

}  // namespace launchgap
