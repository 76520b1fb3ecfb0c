// A framework's step: a chain of operations as traces of training jobs show them, launched one by
// one or as graphs. It answers whether a graph, as tf.function makes one, is faster, and steadier.
#include <span>

#include "benchmarks/chain_mix.h"
#include "benchmarks/launching.h"
#include "harness/core/errors.h"
#include "harness/core/text.h"
#include "harness/device/allocator.h"
#include "harness/device/device.h"
#include "harness/measure/device_timer.h"
#include "harness/stats/stats.h"
#include "harness/summary/adviser.h"
#include "kernels/kernels.h"

namespace launchgap {
namespace {

class Chain : public Case {
 public:
  explicit Chain(const CaseContext& context)
      : device_(context.device),
        mode_(context.name.at("mode")),
        gap_ns_(1000 * context.name.number("gap_us")),
        // The chain is the same in every mode, so that modes can be compared.
        operations_(chain_operations(static_cast<int>(context.name.number("ops")), kSeed)),
        stream_(device_.create_stream()),
        kernel_(device_.load(kernels::spin_kernel)),
        counter_(device_.allocate(sizeof(unsigned))) {
    for (std::size_t begin = 0; begin < operations_.size(); begin += kOperationsPerWait) {
      segments_.push_back(
          std::span(operations_)
              .subspan(begin,
                       std::min<std::size_t>(kOperationsPerWait, operations_.size() - begin)));
    }
    if (mode_ == "eager_alloc") allocator_ = device_.allocator(*stream_, AllocatorKind::direct);
    if (mode_ == "eager_pool") allocator_ = device_.allocator(*stream_, AllocatorKind::pool);
    if (uses_graphs()) make_graphs();
    verify();
    busy_ns_ = time_without_launching();
  }

  void sample(Block& block) override {
    const std::int64_t begin = now_ns();
    run();
    const std::int64_t end = now_ns();
    const auto elapsed = static_cast<double>(end - begin);
    block.keep(begin, elapsed / static_cast<double>(operations_.size()), 1 - busy_ns_ / elapsed);
  }

  int warm_up_samples() const override { return 1; }
  int operations_per_sample() const override { return static_cast<int>(operations_.size()); }

  void verify_timed_work() override { verify(); }

  std::string method() const override {
    return fmt::format("{}, a wait every {} operations; {} us of work each on the average{}{}",
                       launch_method(*kernel_, device_.facts()),
                       kOperationsPerWait,
                       std::llround(busy_ns_ / 1e3 / static_cast<double>(operations_.size())),
                       remark_on_gate(device_),
                       allocator_ ? "; " + allocator_->method() : "");
  }

 private:
  static constexpr std::uint64_t kSeed = 143;

  bool uses_graphs() const { return mode_.starts_with("graph"); }

  /// One step of the program, with a wait after each segment.
  void run() {
    for (std::size_t i = 0; i < segments_.size(); ++i) {
      if (mode_ == "graph") {
        graphs_[i]->launch(*stream_);
      } else if (mode_ == "graph_update") {
        const std::unique_ptr<Graph> graph = capture(segments_[i]);
        graphs_[i]->update(*graph);
        graphs_[i]->launch(*stream_);
      } else if (mode_ == "graph_recapture") {
        // As when the shape of the input has changed: everything anew.
        graphs_[i] = device_.instantiate(*capture(segments_[i]));
        graphs_[i]->launch(*stream_);
      } else {
        launch(segments_[i], gap_ns_);
      }
      stream_->wait();
    }
  }

  /// One by one, with what the framework does in between, and its allocations.
  void launch(std::span<const ChainOperation> operations, std::int64_t gap_ns) {
    for (const ChainOperation& operation : operations) {
      const std::int64_t begin = gap_ns > 0 ? now_ns() : 0;
      if (gap_ns > 0) spin_until(begin + gap_ns);
      const bool allocates = allocator_ && operation.allocated_bytes > 0;
      void* const memory = allocates ? allocator_->allocate(operation.allocated_bytes) : nullptr;
      launch_one(operation);
      if (allocates) allocator_->release(memory, operation.allocated_bytes);
    }
  }

