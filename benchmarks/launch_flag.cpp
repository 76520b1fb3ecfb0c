// A launch as the host itself can see it: by a value that the kernel writes to host memory. It
// needs neither events nor tracing, so it checks what tracing says.
#include <atomic>

#include <fmt/format.h>

#include "benchmarks/launching.h"
#include "harness/core/errors.h"
#include "kernels/kernels.h"

namespace launchgap {
namespace {

constexpr std::int64_t kTimeoutNs = 2'000'000'000;
constexpr unsigned kRounds = 31;

/// A word of memory that host and kernels share. Each is in a buffer, and so a page, of its own.
class SharedWord {
 public:
  explicit SharedWord(Device& device)
      : buffer_(device.allocate_shared(sizeof(unsigned))),
        device_address_(device.device_address(*buffer_)) {
    write(0);
  }
  void* device_address() const { return device_address_; }
  void write(unsigned value) { word().store(value, std::memory_order_release); }

  /// Polls until the word has the value; throws InvalidMeasurement if it does not come.
  void await(unsigned value) const {
    constexpr int kLooksPerClock = 1024;  // reading the clock costs as much as a few dozen looks
    const std::int64_t begin = now_ns();
    for (;;) {
      for (int i = 0; i < kLooksPerClock; ++i) {
        if (word().load(std::memory_order_acquire) == value) return;
      }
      if (now_ns() - begin > kTimeoutNs) {
        throw InvalidMeasurement(
            "the host waited {} s for a kernel to write {} to mapped memory and still sees {}",
            kTimeoutNs / 1'000'000'000,
            value,
            word().load());
      }
    }
  }

 private:
  std::atomic_ref<unsigned> word() const {
    return std::atomic_ref<unsigned>(*static_cast<unsigned*>(buffer_->address()));
  }

  std::unique_ptr<Buffer> buffer_;
  void* device_address_;
};

/// Before memory goes that kernels may still use, after a sample that failed.
void wait_quietly(Stream& stream) {
  try {
    stream.wait();
  } catch (const std::exception&) {
    // Reported where it happened.
  }
}

class FlagLaunch : public Case {
 public:
  explicit FlagLaunch(const CaseContext& context)
      : stream_(context.device.create_stream()),
        kernel_(context.device.load(kernels::flag_kernel)),
        flag_(context.device),
        method_(launch_method(*kernel_, context.device.facts())) {
    for (int i = 0; i < kWarmUpLaunches; ++i) launch_and_wait();
  }

  ~FlagLaunch() override { wait_quietly(*stream_); }

  void sample(Block& block) override {
    void* address = flag_.device_address();
    unsigned value = ++value_;
    void* arguments[] = {&address, &value};
    const std::int64_t called = now_ns();
    stream_->launch(*kernel_, {1, 1}, arguments);
    flag_.await(value);
    const std::int64_t seen = now_ns();
    stream_->wait();
    block.keep(called, seen - called);
  }

  int warm_up_samples() const override { return 50; }
  std::string method() const override { return method_; }

 private:
  static constexpr int kWarmUpLaunches = 500;

  void launch_and_wait() {
    Block ignored({"flag_ns"}, 1);
    sample(ignored);
  }

  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Kernel> kernel_;
  SharedWord flag_;
  std::string method_;
  unsigned value_ = 0;
};

class FlagEcho : public Case {
 public:
  explicit FlagEcho(const CaseContext& context)
      : stream_(context.device.create_stream()),
        kernel_(context.device.load(kernels::echo_kernel)),
        ping_(context.device),
        pong_(context.device),
        method_(fmt::format("{} kernel that polls mapped memory", kernel_->form())) {
    if (!context.device.kernels_may_wait()) {
      throw Unsupported(
          "its kernel waits for the host, and under a tool the host may wait for the kernel");
    }
  }

  ~FlagEcho() override { wait_quietly(*stream_); }

  /// The first round waits for the kernel to begin and is not timed.
  void sample(Block& block) override {
    ping_.write(0);
    pong_.write(0);
    void* ping = ping_.device_address();
    void* pong = pong_.device_address();
    unsigned rounds = kRounds + 1;
    unsigned long long timeout_ns = kTimeoutNs;
    void* arguments[] = {&ping, &pong, &rounds, &timeout_ns};
    stream_->launch(*kernel_, {1, 1}, arguments);
    round(1);
    const std::int64_t begin = now_ns();
    for (unsigned i = 2; i <= rounds; ++i) round(i);
    const std::int64_t end = now_ns();
    stream_->wait();
    block.keep(begin, static_cast<double>(end - begin) / kRounds);
  }

  int warm_up_samples() const override { return 5; }
  std::string method() const override { return method_; }

 private:
  void round(unsigned value) {
    ping_.write(value);
    pong_.await(value);
  }

  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Kernel> kernel_;
  SharedWord ping_, pong_;
  std::string method_;
};

const Registration flag_launch =
    benchmark("launch/flag")
        .asks("How long after the launch call does the host see what the kernel wrote?")
        .axis("api", launching_api_meaning, launching_api)
        .brings(
            host_time("flag_ns",
                      "From the start of the launch call until the host sees what the kernel wrote "
                      "to pinned host memory that is mapped, on an idle stream. A cross-check of "
                      "launch_ns that needs no tracing; it includes the way back.",
                      "the wait, which follows"))
        .metrics({"flag_ns"})
        .samples({5, 200}, {10, 500})
        .takes(0.05, 2e-5)
        .one_device_at_a_time()
        .traced_as(TracedAs::launch)
        .makes<FlagLaunch>();

const Registration flag_echo =
    benchmark("launch/echo")
        .asks("How long do a value to the device and its answer travel, without a launch?")
        .axis("api", launching_api_meaning, launching_api)
        .brings(host_time(
            "echo_ns",
            fmt::format(
                "A value written to pinned host memory that is mapped until the answer of a kernel "
                "that was waiting for it: there and back, without a launch. Mean of {} rounds.",
                kRounds),
            "a launch"))
        .metrics({"echo_ns"})
        .samples({3, 20}, {5, 50})
        .takes(0.05, 1e-4)
        .one_device_at_a_time()
        .makes<FlagEcho>();

}  // namespace
}  // namespace launchgap
