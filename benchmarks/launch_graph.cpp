// The same kernels launched one by one and as a graph, what it takes to make a graph, and whether
// changing one is cheaper than making it anew.
#include "benchmarks/launching.h"
#include "harness/core/errors.h"
#include "harness/core/text.h"
#include "harness/device/device.h"
#include "harness/summary/adviser.h"
#include "kernels/kernels.h"

namespace launchgap {
namespace {

constexpr std::size_t kMostBranches = 8;

/// What is launched: the empty kernels that are timed, or others that take no time either and can
/// count, with nothing to count in and with it.
enum class What { empty, idle, counting };

/// Kernels in a line, or fanned out over several streams between a first and a last one.
class Kernels {
 public:
  Kernels(Device& device, const CaseName& name)
      : device_(device),
        count_(static_cast<int>(name.number("nodes"))),
        stream_(device.create_stream()),
        empty_(device.load(*kernels::arguments_kernel(sizeof(UnstoredWords)))),
        counting_(device.load(kernels::spin_kernel)),
        counter_(device.allocate(sizeof(unsigned))) {
    if (name.at("shape") == "fan" && count_ > 2) {
      const auto branches = std::min(kMostBranches, static_cast<std::size_t>(count_ - 2));
      for (std::size_t i = 0; i < branches; ++i) {
        branches_.push_back(device.create_stream());
        joins_.push_back(device.create_event(EventUse::order));
      }
      fork_ = device.create_event(EventUse::order);
    }
  }

  Stream& stream() { return *stream_; }
  int count() const { return count_; }
  const Kernel& kernel() const { return *empty_; }

  /// Enqueues them all.
  void enqueue(What what = What::empty) {
    if (branches_.empty()) {
      for (int i = 0; i < count_; ++i) launch(what, *stream_);
      return;
    }
    launch(what, *stream_);
    stream_->record(*fork_);
    for (const auto& branch : branches_) branch->wait_for(*fork_);
    for (int i = 0; i < count_ - 2; ++i)
      launch(what, *branches_[static_cast<std::size_t>(i) % branches_.size()]);
    for (std::size_t i = 0; i < branches_.size(); ++i) {
      branches_[i]->record(*joins_[i]);
      stream_->wait_for(*joins_[i]);
    }
    launch(what, *stream_);
  }

  std::unique_ptr<Graph> capture(What what = What::empty) {
    return device_.capture(*stream_, [&] { enqueue(what); });
  }

  /// Each of the kernels must run once whenever `run` is called.
  void verify(const std::function<void()>& run) {
    stream_->fill_bytes(counter_->address(), 0, sizeof(unsigned));
    stream_->wait();
    constexpr int kRuns = 2;
    for (int i = 0; i < kRuns; ++i) run();
    stream_->wait();
    unsigned ran = 0;
    device_.read(*counter_, 0, &ran, sizeof ran);
    if (ran != static_cast<unsigned>(kRuns * count_)) {
      throw WrongResult("{} kernels, run {} times, counted to {}", count_, kRuns, ran);
    }
  }

  /// Other arguments for the empty kernels.
  void change() { ++argument_.words[0]; }

 private:
  /// Of kernels/arguments.cu: with nowhere to store them, the words are only there.
  struct UnstoredWords {
    unsigned* to = nullptr;
    unsigned words[2] = {0, 0};
  };

  void launch(What what, Stream& stream) {
    if (what == What::empty) {
      void* argument = &argument_;
      stream.launch(*empty_, {1, 1}, &argument);
      return;
    }
    unsigned long long nanoseconds = 0;
    void* counter = what == What::counting ? counter_->address() : nullptr;
    void* arguments[] = {&nanoseconds, &counter};
    stream.launch(*counting_, {1, 1}, arguments);
  }

  Device& device_;
  int count_;
  std::unique_ptr<Stream> stream_;
  std::vector<std::unique_ptr<Stream>> branches_;
  std::vector<std::unique_ptr<Event>> joins_;
  std::unique_ptr<Event> fork_;
  std::unique_ptr<Kernel> empty_, counting_;
  std::unique_ptr<Buffer> counter_;
  UnstoredWords argument_;
};

class GraphCase : public Case {
 public:
  explicit GraphCase(const CaseContext& context)
      : device_(context.device), kernels_(context.device, context.name) {}
  int warm_up_samples() const override { return 2; }
  std::string method() const override {
    return fmt::format(
        "{}, {} kernels", launch_method(kernels_.kernel(), device_.facts()), kernels_.count());
  }

