// Whether a product has the same bits each time: again in one stream, in several streams at once,
// and with another workspace. Its hash is kept, so that processes can be compared.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "benchmarks/operands.h"
#include "benchmarks/products.h"
#include "harness/core/clock.h"
#include "harness/core/errors.h"
#include "harness/core/plan.h"
#include "harness/core/result_bits.h"
#include "harness/core/text.h"
#include "harness/device/shape_text.h"
#include "harness/measure/fill.h"

namespace launchgap {
namespace {

constexpr int kTimesAgain = 8;
constexpr int kStreams = 4;
constexpr int kRounds = 2;
/// From what cuBLAS takes at least, by its documentation of cublasSetWorkspace, to what NVIDIA
/// recommends for the largest GPUs.
constexpr std::size_t kWorkspaces[] = {16 << 10, 4 << 20, 32 << 20};

/// The shape whose sums libraries split most.
constexpr const char* kMostSplit = "64x64x16384";

MatmulShape shape_of_bits(const CaseName& name) {
  MatmulShape shape = matmul_shape(name.at("shape"));
  shape.type = product_type(name.at("type"));
  return shape;
}

/// Results of one product, told apart by their bits.
class DistinctResults {
 public:
  explicit DistinctResults(kernels::ElementType type) : type_(type) {}

  /// Whether it is one that was not there before. `what` says which result it is.
  bool add(std::vector<unsigned char> result, const std::string& what) {
    ++results_;
    if (!distinct_.empty() && result != distinct_.front() &&
        std::ranges::find(different_, what) == different_.end())
      different_.push_back(what);
    if (std::ranges::find(distinct_, result) != distinct_.end()) return false;
    for (const auto& other : distinct_)
      largest_difference_ = std::max(largest_difference_, difference(other, result));
    distinct_.push_back(std::move(result));
    return true;
  }

  ResultBits told(const std::string& case_name) const {
    return {case_name,
            results_,
            static_cast<int>(distinct_.size()),
            hash(distinct_.front()),
            largest_difference_,
            fmt::format("{}", fmt::join(different_, ", "))};
  }

 private:
  /// Fowler, Noll and Vo: the offset basis and the prime of 64 bits.
  static std::string hash(const std::vector<unsigned char>& bytes) {
    std::uint64_t value = 0xcbf29ce484222325u;
    for (const unsigned char byte : bytes) value = (value ^ byte) * 0x100000001b3u;
    return fmt::format("{:016x}", value);
  }

  double difference(const std::vector<unsigned char>& a,
                    const std::vector<unsigned char>& b) const {
    double largest = 0, magnitude = 0;
    for (std::size_t i = 0; i < a.size() / kernels::element_bytes(type_); ++i) {
      const double x = kernels::load_element(a.data(), i, type_),
                   y = kernels::load_element(b.data(), i, type_);
      largest = std::max(largest, std::abs(x - y));
      magnitude = std::max({magnitude, std::abs(x), std::abs(y)});
    }
    return magnitude > 0 ? largest / magnitude : 0;
  }