  void launch_one(const ChainOperation& operation) {
    unsigned long long nanoseconds = operation.nanoseconds;
    void* counter = counter_->address();
    void* arguments[] = {&nanoseconds, &counter};
    stream_->launch(*kernel_, {1, 1}, arguments);
  }

  /// Capturing runs the framework's code too.
  std::unique_ptr<Graph> capture(std::span<const ChainOperation> operations) {
    return device_.capture(*stream_, [&] { launch(operations, gap_ns_); });
  }

  void make_graphs() {
    for (const auto& segment : segments_) {
      graphs_.push_back(device_.instantiate(*capture(segment)));
      graphs_.back()->upload(*stream_);
    }
    stream_->wait();
  }

  /// Every operation of a step runs once.
  void verify() {
    stream_->fill_bytes(counter_->address(), 0, sizeof(unsigned));
    stream_->wait();
    run();
    unsigned ran = 0;
    device_.read(*counter_, 0, &ran, sizeof ran);
    if (ran != operations_.size()) {
      throw WrongResult("a chain of {} operations ran {} of them", operations_.size(), ran);
    }
  }

  /// How long the device is busy with a step when launching does not hold it up: each segment from
  /// behind a gate. The median of three times: one that is disturbed would falsify every share.
  double time_without_launching() {
    DeviceTimer timer(device_, *stream_);
    std::vector<double> steps(3);
    for (double& step : steps) {
      for (const auto& segment : segments_) step += time_from_behind_a_gate(timer, segment);
    }
    return *stats::median(steps);
  }

  /// In halves, where the launch queue does not take all of it.
  double time_from_behind_a_gate(DeviceTimer& timer, std::span<const ChainOperation> operations) {
    const auto count = static_cast<int>(operations.size());
    try {
      return count *
             timer.time(count, [&](int i) { launch_one(operations[static_cast<std::size_t>(i)]); });
    } catch (const GateTimedOut&) {
      if (count == 1) throw;
      const std::size_t half = operations.size() / 2;
      return time_from_behind_a_gate(timer, operations.first(half)) +
             time_from_behind_a_gate(timer, operations.subspan(half));
    }
  }

  Device& device_;
  std::string mode_;
  std::int64_t gap_ns_;
  std::vector<ChainOperation> operations_;
  std::vector<std::span<const ChainOperation>> segments_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Kernel> kernel_;
  std::unique_ptr<Buffer> counter_;
  std::unique_ptr<Allocator> allocator_;
  std::vector<std::unique_ptr<ExecutableGraph>> graphs_;
  double busy_ns_ = 0;
};

std::vector<std::string> modes(Profile, const DeviceFacts& facts) {
  if (!can(facts, Capability::make_graphs)) return {"eager", "eager_alloc", "eager_pool", "graph"};
  return {"eager", "eager_alloc", "eager_pool", "graph", "graph_update", "graph_recapture"};
}

/// Every mode on a chain of 64, with and without gaps; the longest ones and the other gaps only
/// where there is time. How the lengths compare is asked of the two modes that matter most.
bool wanted(Profile profile, const DeviceFacts& facts, const CaseName& name) {
  if (profile == Profile::full)
    return can(facts, Capability::make_graphs) || name.at("mode") != "graph";
  const std::string& mode = name.at("mode");
  const long long operations = name.number("ops"), gap = name.number("gap_us");
  const bool usual = operations == 64 && gap == 0;
  if (profile == Profile::quick || !can(facts, Capability::make_graphs)) return usual;
  if (usual || (operations == 64 && gap == 10)) return true;
  const bool compared_most = mode == "eager" || mode == "graph";
  return compared_most &&
         ((operations == 8 && gap == 0) || (operations == 512 && (gap == 0 || gap == 10)));
}

/// One length of chain, with so much work of the host between two operations.
struct ChainPoint {
  std::string ops;
  std::string gap_us;