 protected:
  void verify_replay() {
    const std::unique_ptr<Graph> graph = kernels_.capture(What::counting);
    if (graph->nodes() != static_cast<std::size_t>(kernels_.count())) {
      throw WrongResult(
          "capturing {} kernels gave a graph of {} nodes", kernels_.count(), graph->nodes());
    }
    const std::unique_ptr<ExecutableGraph> executable = device_.instantiate(*graph);
    kernels_.verify([&] { executable->launch(kernels_.stream()); });
  }

  Device& device_;
  Kernels kernels_;
};

/// One by one, or all of them as a graph.
class Launching : public GraphCase {
 public:
  explicit Launching(const CaseContext& context) : GraphCase(context) {
    if (context.name.at("mode") == "replay") {
      verify_replay();
      const std::unique_ptr<Graph> graph = kernels_.capture();
      executable_ = device_.instantiate(*graph);
      executable_->upload(kernels_.stream());
    } else {
      if (context.name.at("shape") == "fan") need(device_.facts(), Capability::wait_for_streams);
      kernels_.verify([this] { kernels_.enqueue(What::counting); });
    }
    launch();
    kernels_.stream().wait();
  }

  void sample(Block& block) override {
    const std::int64_t called = now_ns();
    launch();
    const std::int64_t returned = now_ns();
    kernels_.stream().wait();
    const std::int64_t waited = now_ns();
    block.keep(called, returned - called, static_cast<double>(waited - called) / kernels_.count());
  }

 private:
  void launch() {
    if (executable_) {
      executable_->launch(kernels_.stream());
    } else {
      kernels_.enqueue();
    }
  }

  std::unique_ptr<ExecutableGraph> executable_;
};

/// From nothing to the end of the first launch.
class Making : public GraphCase {
 public:
  explicit Making(const CaseContext& context) : GraphCase(context) { verify_replay(); }

  void sample(Block& block) override {
    const std::int64_t begin = now_ns();
    const std::unique_ptr<Graph> graph = kernels_.capture();
    const std::int64_t captured = now_ns();
    const std::unique_ptr<ExecutableGraph> executable = device_.instantiate(*graph);
    const std::int64_t instantiated = now_ns();
    executable->upload(kernels_.stream());
    kernels_.stream().wait();
    const std::int64_t uploaded = now_ns();
    executable->launch(kernels_.stream());
    kernels_.stream().wait();
    const std::int64_t launched = now_ns();
    block.keep(begin,
               captured - begin,
               instantiated - captured,
               uploaded - instantiated,
               launched - uploaded);
  }
};

/// As a program does whose kernels have other arguments each time: capture again, and put the new
/// arguments into the graph that there is.
class Updating : public GraphCase {
 public:
  explicit Updating(const CaseContext& context) : GraphCase(context) {
    // Made without counting: that it counts afterwards shows that the update arrived.
    const auto updated = device_.instantiate(*kernels_.capture(What::idle));
    updated->update(*kernels_.capture(What::counting));
    kernels_.verify([&] { updated->launch(kernels_.stream()); });
    executable_ = device_.instantiate(*kernels_.capture());
  }

  void sample(Block& block) override {
    kernels_.change();
    const std::int64_t begin = now_ns();
    const std::unique_ptr<Graph> graph = kernels_.capture();
    const std::int64_t captured = now_ns();
    executable_->update(*graph);
    const std::int64_t updated = now_ns();
    executable_->launch(kernels_.stream());
    kernels_.stream().wait();
    const std::int64_t launched = now_ns();
    block.keep(begin, captured - begin, updated - captured, launched - updated);
  }

