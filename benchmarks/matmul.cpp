// The matrix product of the device's own library.
#include "harness/device/matmul.h"

#include <memory>
#include <vector>

#include <fmt/format.h>

#include "benchmarks/operands.h"
#include "harness/core/plan.h"
#include "harness/measure/benchmark.h"
#include "harness/measure/device_timer.h"
#include "harness/measure/verify.h"

namespace launchgap {
namespace {

using kernels::Distribution;

class LibraryMatmul : public Case {
 public:
  explicit LibraryMatmul(const CaseContext& context)
      : device_(context.device),
        shape_(MatmulShape::square(static_cast<int>(context.name.number("size")),
                                   element_type(context.name.at("type")),
                                   context.name.at("type") == "tf32")),
        stream_(device_.create_stream()),
        timer_(device_, *stream_),
        matmul_(device_.matmul(*stream_, shape_)),
        seed_(context.seed) {
    const std::size_t each = kernels::element_bytes(shape_.type);
    const std::size_t set_bytes = (shape_.a_count() + shape_.b_count() + shape_.c_count()) * each;
    const int sets = operand_sets(device_, context.name.at("cache"), set_bytes);
    for (int i = 0; i < sets; ++i) {
      operands_.push_back({device_.allocate(shape_.a_count() * each),
                           device_.allocate(shape_.b_count() * each),
                           device_.allocate(shape_.c_count() * each)});
    }

    // Each set, since each is timed.
    const std::uint64_t step = exact_step(shape_);
    fill_operands(Distribution::small_integer, step);
    for (int i = 0; i < sets; ++i) enqueue_next();
    stream_->wait();
    for (std::size_t i = 0; i < operands_.size(); ++i)
      verify_matmul(
          device_, *operands_[i].c, shape_, seeds_of(i, Distribution::small_integer, step));

    fill_operands(Distribution::uniform, 1);
    for (int i = 0; i < sets; ++i) enqueue_next();
    stream_->wait();
    operations_ =
        timer_.operations_for_one_ms(warm_up_seconds(device_), [this](int) { enqueue_next(); });
  }

  void sample(Block& block) override {
    const std::int64_t begin = now_ns();
    const double device_ns = timer_.time(operations_, [this](int) { enqueue_next(); });
    block.keep(begin, device_ns, shape_.operations() / device_ns * 1e-3);
  }

  int operations_per_sample() const override { return operations_; }

  void verify_timed_work() override {
    verify_timed_matmul(device_, *operands_[0].c, shape_, seeds_of(0, Distribution::uniform, 1));
  }

  std::string method() const override {
    return fmt::format(
        "{}; {} per sample{}", matmul_->method(), operations_, remark_on_gate(device_));
  }

 private:
  struct Operands {
    std::unique_ptr<Buffer> a, b, c;
  };

  /// The sets take turns across samples too, or a sample of one operation would always find the
  /// same one warm.
  void enqueue_next() {
    Operands& set = operands_[next_++ % operands_.size()];
    matmul_->enqueue(*set.a, *set.b, *set.c);
  }

  /// Every set has operands of its own, so that none passes with another's result.
  InputSeeds seeds_of(std::size_t set, Distribution distribution, std::uint64_t step) const {
    return {derive_seed(seed_, fmt::format("a{}", set)),
            derive_seed(seed_, fmt::format("b{}", set)),
            distribution,
            step};
  }

  void fill_operands(Distribution distribution, std::uint64_t step) {
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      const Operands& set = operands_[i];
      const InputSeeds seeds = seeds_of(i, distribution, step);
      fill(device_, *stream_, *set.a, seeds.first, shape_.type, distribution, step);
      fill(device_, *stream_, *set.b, seeds.second, shape_.type, distribution);
      // A result that was never written must not pass for one.
      stream_->fill_bytes(set.c->address(), 0xFF, set.c->bytes());
    }
  }

  Device& device_;
  MatmulShape shape_;
  std::unique_ptr<Stream> stream_;
  DeviceTimer timer_;
  std::unique_ptr<Matmul> matmul_;
  std::uint64_t seed_;
  std::vector<Operands> operands_;
  std::size_t next_ = 0;
  int operations_ = 1;
};

std::vector<std::string> sizes(Profile profile, const DeviceFacts& facts) {
  switch (profile) {
    case Profile::quick:
      return {"256", "1024", "2048"};
    case Profile::nightly:
      // A CPU takes seconds for one product of 8192; every night is too often for that.
      if (!is_gpu(facts)) return {"256", "512", "1024", "2048", "4096"};
      return {"256", "512", "1024", "2048", "4096", "8192"};
    case Profile::full:
      return {"256", "384", "512", "768", "1024", "1536", "2048", "3072", "4096", "6144", "8192"};
  }
  return {};
}

std::vector<std::string> cache_states(Profile profile, const DeviceFacts&) {
  return profile == Profile::quick ? std::vector<std::string>{"warm"}
                                   : std::vector<std::string>{"warm", "cold"};
}

std::vector<std::string> types(Profile, const DeviceFacts& facts) {
  return backend_of(facts).matmul_types;
}

const Registration library_matmul =
    benchmark("matmul/library")
        .asks("How fast does the device's own library multiply square matrices?")
        .axis("size", "rows and columns of the square matrices", sizes)
        .axis("type", type_meaning, types)
        .axis("cache", cache_meaning, cache_states)
        .metrics({"device_ns", "tflops"})
        .headline({5, "matmul fp32, best", "type:fp32", "tflops", Headline::Of::best_median})
        .headline({6, "matmul bf16, best", "type:bf16", "tflops", Headline::Of::best_median})
        .samples([](Profile profile, const CaseName& name) {
          const long long size = name.number("size");
          const int samples = size <= 1024 ? 10 : size <= 2048 ? 5 : size <= 4096 ? 3 : 2;
          return Sampling{profile == Profile::quick ? 3 : 5, samples};
        })
        .takes([](const DeviceFacts& facts, const CaseName& name, Sampling sampling) {
          const double size = static_cast<double>(name.number("size"));
          const double flops = expected_matmul_flops(facts);
          const double one = 2 * size * size * size / flops;
          return 0.1 + std::max(1.2e-3, one) * (sampling.blocks * sampling.samples + 4) +
                 size * size * 2e-8;
        })
        .traced_as(TracedAs::gated_work)
        .makes<LibraryMatmul>();

}  // namespace
}  // namespace launchgap