  const SummaryRow* row(const BenchmarkRows& rows,
                        std::string_view mode,
                        const char* metric = "per_op_ns",
                        Arm arm = Arm::plain) const {
    return rows.find({{"mode", mode}, {"ops", ops}, {"gap_us", gap_us}}, metric, arm);
  }
};

/// The longest chain that was measured with the least work of the host in between; in `mode` too.
std::optional<ChainPoint> longest(const BenchmarkRows& rows, std::string_view mode) {
  const auto gaps = rows.values({{"mode", mode}}, "per_op_ns", "gap_us");
  if (gaps.empty()) return std::nullopt;
  const auto ops = rows.values({{"mode", mode}, {"gap_us", gaps.front()}}, "per_op_ns", "ops");
  return ChainPoint{ops.back(), gaps.front()};
}

/// The share that says whether launches bind the chain: of the trace, else of the device's idling.
const SummaryRow* starving(const BenchmarkRows& rows, const ChainPoint& point) {
  const SummaryRow* const traced = point.row(rows, "eager", "starved_share", Arm::traced);
  return traced ? traced : point.row(rows, "eager", "idle_share");
}

enum class Bound { yes, no, unknown };

std::size_t runs_above_half(const SummaryRow& share) {
  return static_cast<std::size_t>(
      std::ranges::count_if(share.run_medians, [](double run) { return run > 0.5; }));
}

Bound bound_of(const SummaryRow& share) {
  if (share.run_medians.size() < kRunsForAClaim) return Bound::unknown;
  const std::size_t above = runs_above_half(share);
  if (above == share.run_medians.size()) return Bound::yes;
  return above == 0 ? Bound::no : Bound::unknown;
}

/// "2 of 5 runs", in which the share is above a half; empty where it is in all of them or in none.
std::string split_runs(const SummaryRow& share) {
  const std::size_t above = runs_above_half(share), all = share.run_medians.size();
  return above == 0 || above == all ? "" : fmt::format("{} of {} runs", above, all);
}

void launch_bound(Adviser& adviser) {
  const auto point = longest(adviser.rows, "eager");
  if (!point) return;
  std::vector<const SummaryRow*> shares;
  const SummaryRow* first_bound = nullptr;
  for (const std::string& gap :
       adviser.rows.values({{"mode", "eager"}, {"ops", point->ops}}, "per_op_ns", "gap_us")) {
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
    const bool starved = share.metric == "starved_share";
    if (const std::string runs = split_runs(share); !runs.empty()) {
      return starved ? fmt::format("in {} most of its kernels found nothing queued", runs)
                     : fmt::format("in {} the device idles most of the time", runs);
    }
    if (starved) return fmt::format("{} of its kernels found nothing queued", value_text(share));
    // Below zero: the work took longer when it was timed by itself.
    if (*share.p50 <= 0) return "the device is not seen to idle";
    return fmt::format("the device idles {} of the time", value_text(share));
  };
  if (first_bound) {
    const std::string gap = axis_value(*first_bound, "gap_us");
    return adviser.say(
        Severity::act,
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
  adviser.say(never ? Severity::fine : Severity::open,
              never ? fmt::format("A chain of {} small operations is not bound by launches: {}.",
                                  point->ops,
                                  what(**std::ranges::max_element(
                                      shares, {}, [](const auto* share) { return *share->p50; })))
                    : fmt::format("These runs do not tell whether a chain of {} small operations "
                                  "is bound by launches: {}{}.",
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
    adviser.judge({*comparison}, words);
}

std::string cv_text(const stats::Estimate& cv) {
  const auto number = [](double share) {
    const std::string text = percent_text(share);
    return text.substr(0, text.size() - 2);  // the unit stands once
  };
  return fmt::format("{} (95 % {} to {})",
                     percent_text(cv.value),
                     number(cv.interval.low),
                     number(cv.interval.high));
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
    adviser.say(steadier || unsteadier ? Severity::note : Severity::open,
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

void advise_on_chain(Adviser& adviser) {
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
             {.of = "allocating directly",
              .than = "without allocations",
              .if_more = "Do not allocate between launches",
              .if_less = "Allocating between launches does no harm",
              .if_same = "Allocating between launches costs nothing",
              .less = Severity::note});
  chain_pair(adviser,
             "eager_pool",
             "eager_alloc",
             {.of = "with a pool",
              .than = "allocating directly",
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

const std::pair<std::string, std::string> kWithoutGap = {"gap_us", std::string(FigureLine::kLeast)};
const std::pair<std::string, std::string> kLongest = {"ops", std::string(FigureLine::kMost)};
const std::pair<std::string, std::string> kOneLength = {"ops", std::string(FigureLine::kCommon)};

std::vector<FigureLine> by_mode() {
  std::vector<FigureLine> lines;
  for (const auto& [label, mode] : {std::pair("one by one", "eager"),
                                    {"allocating", "eager_alloc"},
                                    {"from a pool", "eager_pool"},
                                    {"graph", "graph"},
                                    {"graph, updated", "graph_update"},
                                    {"graph, anew", "graph_recapture"}})
    lines.push_back({label, {{"mode", mode}, kWithoutGap, kOneLength}, "per_op_ns"});
  return lines;
}

const Registration launch_chain =
    benchmark("launch/chain")
        .asks("Are chains of small operations, as frameworks issue them, bound by launches?")
        .axis("mode",
              "`eager`: operations one by one; `eager_alloc`, `eager_pool`: with memory for each, "
              "of the driver or its pool; `graph`: launched as graphs, which are updated "
              "(`graph_update`) or made anew (`graph_recapture`) each time",
              modes)
        .axis("ops", "operations of a step", {"8", "64", "512", "4096"})
        .axis("gap_us", "microseconds that the host works between two", {"0", "5", "10", "20"})
        .only(wanted)
        .brings(host_time("per_op_ns",
                          "A step of a chain of operations, with its waits, launches, allocations "
                          "and the host's gaps, divided by their number.",
                          "",
                          "the time per operation"))
        .brings(
            derived_ratio("idle_share",
                          "Share of the chain's time, from 0 to 1, in which the device has nothing "
                          "to run: 1 less the same operations from behind a gate by the step."))
        .metrics({"per_op_ns", "idle_share"})
        .samples([](Profile profile, const CaseName& name) {
          const long long operations = name.number("ops");
          const int samples = operations <= 8     ? 20
                              : operations <= 64  ? 5
                              : operations <= 512 ? 2
                                                  : 1;
          return Sampling{profile == Profile::quick ? 2 : 3, samples};
        })
        .takes([](const DeviceFacts&, const CaseName& name, Sampling sampling) {
          const double operation = 6e-5 + 1e-6 * static_cast<double>(name.number("gap_us"));
          return 0.01 + operation * static_cast<double>(name.number("ops")) *
                            (sampling.blocks * (sampling.samples + 1) + 5);
        })
        .one_device_at_a_time()
        .traced_as(TracedAs::chain)
        .traced_where([](const CaseName& name) { return name.at("gap_us") == "0"; })
        .advises(advise_on_chain)
        .draws({{"Per operation, over the chain's length",
                 {{"one by one", {{"mode", "eager"}, kWithoutGap}, "per_op_ns"},
                  {"graph", {{"mode", "graph"}, kWithoutGap}, "per_op_ns"}},
                 "ops"},
                {"Per operation, by mode", by_mode()},
                {"Device idle, over the host's work between two operations",
                 {{"one by one", {{"mode", "eager"}, kLongest}, "idle_share"},
                  {"graph", {{"mode", "graph"}, kLongest}, "idle_share"}},
                 "gap_us",
                 "µs"}})
        .makes<Chain>();

}  // namespace
}  // namespace launchgap
