#include "harness/gap/gap.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace launchgap::gap {
namespace {

template <class Row>
void append(std::vector<Row>& to, std::vector<Row> rows) {
  std::ranges::move(rows, std::back_inserter(to));
}

/// Whether the first sentence has something to say of it.
bool tells(const GpuPair& pair) {
  return std::ranges::any_of(pair.cases, [](const SharedCase& shared) {
    return shared.work == Work::product || shared.work == Work::launch ||
           shared.work == Work::convolution;
  });
}

/// The devices, which every pair points into.
struct Compared {
  std::vector<GpuColumn> columns;
  std::vector<const GpuColumn*> gpus;  // in order of release

  /// One pair after the other, since all at once may be many; with how far apart they are.
  void each_pair(const auto& put) const {
    for (std::size_t older = 0; older < gpus.size(); ++older) {
      for (std::size_t newer = older + 1; newer < gpus.size(); ++newer)
        put(compare_pair(*gpus[older], *gpus[newer]), newer - older);
    }
  }
};

}  // namespace

GapRows generation_gap(std::span<const ComparedSession> sessions) {
  const auto compared = std::make_shared<Compared>();
  compared->columns = gpu_columns(sessions);
  compared->gpus = one_of_each(compared->columns);
  GapRows rows;
  rows.devices = compared_devices(sessions);
  rows.recorded = recorded_beside_measured(sessions);
  rows.each_ratio = [laid = std::vector<ComparedSession>(sessions.begin(), sessions.end())](
                        const auto& put) { each_ratio(laid, put); };
  std::optional<GpuPair> farthest;  // of those that share work
  std::size_t most = 0;
  compared->each_pair([&](GpuPair&& pair, std::size_t apart) {
    append(rows.classes, class_rows(pair));
    if (apart <= most || !tells(pair)) return;
    most = apart;
    farthest = std::move(pair);
  });
  if (farthest) {
    append(rows.answers, gain_answers(*farthest));
    append(rows.answers, worst_answers(*farthest));
    append(rows.answers, disappointments(*farthest));
  } else if (compared->gpus.size() > 1) {
    rows.answers.push_back({"unknown",
                            "know",
                            "No two of these GPUs have a launch, a product or a convolution in "
                            "common that can be compared."});
  }
  append(rows.answers, not_compared(compared->columns, compared->gpus));
  rows.tuned = tuned_rows(sessions);
  append(rows.answers, tuned_answers(rows.tuned));
  rows.values = best_values(compared->columns);
  rows.limits = limits_of(compared->gpus);
  rows.each_case = [compared](const auto& put) {
    compared->each_pair([&](const GpuPair& pair, std::size_t) {
      for (const SharedCase& shared : pair.cases) put(shared.row);
    });
  };
  return rows;
}

}  // namespace launchgap::gap
