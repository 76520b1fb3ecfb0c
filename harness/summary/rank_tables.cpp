// The ranks of a job beside each other.
#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "harness/summary/lateness.h"
#include "harness/summary/table_makers.h"

namespace launchgap {
namespace {

struct RankRow {
  std::string device, name, compared;
  int replicate = 0;
  RankLateness own;
  double moving_ns = 0;
  bool waits_are_known = false;
  std::optional<double> took_ns, ideal_ns, without_ns;
};

constexpr double kCertainRank = 0.01;

void add_rows(const RankedJob& job,
              const std::string& compared,
              std::string_view kind,
              std::vector<RankRow>& rows) {
  const Lateness lateness = lateness_of(job, kind);
  for (std::size_t rank = 0; rank < lateness.ranks.size(); ++rank) {
    RankRow& row = rows.emplace_back();
    row.device = job.ranks[rank]->device;
    row.replicate = job.ranks[rank]->replicate;
    row.name = job.names[rank];
    row.compared = compared;
    row.own = lateness.ranks[rank];
    row.moving_ns = lateness.moving_ns;
    row.waits_are_known = !job.kinds.empty() || !job.whole.empty();
    if (!lateness.cost) continue;
    row.took_ns = lateness.cost->took_ns;
    row.ideal_ns = lateness.cost->ideal_ns;
    row.without_ns = lateness.cost->without_ns[rank];
  }
}

std::vector<RankRow> rank_rows(const SessionData& session) {
  constexpr std::size_t kMostKinds = 50;
  std::vector<RankRow> rows;
  add_rows(ranked_job(session), "steps", {}, rows);
  const RankedJob job = job_by_collectives(session);
  add_rows(job, "collectives", {}, rows);
  const std::set<std::string> kinds(job.kinds.begin(), job.kinds.end());
  if (kinds.size() < 2 || kinds.size() > kMostKinds) return rows;
  for (const std::string& kind : kinds) add_rows(job, kind, kind, rows);
  return rows;
}

std::string_view reason_of(const RankRow& row) {
  if (!row.own.late) return {};
  return row.own.reason ? name_of(*row.own.reason) : "not told";
}

auto longer(StretchPart part) {
  return [part](const RankRow& row) {
    return row.own.explained > 0 ? std::optional(row.own.longer[static_cast<std::size_t>(part)])
                                 : std::nullopt;
  };
}

}  // namespace

Table ranks_table() {
  using Row = const RankRow&;
  return make_table<RankRow>(
      "ranks.csv",
      "rank of a recorded job, and what the ranks are compared by",
      TableUse::details,
      [](const TableInputs& from) { return rank_rows(from.session); },
      {{"device_id", &RankRow::device},
       {"replicate", &RankRow::replicate},
       {"rank", "Its rank, or what tells its process from the others.", &RankRow::name},
       {"collective",
        "What is matched: steps, by number; collectives: the i-th kernels of each of NCCL's names; "
        "or the name of the kernel, where there are several.",
        &RankRow::compared},
       {"matched", "How many all ranks have.", [](Row row) { return row.own.matched; }},
       {"times_last",
        "To how many of them this rank comes last: its kernel is the shortest, or its own time in "
        "the step the longest.",
        [](Row row) { return row.own.times_last; }},
       {"chance",
        "That any rank comes last so often where all are alike.",
        [](Row row) { return row.own.chance; },
        "1"},
       {"beyond_chance",
        "Whether that is 0.01 or less.",
        [](Row row) { return row.own.chance <= kCertainRank; }},
       {"late_ns",
        "How long the most patient of the others waits for it, all together: the longest kernel "
        "less the shortest; of steps the longest own time less the shortest.",
        [](Row row) { return row.own.late_ns; }},
       {"most_late_ns", "The most in one.", [](Row row) { return row.own.most_ns; }},
       {"waiting_ns",
        "What this rank waits itself: its collectives, less the shortest of the ranks' kernels.",
        [](Row row) {
          return row.waits_are_known ? std::optional(row.own.waiting_ns) : std::nullopt;
        }},
       {"moving_ns",
        "What the collectives take to move data: the shortest of the ranks' kernels of each.",
        [](Row row) { return row.waits_are_known ? std::optional(row.moving_ns) : std::nullopt; }},
       {"reason",
        "The part that makes half or more of what it is late by, by its column below; host: "
        "several "
        "for which the GPU waits for the host do together; not told: none does; empty: it is not "
        "late enough to ask.",
        reason_of},
       {"reason_share",
        "The part's share of what the rank is late by.",
        [](Row row) {
          return row.own.reason ? std::optional(row.own.reason->share) : std::nullopt;
        }},
       {"explained",
        "Of those to which it comes last, of how many it is known what its GPU did before.",
        [](Row row) { return row.own.explained; }},
       {"longer_ns",
        "By how much its own time is longer in these than the others' median; the columns that "
        "follow are the same of each part.",
        [](Row row) {
          return row.own.explained > 0 ? std::optional(row.own.longer_ns) : std::nullopt;
        }},
       {"longer_kernels_ns", "Kernels that are no collectives.", longer(StretchPart::kernels)},
       {"longer_copies_ns", "Copies and fills alone, without input.", longer(StretchPart::copies)},
       {"longer_input_ns",
        "Copies from the host alone, and an idle GPU while the program loads data.",
        longer(StretchPart::input)},
       {"longer_program_ns",
        "An idle GPU while the program is in no call of CUDA.",
        longer(StretchPart::program)},
       {"longer_launches_ns",
        "An idle GPU between a launch call and the start of its work.",
        longer(StretchPart::launches)},
       {"longer_waits_ns",
        "An idle GPU while the program waits for it.",
        longer(StretchPart::waits)},
       {"longer_allocations_ns",
        "An idle GPU while the program allocates or gives back.",
        longer(StretchPart::allocations)},
       {"longer_calls_ns",
        "An idle GPU while the program is in another call of CUDA.",
        longer(StretchPart::calls)},
       {"longer_queued_ns", "An idle GPU with work queued.", longer(StretchPart::queued)},
       {"longer_unknown_ns", "What nothing tells.", longer(StretchPart::unknown)},
       {"took_ns",
        "What the matched take: in each the longest own time of a rank, and the shortest "
        "collectives. Empty where ranks are missing or do not wait for each other.",
        &RankRow::took_ns},
       {"ideal_ns",
        "The same if in each every rank took the median of the ranks' own times.",
        &RankRow::ideal_ns},
       {"without_ns",
        "The same if this rank alone took the median of the others' own times, where that is "
        "shorter.",
        &RankRow::without_ns}});
}

}  // namespace launchgap
