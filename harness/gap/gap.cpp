#include "harness/gap/gap.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "harness/gap/best_values.h"
#include "harness/gap/gap_answers.h"
#include "harness/gap/tuned_kernels.h"

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

/// Of GPUs in order of release those that are farthest apart and share work.
const GpuPair* farthest(const std::vector<GpuPair>& pairs,
                        const std::vector<const GpuColumn*>& gpus) {
  const GpuPair* found = nullptr;
  std::ptrdiff_t most = 0;
  for (const GpuPair& pair : pairs) {
    const auto apart = std::ranges::find(gpus, pair.newer) - std::ranges::find(gpus, pair.older);
    if (tells(pair) && apart > most) found = &pair, most = apart;
  }
  return found;
}

}  // namespace

GapRows generation_gap(std::span<const ComparedSession> sessions) {
  const std::vector<GpuColumn> columns = gpu_columns(sessions);
  const std::vector<const GpuColumn*> gpus = one_of_each(columns);
  GapRows rows;
  std::vector<GpuPair> pairs;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    for (std::size_t j = i + 1; j < gpus.size(); ++j)
      pairs.push_back(compare_pair(*gpus[i], *gpus[j]));
  }
  if (const GpuPair* const pair = farthest(pairs, gpus)) {
    append(rows.answers, gain_answers(*pair));
    append(rows.answers, worst_answers(*pair));
    append(rows.answers, disappointments(*pair));
  } else if (gpus.size() > 1) {
    rows.answers.push_back({"unknown",
                            "know",
                            "No two of these GPUs have a launch, a product or a convolution in "
                            "common that can be compared."});
  }
  rows.tuned = tuned_rows(sessions);
  append(rows.answers, tuned_answers(rows.tuned));
  rows.values = best_values(columns);
  rows.limits = limits_of(gpus);
  for (const GpuPair& pair : pairs) {
    append(rows.classes, class_rows(pair));
    for (const SharedCase& shared : pair.cases) rows.cases.push_back(shared.row);
  }
  return rows;
}

}  // namespace launchgap::gap
