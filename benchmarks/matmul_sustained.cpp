// A product over and over without a pause: what a device keeps up, and what it only begins with
// before power and heat lower its clock. Telemetry has the energy and the clocks of each block.
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "benchmarks/products.h"
#include "harness/summary/adviser.h"

namespace launchgap {
namespace {

constexpr double kSustainedNs = 2e9;
constexpr double kEdgeNs = 1e8;

class SustainedProduct : public Case {
 public:
  explicit SustainedProduct(const CaseContext& context)
      : device_(context.device),
        stream_(device_.create_stream()),
        product_(make_product(device_,
                              *stream_,
                              context.seed,
                              MatmulShape::square(static_cast<int>(context.name.number("size")),
                                                  product_type(context.name.at("type"))))) {
    for (auto& event : events_) event = device_.create_event();
    product_->prepare(*stream_, kernels::Distribution::uniform);
    DeviceTimer timer(device_, *stream_);
    // A part is long enough for the host to enqueue the next one meanwhile.
    operations_ = 10 * timer.operations_for_one_ms(0, [this](int) { product_->enqueue_next(); });
  }

  /// One part is always enqueued behind the one that runs, so that the device never waits; and
  /// there is no gate, which would let it rest.
  void sample(Block& block) override {
    const std::int64_t begin = now_ns();
    std::vector<double> parts;
    stream_->record(*events_[0]);
    double total = 0;
    for (std::size_t i = 1; total < kSustainedNs; ++i) {
      for (int j = 0; j < operations_; ++j) product_->enqueue_next();
      stream_->record(event(i));
      if (i < 2) continue;
      event(i - 1).wait();
      parts.push_back(device_.elapsed_ns(event(i - 2), event(i - 1)));
      total += parts.back();
    }
    stream_->wait();
    block.keep(begin,
               total / static_cast<double>(parts.size()) / operations_,
               rate(parts.begin(), parts.end(), kSustainedNs),
               rate(parts.begin(), parts.end(), kEdgeNs),
               rate(parts.rbegin(), parts.rend(), kEdgeNs));
  }

  void verify_timed_work() override { product_->verify_sample(); }
  std::string method() const override {
    return fmt::format("{}; without a pause, {} between events", product_->method(), operations_);
  }

 private:
  Event& event(std::size_t i) { return *events_[i % events_.size()]; }

  /// TFLOP/s of the first parts, as many as take `most_ns`.
  template <class Iterator>
  double rate(Iterator part, Iterator end, double most_ns) const {
    double ns = 0, count = 0;
    for (; part != end && ns < most_ns; ++part, ++count) ns += *part;
    return product_->operations() * operations_ * count / ns * 1e-3;
  }

  Device& device_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Operation> product_;
  std::array<std::unique_ptr<Event>, 3> events_;
  int operations_ = 1;
};

void advise_on_sustained(Adviser& adviser) {
  std::vector<Comparison> comparisons;
  for (const std::string& type : adviser.rows.values({}, "last_tflops", "type")) {
    const Params which = {{"type", type}};
    if (const auto comparison = compare(adviser.rows.find(which, "last_tflops"),
                                        adviser.rows.find(which, "first_tflops")))
      comparisons.push_back(*comparison);
  }
  adviser.judge(comparisons,
                {.of = "of a product after 2 s without a pause",
                 .than = "of its first 100 ms",
                 .if_more = "Products get faster while they run: warm the device up for seconds "
                            "before you compare",
                 .if_less = "Reckon with what the device keeps up, and not with its first moments",
                 .if_same = "Two seconds without a pause change nothing",
                 .less = Severity::note});
}

const Registration matmul_sustained =
    benchmark("matmul/sustained")
        .asks("What does the device keep up when products follow one another for seconds?")
        .axis("size",
              "rows and columns of the square matrices",
              [](Profile, const DeviceFacts& facts) {
                return std::vector<std::string>{is_gpu(facts) ? "4096" : "1024"};
              })
        .axis("type",
              product_type_meaning,
              [](Profile, const DeviceFacts& facts) {
                return is_gpu(facts) ? std::vector<std::string>{"fp32", "bf16"}
                                     : std::vector<std::string>{"fp32"};
              })
        .only([](Profile profile, const DeviceFacts&, const CaseName&) {
          return profile != Profile::quick;
        })
        .brings({"first_tflops",
                 "TFLOP/s",
                 Direction::higher_is_better,
                 "events",
                 "The rate of the first 100 ms of 2 s without a pause.",
                 "launching",
                 "the rate"})
        .brings({"last_tflops",
                 "TFLOP/s",
                 Direction::higher_is_better,
                 "events",
                 "The rate of the last 100 ms of 2 s without a pause.",
                 "launching",
                 "the rate"})
        .metrics({"device_ns", "tflops", "first_tflops", "last_tflops"})
        .advises(advise_on_sustained)
        .samples([](Profile profile, const CaseName&) {
          return Sampling{profile == Profile::full ? 3 : 1, 1};
        })
        .takes([](const DeviceFacts& facts, const CaseName& name, Sampling sampling) {
          const MatmulShape shape = MatmulShape::square(static_cast<int>(name.number("size")),
                                                        product_type(name.at("type")));
          return product_seconds(facts, shape, {1, 1}) + 2.1 * sampling.blocks * sampling.samples;
        })
        .untraced()
        .makes<SustainedProduct>();

}  // namespace
}  // namespace launchgap