  kernels::ElementType type_;
  std::vector<std::vector<unsigned char>> distinct_;
  std::vector<std::string> different_;
  int results_ = 0;
  double largest_difference_ = 0;
};

/// Computes a product in one way after the other, and whole results of integers before.
class ProductBits : public Case {
 public:
  explicit ProductBits(const CaseContext& context)
      : device_(context.device),
        case_name_(context.name.text()),
        variant_(context.name.at("variant")),
        seed_(context.seed),
        shape_(shape_of_bits(context.name)),
        results_(shape_.type.c) {
    operand_sets(
        device_, "warm", shape_.a_bytes() + shape_.b_bytes() + kStreams * shape_.c_bytes());
    a_ = device_.allocate(shape_.a_bytes());
    b_ = device_.allocate(shape_.b_bytes());
    const int lanes = in_several_streams() ? kStreams : 1;
    for (int i = 0; i < lanes; ++i) {
      lanes_.push_back({device_.create_stream(), device_.allocate(shape_.c_bytes()), {}, {}});
      if (i == 0 || variant_ == "streams_own")
        lanes_[i].matmul = device_.matmul(*lanes_[i].stream, shape_);
      // The host's queues need no gate: a call returns long before its work is done.
      if (in_several_streams() && is_gpu(device_.facts()) && device_.kernels_may_wait())
        lanes_[i].gate = std::make_unique<Gate>(device_, *lanes_[i].stream);
    }
    method_ = first().matmul->method();

    const InputSeeds exact = fill_operands(kernels::Distribution::small_integer);
    const ExactProduct product(shape_, exact);
    compute([&](const Lane& lane, const std::string&) { product.verify(device_, *lane.c); });
    const InputSeeds timed = fill_operands(kernels::Distribution::uniform);
    compute([&](const Lane& lane, const std::string& what) {
      std::vector<unsigned char> result(shape_.c_bytes());
      device_.read(*lane.c, 0, result.data(), result.size());
      if (results_.add(std::move(result), what))
        verify_timed_matmul(device_, *lane.c, shape_, timed);
    });
  }

  void sample(Block& block) override { block.keep(now_ns(), results_.told(case_name_).distinct); }

  std::optional<ResultBits> bits() const override { return results_.told(case_name_); }

  std::string method() const override { return fmt::format("{}; {}", method_, way()); }

 private:
  struct Lane {
    std::unique_ptr<Stream> stream;
    std::unique_ptr<Buffer> c;
    std::unique_ptr<Matmul> matmul;  // none: that of the first lane
    std::unique_ptr<Gate> gate;
  };

  Lane& first() { return lanes_.front(); }
  bool in_several_streams() const { return variant_.starts_with("streams_"); }

  std::string way() const {
    const std::string alone = "once alone, then ";
    if (variant_ == "again") return fmt::format("{} times in one stream", kTimesAgain);
    if (variant_ == "workspace")
      return alone + fmt::format("{} times with each of {} sizes of the workspace",
                                 kRounds,
                                 std::size(kWorkspaces));
    return alone +
           fmt::format("{} times in {} streams at once, {}",
                       kRounds,
                       kStreams,
                       variant_ == "streams_own" ? "a handle and a workspace of its own for each"
                       : waits_ ? "one handle for all with the library's own workspace, which "
                                  "waits from stream to stream"
                                : "one handle for all with the library's own workspace");
  }

  InputSeeds fill_operands(kernels::Distribution distribution) {
    const InputSeeds seeds{
        derive_seed(seed_, "first"),
        derive_seed(seed_, "second"),
        distribution,
        distribution == kernels::Distribution::small_integer ? exact_step(shape_) : 1};
    fill(device_, *first().stream, *a_, seeds.first, shape_.type.a, distribution, seeds.step);
    fill(device_, *first().stream, *b_, seeds.second, shape_.type.b, distribution);
    return seeds;
  }

  /// A result that was never written must not pass for one.
  void spoil(Lane& lane) {
    lane.stream->fill_bytes(
        lane.c->address(), kernels::unwritten_byte(shape_.type.c), lane.c->bytes());
    lane.stream->wait();
  }

  /// Every result of the variant; `use(lane, what)` when one is there.
  template <class Use>
  void compute(const Use& use) {
    const auto alone = [&](Matmul& matmul, const std::string& what) {
      spoil(first());
      matmul.enqueue(*a_, *b_, *first().c);
      first().stream->wait();
      device_.check();
      use(first(), what);
    };
    if (variant_ == "again") {
      for (int i = 0; i < kTimesAgain; ++i)
        alone(*first().matmul, fmt::format("product {}", i + 1));
      return;
    }
    // A library's object of its own, since that of the first lane may have changed.
    alone(*device_.matmul(*first().stream, shape_), "alone");
    for (int round = 0; round < kRounds; ++round) {
      if (variant_ == "workspace") {
        for (const std::size_t bytes : kWorkspaces) {
          first().matmul->set_workspace(bytes);
          alone(*first().matmul, bytes_text(static_cast<double>(bytes)));
        }
      } else {
        at_once();
        for (std::size_t i = 0; i < lanes_.size(); ++i)
          use(lanes_[i], fmt::format("stream {}", i + 1));
      }
    }
  }

