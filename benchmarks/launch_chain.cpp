// A framework's step: a chain of operations as traces of training jobs show them, launched one by
// one or as graphs. It answers whether a graph, as tf.function makes one, is faster, and steadier.
#include <span>

#include "benchmarks/chain_mix.h"
#include "benchmarks/launching.h"
#include "harness/core/errors.h"
#include "harness/device/allocator.h"
#include "harness/device/graph.h"
#include "harness/measure/device_timer.h"
#include "kernels/kernels.h"

namespace launchgap {
namespace {

void spin_until(std::int64_t time_ns) {
  while (now_ns() < time_ns) {
  }
}

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
    return fmt::format("{}, a wait every {} operations; {} us of work each on the average{}",
                       launch_method(*kernel_, device_.facts()),
                       kOperationsPerWait,
                       std::llround(busy_ns_ / 1e3 / static_cast<double>(operations_.size())),
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
      throw WrongResult(
          fmt::format("a chain of {} operations ran {} of them", operations_.size(), ran));
    }
  }

  /// How long the device is busy with a step when launching does not hold it up: each segment from
  /// behind a gate.
  double time_without_launching() {
    DeviceTimer timer(device_, *stream_);
    double total = 0;
    for (const auto& segment : segments_) total += time_from_behind_a_gate(timer, segment);
    return total;
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
  if (!can(facts, Can::make_graphs)) return {"eager", "eager_alloc", "eager_pool", "graph"};
  return {"eager", "eager_alloc", "eager_pool", "graph", "graph_update", "graph_recapture"};
}

/// Every mode on a chain of 64, with and without gaps; the longest ones and the other gaps only
/// where there is time. How the lengths compare is asked of the two modes that matter most.
bool wanted(Profile profile, const DeviceFacts& facts, const CaseName& name) {
  if (profile == Profile::full) return can(facts, Can::make_graphs) || name.at("mode") != "graph";
  const std::string& mode = name.at("mode");
  const long long operations = name.number("ops"), gap = name.number("gap_us");
  const bool usual = operations == 64 && gap == 0;
  if (profile == Profile::quick || !can(facts, Can::make_graphs)) return usual;
  if (usual || (operations == 64 && gap == 10)) return true;
  const bool compared_most = mode == "eager" || mode == "graph";
  return compared_most &&
         ((operations == 8 && gap == 0) || (operations == 512 && (gap == 0 || gap == 10)));
}

const Registration launch_chain =
    benchmark("launch/chain")
        .asks("What does a framework's step cost, one by one or as a graph, and which is steadier?")
        .axis("mode", modes)
        .axis("ops", {"8", "64", "512", "4096"})
        .axis("gap_us", {"0", "5", "10", "20"})
        .only(wanted)
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
                            (sampling.blocks * (sampling.samples + 1) + 3);
        })
        .one_device_at_a_time()
        .traced_as(TracedAs::chain)
        .traced_where([](const CaseName& name) { return name.at("gap_us") == "0"; })
        .makes<Chain>();

}  // namespace
}  // namespace launchgap
