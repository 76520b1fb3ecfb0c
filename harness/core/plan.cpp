#include "harness/core/plan.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "harness/core/errors.h"
#include "harness/core/printable.h"
#include "harness/core/text.h"

namespace launchgap {

std::string_view name_of(Profile profile) {
  return profile_names()[static_cast<std::size_t>(profile)];
}

const std::vector<std::string>& profile_names() {
  static const std::vector<std::string> names = {"quick", "nightly", "full"};
  return names;
}

Profile parse_profile(std::string_view text) {
  const auto known = std::ranges::find(profile_names(), text);
  if (known != profile_names().end()) return static_cast<Profile>(known - profile_names().begin());
  const std::string near = did_you_mean(text, profile_names());
  throw UsageError("there is no profile '{}'{}",
                   printable(text, 60),
                   near.empty() ? ": choose " + list_text(profile_names(), "or") : near);
}

int default_runs(Profile profile) {
  return profile == Profile::quick ? 3 : profile == Profile::nightly ? 10 : 20;
}

std::string_view name_of(Arm arm) {
  return arm == Arm::plain ? "plain" : "traced";
}

Arm parse_arm(std::string_view text) {
  for (const Arm arm : {Arm::plain, Arm::traced}) {
    if (text == name_of(arm)) return arm;
  }
  throw Error("'{}' is not an arm: plain or traced", text);
}

std::vector<const PlannedRun*> Plan::runs() const {
  std::vector<const PlannedRun*> all;
  for (const Batch& batch : batches) {
    for (const PlannedRun& run : batch) all.push_back(&run);
  }
  return all;
}

std::size_t Plan::run_count() const {
  return runs().size();
}

std::size_t Plan::largest_batch() const {
  std::size_t most = 0;
  for (const Batch& batch : batches) most = std::max(most, batch.size());
  return most;
}

double Plan::seconds(std::size_t at_once) const {
  double total = 0;
  for (const Batch& batch : batches) {
    std::vector<double> busy_until(std::max<std::size_t>(1, std::min(at_once, batch.size())));
    for (const PlannedRun& run : batch) {
      double& next = *std::ranges::min_element(busy_until);
      next += run.start_seconds;
      for (const PlannedCase& planned : run.cases) next += planned.seconds;
    }
    total += std::ranges::max(busy_until);
  }
  return total;
}

double Plan::start_seconds_per_run() const {
  double total = 0;
  for (const PlannedRun* const run : runs()) total += run->start_seconds;
  return batches.empty() ? 0 : total / static_cast<double>(run_count());
}

std::uint64_t derive_seed(std::uint64_t seed, std::string_view purpose, std::uint64_t index) {
  // FNV-1a over the purpose, then the finaliser of splitmix64 over all three.
  std::uint64_t hash = 0xCBF29CE484222325ull;
  for (const char c : purpose) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ull;
  std::uint64_t z = seed ^ (hash + 0x9E3779B97F4A7C15ull * (index + 1));
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

Plan make_plan(const std::vector<Workload>& workloads, std::uint64_t seed) {
  Plan plan{seed, {}};
  plan.random_order = !workloads.empty() && std::ranges::all_of(workloads, &Workload::random_order);
  std::mt19937_64 random(derive_seed(seed, "order"));
  int runs = 0;
  for (const Workload& workload : workloads) runs = std::max(runs, workload.runs);
  for (int replicate = 0; replicate < runs; ++replicate) {
    std::vector<Batch> batches;
    std::map<std::pair<ProcessConfig, Arm>, Batch> shared;
    for (const Workload& workload : workloads) {
      if (workload.cases.empty() || replicate >= workload.runs) continue;
      PlannedRun run{workload.device,
                     workload.process_config,
                     workload.arm,
                     replicate,
                     workload.cases,
                     workload.start_seconds,
                     workload.alone};
      if (workload.random_order) {
        shuffle(run.cases, random);
      } else {
        const auto shift = static_cast<std::size_t>(replicate) % run.cases.size();
        std::rotate(run.cases.begin(),
                    run.cases.begin() + static_cast<std::ptrdiff_t>(shift),
                    run.cases.end());
      }
      if (workload.alone) {
        batches.push_back({std::move(run)});
      } else {
        shared[{workload.process_config, workload.arm}].push_back(std::move(run));
      }
    }
    for (auto& [process_config, batch] : shared) batches.push_back(std::move(batch));
    shuffle(batches, random);
    std::ranges::move(batches, std::back_inserter(plan.batches));
  }
  return plan;
}

}  // namespace launchgap