 private:
  std::unique_ptr<ExecutableGraph> executable_;
};

std::unique_ptr<Case> make_graph_case(const CaseContext& context) {
  const std::string& mode = context.name.at("mode");
  if (mode == "make") return std::make_unique<Making>(context);
  if (mode == "update") return std::make_unique<Updating>(context);
  return std::make_unique<Launching>(context);
}

constexpr std::uint64_t kMostNodes = 1 << 14;

std::vector<std::string> node_counts(Profile profile, const DeviceFacts& facts) {
  if (!can(facts, Capability::make_graphs)) return {"16"};
  if (profile == Profile::quick) return {"1", "4", "16", "64", "512"};
  return {"1", "2", "4", "8", "16", "64", "256", "1024", "4096"};
}

std::vector<std::string_view> metrics_of_graph(const CaseName& name) {
  const std::string& mode = name.at("mode");
  if (mode == "make") return {"capture_ns", "instantiate_ns", "upload_ns", "first_roundtrip_ns"};
  if (mode == "update") return {"capture_ns", "update_ns", "roundtrip_ns"};
  return {"calls_ns", "per_node_ns"};
}

/// One shape of graphs at one number of nodes.
struct GraphSize {
  std::string shape;
  std::string nodes;

  const SummaryRow* row(const BenchmarkRows& rows,
                        std::string_view mode,
                        const char* metric) const {
    return rows.find({{"shape", shape}, {"nodes", nodes}, {"mode", mode}}, metric);
  }
};

/// What a shape is called in a sentence.
std::string_view how(std::string_view shape) {
  return shape == "fan" ? "side by side" : "one after another";
}

/// Time per kernel in a graph against one by one, by number of nodes.
std::vector<Comparison> replays(const BenchmarkRows& rows, const std::string& shape) {
  std::vector<Comparison> comparisons;
  for (const std::string& nodes :
       rows.values({{"shape", shape}, {"mode", "replay"}}, "per_node_ns", "nodes")) {
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
      Severity::note,
      fmt::format("A graph of {} ({}) pays for itself after {:.0f} replay{}: {} take {}, and each "
                  "replay saves {}.",
                  counted(size.nodes, "kernel"),
                  how(size.shape),
                  replays,
                  replays == 1 ? "" : "s",
                  parts[2] ? "capture, instantiation and upload" : "capture and instantiation",
                  quantity(making, "ns"),
                  quantity(saved, "ns")),
      {replay},
      {parts[0], parts[1], parts[2]});
}

void advise_on_updates(Adviser& adviser, const std::string& shape) {
  const auto sizes =
      adviser.rows.values({{"shape", shape}, {"mode", "update"}}, "update_ns", "nodes");
  if (sizes.empty()) return;
  const GraphSize size{shape, sizes.back()};
  const auto comparison = compare(size.row(adviser.rows, "update", "update_ns"),
                                  size.row(adviser.rows, "make", "instantiate_ns"));
  if (!comparison) return;
  if (comparison->ratio.claims()) {
    const bool cheaper = comparison->ratio.verdict == RatioVerdict::less;
    return adviser.say(Severity::act,
                       fmt::format("{}: with {} ({}) an update takes {} times as long as "
                                   "instantiating.",
                                   cheaper ? "Update a graph whose parameters change, rather than "
                                             "make it anew"
                                           : "Make a graph anew rather than update it",
                                   counted(size.nodes, "kernel"),
                                   how(shape),
                                   times_text(*comparison->ratio.value)),
                       {*comparison});
  }
  adviser.judge({*comparison},
                {.of = "of an update",
                 .than = "of instantiating",
                 .if_more = "",
                 .if_less = "",
                 .if_same = "Updating a graph instead of making it anew gains nothing"});
}

void advise_on_graph(Adviser& adviser) {
  for (const char* shape : {"line", "fan"}) {
    const auto comparisons = replays(adviser.rows, shape);
    const Comparison* const from = from_which_on(comparisons, RatioVerdict::less);
    if (from) {
      const Comparison& best = *strongest(comparisons, RatioVerdict::less);
      adviser.say(
          Severity::act,
          fmt::format("Use a graph from {} on{} ({}): at {} the time per kernel is {} of launching "
                      "them one by one.",
                      counted(axis_value(*from->row, "nodes"), "kernel"),
                      from == &comparisons.front() && axis_value(*from->row, "nodes") != "1"
                          ? ", the fewest measured"
                          : "",
                      how(shape),
                      counted(axis_value(*best.row, "nodes"), "kernel"),
                      multiple(*best.ratio.value)),
          from->row == best.row ? std::vector{*from} : std::vector{*from, best});
      payback(adviser, {shape, axis_value(*best.row, "nodes")}, best);
    } else if (!comparisons.empty()) {
      adviser.judge(
          {comparisons.back()},
          {.of = fmt::format("of a graph of {} ({})",
                             counted(axis_value(*comparisons.back().row, "nodes"), "kernel"),
                             how(shape)),
           .than = "of the same one by one",
           .if_more = "Launch kernels one by one",
           .if_less = "Use a graph",
           .if_same = "A graph gains nothing"});
    }
    advise_on_updates(adviser, shape);
  }
}

Figure against_one_by_one(const std::string& shape, std::string caption) {
  return {std::move(caption),
          {{"in a graph", {{"shape", shape}, {"mode", "replay"}}, "per_node_ns"},
           {"one by one", {{"shape", shape}, {"mode", "single"}}, "per_node_ns"}},
          "nodes"};
}

const Registration launch_graph =
    benchmark("launch/graph")
        .asks("From how many kernels on does a graph pay?")
        .axis("shape",
              fmt::format("`line`: one kernel after the other; `fan`: on up to {} streams between "
                          "a first and a last one",
                          kMostBranches),
              {"line", "fan"})
        .size_axis("nodes", "kernels", node_counts, kMostNodes)
        .axis("mode",
              "`single`: one by one; `replay`: an instantiated graph; `make`: capture, "
              "instantiate, upload, first launch; `update`: capture, put the new arguments into "
              "the graph that there is, launch",
              {"single", "replay", "make", "update"})
        .only([](Profile profile, const DeviceFacts& facts, const CaseName& name) {
          // A fan has a first, a last, and something between; making one costs what a line costs.
          if (name.at("shape") == "line")
            return can(facts, Capability::make_graphs) || name.at("mode") == "replay";
          return can(facts, Capability::make_graphs) &&
                 name.number("nodes") >= (profile == Profile::quick ? 64 : 4) &&
                 (name.at("mode") == "single" || name.at("mode") == "replay");
        })
        .brings(host_time("calls_ns",
                          "Time inside the calls that launch all kernels of one sample: as many "
                          "calls as kernels, or one for a graph of them.",
                          "the kernels, the wait",
                          "the time in the calls"))
        .brings(host_time("per_node_ns",
                          "From the start of the first of those calls until the wait for all of "
                          "their kernels returns, divided by the kernels.",
                          "",
                          "the time per kernel"))
        .brings(host_time("capture_ns",
                          "Recording a graph: from the start of the capture until it is ended, all "
                          "launches in it included.",
                          "instantiation"))
        .brings(host_time("instantiate_ns",
                          "Making an executable graph of a recorded one.",
                          "capture, upload"))
        .brings(host_time(
            "upload_ns",
            "Uploading an executable graph to the device, until the wait for it returns."))
        .brings(host_time("update_ns",
                          "Giving an executable graph the parameters of a newly recorded one, in "
                          "place of making it anew.",
                          "the capture before it",
                          "the time"))
        .metrics(metrics_of_graph)
        .samples([](Profile profile, const CaseName& name) {
          // About as much time for each size.
          const auto nodes = static_cast<int>(name.number("nodes"));
          const int samples = std::max(2, std::min(30, 600 / nodes));
          return Sampling{profile == Profile::quick ? 2 : 6, samples};
        })
        .takes([](const DeviceFacts&, const CaseName& name, Sampling sampling) {
          const auto nodes = static_cast<double>(name.number("nodes"));
          return 0.01 + (1e-5 + 5e-6 * nodes) * (sampling.blocks * (sampling.samples + 2) + 4);
        })
        .one_device_at_a_time()
        .stops_when_steady()
        .untraced()
        .advises(advise_on_graph)
        .draws({against_one_by_one("line", "Per kernel, one after another"),
                against_one_by_one("fan", "Per kernel, independent of each other"),
                {"Making a graph: one after another",
                 {{"capture", {{"mode", "make"}}, "capture_ns"},
                  {"instantiate", {{"mode", "make"}}, "instantiate_ns"},
                  {"update", {{"mode", "update"}}, "update_ns"}},
                 "nodes"}})
        .makes(make_graph_case);

}  // namespace
}  // namespace launchgap