  void at_once() {
    for (Lane& lane : lanes_) spoil(lane);
    for (Lane& lane : lanes_) {
      if (lane.gate) lane.gate->close();
    }
    for (Lane& lane : lanes_) {
      if (variant_ == "streams_shared") first().matmul->move_to(*lane.stream);
      (lane.matmul && variant_ == "streams_own" ? *lane.matmul : *first().matmul)
          .enqueue(*a_, *b_, *lane.c);
    }
    for (Lane& lane : lanes_) {
      if (lane.gate) lane.gate->open();
    }
    for (Lane& lane : lanes_) lane.stream->wait();
    device_.check();
    const auto timed_out = [](const Lane& lane) { return lane.gate && lane.gate->timed_out(); };
    if (std::ranges::none_of(lanes_, timed_out)) return;
    if (variant_ != "streams_shared") throw GateTimedOut(kStreams);
    // The library waits for what its handle has in one stream before it computes in another (seen
    // with cuBLAS 13.1): behind no gate it can.
    for (Lane& lane : lanes_) lane.gate.reset();
    waits_ = true;
    at_once();
  }

  Device& device_;
  std::string case_name_, variant_;
  std::uint64_t seed_;
  MatmulShape shape_;
  DistinctResults results_;
  std::unique_ptr<Buffer> a_, b_;
  std::vector<Lane> lanes_;
  std::string method_;
  bool waits_ = false;  // the library's one handle, when it changes the stream
};

const Registration matmul_bits =
    benchmark("matmul/bits")
        .asks("Does a product have the same bits each time?")
        .axis("shape",
              "m x n x k (docs/shapes.md): with few results of many terms each, which libraries "
              "split, and a square of results",
              [](Profile profile, const DeviceFacts&) {
                std::vector<std::string> shapes = {kMostSplit, "512x512x1024"};
                if (profile == Profile::full) shapes.emplace_back("16x4096x4096");
                return shapes;
              })
        .axis("type",
              product_type_meaning,
              [](Profile, const DeviceFacts& facts) {
                if (!is_gpu(facts)) return std::vector<std::string>{"fp32", "bf16"};
                return std::vector<std::string>{"fp32", "tf32", "fp16", "bf16"};
              })
        .axis("variant",
              "what is done besides computing it alone: `again`: it is computed 8 times in one "
              "stream; "
              "`streams_own`: in 4 streams at once, each with a handle and a workspace of its own; "
              "`streams_shared`: in 4 streams at once by one handle, which then has the library's "
              "own workspace; `workspace`: with 16 KiB, 4 MiB and 32 MiB of workspace",
              {"again", "streams_own", "streams_shared", "workspace"})
        .only([](Profile profile, const DeviceFacts& facts, const CaseName& name) {
          if (profile != Profile::nightly) return profile == Profile::full;
          const std::string& type = name.at("type");
          return (type == "fp32" || type == (is_gpu(facts) ? "fp16" : "bf16")) &&
                 (name.at("shape") == kMostSplit || name.at("variant") == "again");
        })
        .brings(derived_ratio("distinct_results",
                              "How many results of the same operands differ in a bit, in one "
                              "process; 1: all are equal.",
                              "what processes differ in: bits.csv has it",
                              "the number of distinct results"))
        .metrics({"distinct_results"})
        .samples({1, 1})
        .takes([](const DeviceFacts& facts, const CaseName& name, Sampling) {
          // Two passes of some ten results, each filled before and read whole.
          return 0.1 + 4 * product_seconds(facts, shape_of_bits(name), {1, 5});
        })
        .untraced()
        .makes<ProductBits>();

}  // namespace
}  // namespace launchgap
