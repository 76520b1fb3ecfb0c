// What everything costs that a fresh process does before its launches are as fast as usual:
// starting the driver, making a context, loading a module, and the first launch itself. A process
// is one sample.
#include "benchmarks/launching.h"
#include "harness/core/errors.h"
#include "kernels/kernels.h"

namespace launchgap {
namespace {

class FirstLaunch : public Case {
 public:
  explicit FirstLaunch(const CaseContext& context)
      : device_(context.device), loading_(context.name.at("loading")) {}

  /// Nothing has been loaded before, and the driver's and the context's start have been timed when
  /// the device was opened.
  void sample(Block& block) override {
    const std::int64_t begin = now_ns();
    stream_ = device_.create_stream();
    const std::int64_t streamed = now_ns();
    const std::int64_t loading = now_ns();
    kernel_ = device_.load(*kernels::arguments_kernel(sizeof(Argument)));
    const std::int64_t loaded = now_ns();
    // Nothing may clear this memory: the device would do that with a kernel, before the first one.
    words_ = device_.allocate(2 * sizeof(unsigned));
    value_ = static_cast<unsigned>(begin) | 1;
    const Launched first = launch(0);
    const Launched second = launch(1);
    if (!can(device_.facts(), Can::load_code)) {
      block.keep(begin, streamed - begin, first.call_ns, first.roundtrip_ns, second.roundtrip_ns);
      return;
    }
    const Opening opening = device_.opening();
    block.keep(begin,
               opening.initialise_ns.value_or(Block::kMissing),
               opening.context_ns.value_or(Block::kMissing),
               from_unknown_cache() ? Block::kMissing : static_cast<double>(loaded - loading),
               first.call_ns,
               first.roundtrip_ns,
               second.roundtrip_ns);
  }

  void verify_timed_work() override {
    unsigned words[2] = {0, 0};
    device_.read(*words_, 0, words, sizeof words);
    for (unsigned i = 0; i < 2; ++i) {
      if (words[i] != value_ + i) {
        throw WrongResult(fmt::format(
            "launch {} of a kernel that stores {} left {}", i + 1, value_ + i, words[i]));
      }
    }
  }

  std::string method() const override {
    return fmt::format("a fresh process, loading: {}", loading_);
  }

 private:
  struct Launched {
    std::int64_t call_ns, roundtrip_ns;
  };

  /// Without machine code for this device the driver compiles, and where nobody said where its
  /// cache is, whether it did so before depends on what ran on this machine.
  bool from_unknown_cache() const {
    return kernel_->compiled_by_driver() && !loading_.starts_with("jit_");
  }

  /// Of kernels/arguments.h: the last one is stored.
  struct Argument {
    unsigned* to;
    unsigned words[2];
  };

  Launched launch(unsigned word) {
    Argument value{static_cast<unsigned*>(words_->address()) + word, {0, value_ + word}};
    void* arguments[] = {&value};
    const std::int64_t called = now_ns();
    stream_->launch(*kernel_, {1, 1}, arguments);
    const std::int64_t returned = now_ns();
    stream_->wait();
    return {returned - called, now_ns() - called};
  }

  Device& device_;
  std::string loading_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Kernel> kernel_;
  std::unique_ptr<Buffer> words_;
  unsigned value_ = 0;
};

std::vector<std::string> ways(Profile, const DeviceFacts& facts) {
  if (!can(facts, Can::load_code)) return {"none"};
  return {"lazy", "eager", "jit_cached", "jit_uncached"};
}

const Registration launch_first =
    benchmark("launch/first")
        .asks("What does a fresh process pay before its launches are as fast as usual?")
        .process_axis("loading", ways, "")
        .metrics([](const CaseName& name) -> std::vector<std::string_view> {
          // The host has a thread to start in place of a context, and nothing to load.
          if (name.at("loading") == "none")
            return {"context_ns", "first_call_ns", "first_roundtrip_ns", "second_roundtrip_ns"};
          return {"initialise_ns",
                  "context_ns",
                  "module_ns",
                  "first_call_ns",
                  "first_roundtrip_ns",
                  "second_roundtrip_ns"};
        })
        .in_fresh_processes([](Profile profile) {
          return profile == Profile::quick ? 3 : profile == Profile::nightly ? 10 : 20;
        })
        .takes([](const DeviceFacts&, const CaseName&, Sampling) { return 0.3; })
        .one_device_at_a_time()
        .makes<FirstLaunch>();

}  // namespace
}  // namespace launchgap
