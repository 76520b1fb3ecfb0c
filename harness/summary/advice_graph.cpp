// What graphs save, what they cost, and whether they are steadier.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "harness/core/text.h"
#include "harness/summary/advice_evidence.h"

namespace launchgap {
namespace {

constexpr std::string_view kGraph = "launch/graph";
constexpr std::string_view kChain = "launch/chain";

/// One shape of graphs at one number of nodes.
struct GraphSize {
  std::string shape;
  std::string nodes;

  const SummaryRow* row(const DeviceRows& rows, std::string_view mode, const char* metric) const {
    return rows.find(kGraph, {{"shape", shape}, {"nodes", nodes}, {"mode", mode}}, metric);
  }
};

/// What a shape is called in a sentence.
std::string_view how(std::string_view shape) {
  return shape == "fan" ? "side by side" : "one after another";
}

/// Time per kernel in a graph against one by one, by number of nodes.
std::vector<Comparison> replays(const DeviceRows& rows, const std::string& shape) {
  std::vector<Comparison> comparisons;
  for (const std::string& nodes :
       rows.values(kGraph, {{"shape", shape}, {"mode", "replay"}}, "per_node_ns", "nodes")) {
    const GraphSize size{shape, nodes};
    if (const auto comparison = compare(size.row(rows, "replay", "per_node_ns"),
                                        size.row(rows, "single", "per_node_ns")))
      comparisons.push_back(*comparison);
  }
  return comparisons;
}

/// After how many replays what it takes to make the graph has been saved.
void payback(Adviser& adviser, const GraphSize& size, const Comparison& replay) {
  const SummaryRow* const parts[] = {size.row(adviser.rows, "make", "capture_ns"),
                                     size.row(adviser.rows, "make", "instantiate_ns"),
                                     size.row(adviser.rows, "make", "upload_ns")};
  if (!parts[0] || !parts[1]) return;
  double making = *parts[0]->p50 + *parts[1]->p50;
  if (parts[2]) making += *parts[2]->p50;
  const double saved = (*replay.reference->p50 - *replay.row->p50) *
                       static_cast<double>(replay.row->key.name.number("nodes"));
  if (saved <= 0) return;
  const double replays = std::ceil(making / saved);
  adviser.say(
      kGraph,
      AdviceSeverity::know,
      fmt::format("Making a graph of {} kernels ({}) has paid for itself after {:.0f} "
                  "replay{}: {} take {}, and each replay saves {}.",
                  size.nodes,
                  how(size.shape),
                  replays,
                  replays == 1 ? "" : "s",
                  parts[2] ? "capture, instantiation and upload" : "capture and instantiation",
                  quantity(making, "ns"),
                  quantity(saved, "ns")),
      {replay},
      {parts[0], parts[1], parts[2]});
}

void update(Adviser& adviser, const std::string& shape) {
  const auto sizes =
      adviser.rows.values(kGraph, {{"shape", shape}, {"mode", "update"}}, "update_ns", "nodes");
  if (sizes.empty()) return;
  const GraphSize size{shape, sizes.back()};
  const auto comparison = compare(size.row(adviser.rows, "update", "update_ns"),
                                  size.row(adviser.rows, "make", "instantiate_ns"));
  if (!comparison) return;
  if (comparison->ratio.claims()) {
    const bool cheaper = comparison->ratio.verdict == RatioVerdict::less;
    return adviser.say(kGraph,
                       AdviceSeverity::act,
                       fmt::format("{}: with {} kernels ({}) an update takes {} times as long as "
                                   "instantiating.",
                                   cheaper ? "Update a graph whose parameters change, rather than "
                                             "make it anew"
                                           : "Make a graph anew rather than update it",
                                   size.nodes,
                                   how(shape),
                                   times(*comparison->ratio.value)),
                       {*comparison});
  }
  adviser.judge(kGraph,
                {*comparison},
                {.of = "of an update",
                 .than = "of instantiating",
                 .if_more = "",
                 .if_less = "",
                 .if_same = "Updating a graph instead of making it anew gains nothing"});
}

void graphs(Adviser& adviser) {
  for (const char* shape : {"line", "fan"}) {
    const auto comparisons = replays(adviser.rows, shape);
    const Comparison* const from = from_which_on(comparisons, RatioVerdict::less);
    if (from) {
      const Comparison& best = *strongest(comparisons, RatioVerdict::less);
      adviser.say(
          kGraph,
          AdviceSeverity::act,
          fmt::format("Use a graph from {} kernels on{} ({}): at {} kernels the time per kernel is "
                      "{} times that of launching them one by one.",
                      of(*from->row, "nodes"),
                      from == &comparisons.front() && of(*from->row, "nodes") != "1"
                          ? ", the fewest measured"
                          : "",
                      how(shape),
                      of(*best.row, "nodes"),
                      times(*best.ratio.value)),
          from->row == best.row ? std::vector{*from} : std::vector{*from, best});
      payback(adviser, {shape, of(*best.row, "nodes")}, best);
    } else if (!comparisons.empty()) {
      adviser.judge(
          kGraph,
          {comparisons.back()},
          {.of = fmt::format(
               "of a graph of {} kernels ({})", of(*comparisons.back().row, "nodes"), how(shape)),
           .than = "of the same one by one",
           .if_more = "Launch kernels one by one",
           .if_less = "Use a graph",
           .if_same = "A graph gains nothing"});
    }
    update(adviser, shape);
  }
}

// The chain of operations, as a framework issues it

/// One length of chain, with so much work of the host between two operations.
struct ChainPoint {
  std::string ops;
  std::string gap_us;

