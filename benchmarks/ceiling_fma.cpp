// How fast the vector units multiply and add, with everything in registers: what no library's
// product of such a type can exceed.
#include <cstdint>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "benchmarks/operands.h"
#include "harness/core/plan.h"
#include "harness/measure/benchmark.h"
#include "harness/measure/device_timer.h"
#include "kernels/kernels.h"
#include "kernels/multiply_add.h"

namespace launchgap {
namespace {

constexpr unsigned kBlockThreads = 256;

/// So many that a launch takes most of a millisecond, where FP64 has few units too; and that sums
/// of FP32 stay exact.
unsigned steps_of(bool in_double) {
  return in_double ? 1024 : 8192;
}

class MultiplyAdd : public Case {
 public:
  explicit MultiplyAdd(const CaseContext& context)
      : device_(context.device),
        in_double_(context.name.at("type") == "fp64"),
        steps_(steps_of(in_double_)),
        stream_(device_.create_stream()),
        timer_(device_, *stream_),
        kernel_(device_.load(kernels::multiply_add_kernel)),
        shape_{static_cast<unsigned>(device_.resident_blocks(*kernel_, kBlockThreads)),
               kBlockThreads},
        results_(device_.allocate(threads() * sizeof(double))) {
    // A result that was never written must not pass for one.
    stream_->fill_bytes(results_->address(), 0xFF, results_->bytes());
    enqueue();
    verify();
    operations_ =
        timer_.operations_for_one_ms(warm_up_seconds(device_), [this](int) { enqueue(); });
  }

  void sample(Block& block) override {
    const std::int64_t begin = now_ns();
    const double device_ns = timer_.time(operations_, [this](int) { enqueue(); });
    const double operations =
        kernels::multiply_add_operations(steps_) * static_cast<double>(threads());
    block.keep(begin, device_ns, operations / device_ns * 1e-3);
  }

  int operations_per_sample() const override { return operations_; }

  void verify_timed_work() override { verify(); }

  std::string method() const override {
    return fmt::format("{} blocks of {} threads, {} numbers of each, {} steps; {} per sample{}",
                       shape_.blocks,
                       shape_.threads,
                       kernels::kMultiplyAddChains,
                       steps_,
                       operations_,
                       remark_on_gate(device_));
  }

 private:
  std::size_t threads() const { return std::size_t{shape_.blocks} * shape_.threads; }

  void enqueue() {
    void* results = results_->address();
    unsigned steps = steps_;
    int in_double = in_double_;
    double factor = 1, addend = 1;  // so each step counts one, exactly
    void* arguments[] = {&results, &steps, &in_double, &factor, &addend};
    stream_->launch(*kernel_, shape_, arguments);
  }

  /// Of every thread.
  void verify() {
    stream_->wait();
    device_.check();
    std::vector<double> results(threads());
    device_.read(*results_, 0, results.data(), results.size() * sizeof(double));
    for (std::size_t thread = 0; thread < results.size(); ++thread) {
      const double expected = kernels::multiply_add_count(thread, steps_);
      if (results[thread] != expected)
        throw WrongResult(
            "thread {} has computed {}, and {} is right", thread, results[thread], expected);
    }
  }

  Device& device_;
  bool in_double_;
  unsigned steps_;
  std::unique_ptr<Stream> stream_;
  DeviceTimer timer_;
  std::unique_ptr<Kernel> kernel_;
  LaunchShape shape_;
  std::unique_ptr<Buffer> results_;
  int operations_ = 1;
};

const Registration ceiling_multiply_add =
    benchmark("ceiling/multiply_add")
        .asks("How fast do the vector units multiply and add, with everything in registers?")
        .axis("type", "of the numbers", {"fp32", "fp64"})
        // A process of its own is too much for a quick look; a CPU's library is beside no ceiling.
        .only([](Profile profile, const DeviceFacts& facts, const CaseName&) {
          return is_gpu(facts) && profile != Profile::quick;
        })
        .metrics({"device_ns", "tflops"})
        .samples({5, 5})
        .takes([](const DeviceFacts&, const CaseName&, Sampling sampling) {
          constexpr double kOne = 6e-3;
          return 0.3 + kOne * (sampling.blocks * sampling.samples);
        })
        .traced_as(TracedAs::gated_work)
        .makes<MultiplyAdd>();

}  // namespace
}  // namespace launchgap
