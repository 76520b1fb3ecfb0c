#include "harness/measure/device_work.h"

#include <memory>
#include <utility>

#include <fmt/format.h>

#include "harness/core/clock.h"
#include "harness/core/errors.h"
#include "harness/measure/benchmark.h"
#include "harness/measure/device_timer.h"

namespace launchgap {
namespace {

class TimedWork : public Case {
 public:
  TimedWork(Device& device, DeviceWork work, bool has_rate)
      : work_(std::move(work)),
        has_rate_(has_rate),
        stream_(device.create_stream()),
        timer_(device, *stream_) {
    if (work_.spoil) work_.spoil(*stream_);
    work_.enqueue(*stream_);
    stream_->wait();
    work_.check();
    operations_ = timer_.operations_for_one_ms(backend_of(device.facts()).warm_up_s,
                                               [this](int) { work_.enqueue(*stream_); });
    method_ = fmt::format("{}; {} per sample{}", work_.method, operations_, remark_on_gate(device));
  }

  void sample(Block& block) override {
    const std::int64_t begin = now_ns();
    const double device_ns = timer_.time(operations_, [this](int) { work_.enqueue(*stream_); });
    if (has_rate_) {
      block.keep(begin, device_ns, work_.amount / device_ns);
    } else {
      block.keep(begin, device_ns);
    }
  }

  int operations_per_sample() const override { return operations_; }
  void verify_timed_work() override { work_.check(); }
  std::string method() const override { return method_; }

 private:
  DeviceWork work_;
  bool has_rate_;
  std::unique_ptr<Stream> stream_;
  DeviceTimer timer_;
  int operations_ = 1;
  std::string method_;
};

}  // namespace

Benchmark BenchmarkBuilder::times(std::function<DeviceWork(const CaseContext&)> work) {
  const bool has_rate = !benchmark_.own_metrics.empty();
  std::vector<std::string_view> keys = {"device_ns"};
  if (has_rate) keys.push_back(benchmark_.own_metrics.front().key);
  metrics(std::move(keys));
  if (!benchmark_.sampling) {
    samples([](Profile profile, const CaseName&) {
      return Sampling{profile == Profile::quick ? 3 : 5, 10};
    });
  }
  benchmark_.make = [work = std::move(work), has_rate](const CaseContext& context) {
    return std::make_unique<TimedWork>(context.device, work(context), has_rate);
  };
  return benchmark_;
}

void expect_bytes(Device& device, const Buffer& buffer, unsigned char value) {
  for (const std::size_t at : {std::size_t{0}, buffer.bytes() / 2, buffer.bytes() - 1}) {
    unsigned char found = 0;
    device.read(buffer, at, &found, 1);
    if (found != value) throw WrongResult("byte {} is {} and not {}", at, found, value);
  }
}

}  // namespace launchgap