  const SummaryRow* row(const DeviceRows& rows,
                        std::string_view mode,
                        const char* metric = "per_op_ns",
                        Arm arm = Arm::plain) const {
    return rows.find(kChain, {{"mode", mode}, {"ops", ops}, {"gap_us", gap_us}}, metric, arm);
  }
};

/// The longest chain that was measured with the least work of the host in between; in `mode` too.
std::optional<ChainPoint> longest(const DeviceRows& rows, std::string_view mode) {
  const auto gaps = rows.values(kChain, {{"mode", mode}}, "per_op_ns", "gap_us");
  if (gaps.empty()) return std::nullopt;
  const auto ops =
      rows.values(kChain, {{"mode", mode}, {"gap_us", gaps.front()}}, "per_op_ns", "ops");
  return ChainPoint{ops.back(), gaps.front()};
}

/// The share that says whether launches bind the chain: of the trace, else of the device's idling.
const SummaryRow* starving(const DeviceRows& rows, const ChainPoint& point) {
  const SummaryRow* const traced = point.row(rows, "eager", "empty_queue_share", Arm::traced);
  return traced ? traced : point.row(rows, "eager", "idle_share");
}

enum class Bound { yes, no, unknown };

Bound bound_of(const SummaryRow& share) {
  constexpr double kHalf = 0.5;
  if (share.run_medians.size() < kRunsForAClaim) return Bound::unknown;
  const auto above = std::ranges::count_if(share.run_medians, [](double v) { return v > kHalf; });
  if (above == static_cast<std::ptrdiff_t>(share.run_medians.size())) return Bound::yes;
  return above == 0 ? Bound::no : Bound::unknown;
}

void launch_bound(Adviser& adviser) {
  const auto point = longest(adviser.rows, "eager");
  if (!point) return;
  std::vector<const SummaryRow*> shares;
  const SummaryRow* first_bound = nullptr;
  for (const std::string& gap : adviser.rows.values(
           kChain, {{"mode", "eager"}, {"ops", point->ops}}, "per_op_ns", "gap_us")) {
    const ChainPoint at{point->ops, gap};
    if (const SummaryRow* const share = starving(adviser.rows, at)) {
      if (!first_bound && bound_of(*share) == Bound::yes) first_bound = share;
      shares.push_back(share);
    }
    const SummaryRow* const idle = at.row(adviser.rows, "eager", "idle_share");
    if (idle && (shares.empty() || shares.back() != idle)) shares.push_back(idle);
  }
  if (shares.empty()) return;
  const auto what = [](const SummaryRow& share) -> std::string {
    if (share.metric == "empty_queue_share")
      return fmt::format("{} of its kernels found nothing queued before them", value_text(share));
    // Below zero: the work took longer when it was timed by itself.
    if (*share.p50 <= 0) return "the device is not seen to idle";
    return fmt::format("the device idles for {} of the time", value_text(share));
  };
  if (first_bound) {
    const std::string gap = of(*first_bound, "gap_us");
    return adviser.say(
        kChain,
        AdviceSeverity::act,
        fmt::format("A chain of {} small operations is bound by launches{}: {}. A graph, fewer and "
                    "larger operations or less work of the host between them help; a faster "
                    "device does not.",
                    point->ops,
                    gap == "0" ? "" : fmt::format(" when the host works {} µs between two", gap),
                    what(*first_bound)),
        {},
        shares);
  }
  // What the trace saw and what the clock says must agree.
  const auto doubtful =
      std::ranges::find_if(shares, [](const auto* share) { return bound_of(*share) != Bound::no; });
  const bool never = doubtful == shares.end();
  adviser.say(kChain,
              never ? AdviceSeverity::fine : AdviceSeverity::open,
              never ? fmt::format("A chain of {} small operations is not bound by launches: {}.",
                                  point->ops,
                                  what(**std::ranges::max_element(
                                      shares, {}, [](const auto* share) { return *share->p50; })))
                    : fmt::format("Whether a chain of {} small operations is bound by launches "
                                  "cannot be told from these runs: {}{}.",
                                  point->ops,
                                  what(*shares.front()),
                                  *doubtful == shares.front() ? "" : ", but " + what(**doubtful)),
              {},
              shares);
}

void chain_pair(Adviser& adviser,
                std::string_view mode,
                std::string_view reference,
                const Words& words) {
  const auto point = longest(adviser.rows, mode);
  if (!point) return;
  if (const auto comparison =
          compare(point->row(adviser.rows, mode), point->row(adviser.rows, reference)))
    adviser.judge(kChain, {*comparison}, words);
}

std::string cv_text(const stats::Estimate& cv) {
  const auto percent = [](double share) {
    return share < 0.995 ? fmt::format("{:.2g}", 100 * share) : fmt::format("{:.0f}", 100 * share);
  };
  return fmt::format("{} % (95 % {} to {})",
                     percent(cv.value),
                     percent(cv.interval.low),
                     percent(cv.interval.high));
}

/// Whether a graph's times vary less than those of the same launches one by one.
void steadiness(Adviser& adviser) {
  const auto point = longest(adviser.rows, "graph");
  if (!point) return;
  const SummaryRow* const graph = point->row(adviser.rows, "graph");
  const SummaryRow* const eager = point->row(adviser.rows, "eager");
  if (!graph || !eager) return;
  struct Level {
    const char* name;
    std::optional<stats::Estimate> SummaryRow::*cv;
  };
  for (const auto& [name, cv] : {Level{"within a run", &SummaryRow::within_run_cv},
                                 Level{"between runs", &SummaryRow::between_run_cv}}) {
    const auto &of_graph = graph->*cv, &of_eager = eager->*cv;
    if (!of_graph || !of_eager) continue;
    const bool enough =
        std::min(graph->run_medians.size(), eager->run_medians.size()) >= kRunsForAClaim;
    const bool steadier = of_graph->interval.high < of_eager->interval.low;
    const bool unsteadier = of_graph->interval.low > of_eager->interval.high;
    const std::string claim = !enough    ? "Needs more runs: whether a graph's replay is steadier"
                              : steadier ? "A graph's replay is steadier"
                              : unsteadier
                                  ? "A graph's replay is less steady"
                                  : "These runs do not tell whether a graph's replay is steadier";
    adviser.say(kChain,
                steadier || unsteadier ? AdviceSeverity::know : AdviceSeverity::open,
                fmt::format("{} {}: its time per operation varies by {}, that of launches one by "
                            "one by {}.",
                            claim,
                            name,
                            cv_text(*of_graph),
                            cv_text(*of_eager)),
                {},
                {graph, eager});
  }
}

void chain(Adviser& adviser) {
  launch_bound(adviser);
  chain_pair(adviser,
             "graph",
             "eager",
             {.of = "in a graph",
              .than = "one by one",
              .if_more = "Launch the operations of a chain one by one",
              .if_less = "Put a chain of small operations into a graph",
              .if_same = "A graph gains nothing for a chain of operations"});
  steadiness(adviser);
  chain_pair(adviser,
             "eager_alloc",
             "eager",
             {.of = "where operations allocate directly",
              .than = "where none allocates",
              .if_more = "Do not allocate between launches",
              .if_less = "Allocating between launches does no harm",
              .if_same = "Allocating between launches costs nothing",
              .less = AdviceSeverity::know});
  chain_pair(adviser,
             "eager_pool",
             "eager_alloc",
             {.of = "where operations allocate from a pool",
              .than = "where they allocate directly",
              .if_more = "Allocate directly rather than from a pool",
              .if_less = "Allocate from a pool",
              .if_same = "A pool spares nothing"});
  chain_pair(adviser,
             "graph_update",
             "graph_recapture",
             {.of = "with a graph that is updated each time",
              .than = "with one that is made anew",
              .if_more = "Make graphs anew rather than update them",
              .if_less = "Update a graph whose parameters change, rather than make it anew",
              .if_same = "Updating graphs instead of making them anew gains nothing"});
}

void small_kernels(Adviser& adviser) {
  const char* const axis = "launch/small_kernels";
  for (const char* method : {"graph", "cooperative", "persistent"}) {
    const auto sizes = adviser.rows.values(axis, {{"method", method}}, "per_kernel_ns", "kib");
    if (sizes.empty()) continue;
    const auto row = [&](const char* which) {
      return adviser.rows.find(axis, {{"method", which}, {"kib", sizes.front()}}, "per_kernel_ns");
    };
    const std::string how = std::string_view(method) == "graph"
                                ? "in a graph"
                                : fmt::format("as steps of one {} kernel", method);
    const auto comparison = compare(row(method), row("stream"));
    if (!comparison) continue;
    adviser.judge(axis,
                  {*comparison},
                  {.of = fmt::format("of {} KiB {}", sizes.front(), how),
                   .than = "launched one by one",
                   .if_more = "Launch small kernels one by one rather than " + how,
                   .if_less = "Run small dependent kernels " + how,
                   .if_same = "Running small kernels " + how + " gains nothing"});
  }
}

}  // namespace

void advise_on_graphs(Adviser& adviser) {
  chain(adviser);
  graphs(adviser);
  small_kernels(adviser);
}

}  // namespace launchgap
