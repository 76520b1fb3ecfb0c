// What is to be measured on which nodes, and the scheduler's files that do it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "harness/record/fields.h"

namespace launchgap::fleet {

struct PlannedNode {
  std::string name;
  int gpus = 0;

  static void fields(auto& self, auto&& field) {
    field("name", self.name);
    field.natural("gpus", self.gpus);
  }
};

/// plan.json.
struct FleetPlan {
  static constexpr std::string_view kName = "fleet_plan";
  std::vector<PlannedNode> nodes;  // by name, as they were listed
  int sessions = 1;                // of each GPU

  static void fields(auto& self, auto&& field) {
    field("nodes", self.nodes);
    field.formerly("replicates", self.sessions);
    field.natural("sessions", self.sessions);
  }
};

/// Throws Error, which names the file, for what is no plan.
FleetPlan read_plan(const std::filesystem::path& file);

/// The nodes of lists as schedulers write them, `n[01-04,7]`, each with the number of its GPUs
/// behind a colon, `n[01-04]:8`, or `usual_gpus`. Throws UsageError for what is no list, names a
/// node twice or has more than 100,000 nodes.
std::vector<PlannedNode> parse_nodes(const std::vector<std::string>& lists, int usual_gpus);

/// What the scheduler's files are told, as `NAME=VALUE` for a shell.
struct PlanSettings {
  FleetPlan plan;
  std::string launchgap;            // the program, as nodes find it
  std::string output;               // a folder that all nodes see
  std::string history;              // file of the nights; empty: nothing is checked
  std::string time = "01:00:00";    // for one session, as Slurm takes it
  std::vector<std::string> run;     // further options of `launchgap run`
  std::vector<std::string> sbatch;  // and of sbatch: partition, account
};

/// Writes plan.json, settings.sh and the files of ci/slurm into a folder, which is made. Throws
/// UsageError for a folder that holds anything and WriteError.
void write_plan(const std::filesystem::path& folder, const PlanSettings& settings);

}  // namespace launchgap::fleet
