// What the benchmarks of the launch family share.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "harness/measure/benchmark.h"

namespace launchgap {

/// Launches in flight at once: a quarter of what CUDA's launch queue holds, about 1,024, so that
/// none waits for room.
inline constexpr int kBurst = 256;

/// What a program does between its launches.
inline void spin_until(std::int64_t time_ns) {
  while (now_ns() < time_ns) {
  }
}

/// The way by which a device's launches go.
inline std::vector<std::string> launching_api(Profile, const DeviceFacts& facts) {
  return {std::string(backend_of(facts).launch_api)};
}

inline constexpr const char* launching_api_meaning =
    "the device's own way: `driver`, the GPU driver's launch call; `queue`, the host device's "
    "queue";

/// How a kernel that was loaded is launched: "native kernel through the CUDA driver API".
std::string launch_method(const Kernel& kernel, const DeviceFacts& facts);

/// Launches of a kernel that counts must each run once and in order, or their times mean nothing.
/// Throws WrongResult. `launch` launches it with the arguments that it is given.
void verify_launches(Device& device,
                     Stream& stream,
                     int launches,
                     const std::function<void(const Kernel& counting, void** arguments)>& launch);
/// The same with Stream::launch.
void verify_launches(Device& device, Stream& stream);

/// The axis `mode`: `idle`, launch and wait, each time; `burst`, kBurst launches and one wait.
inline bool is_burst(const CaseName& name) {
  return name.at("mode") == "burst";
}
std::string mode_meaning();

/// The modes with the metric that says most of each.
struct LaunchMode {
  const char* name;
  const char* metric;
};
inline constexpr LaunchMode kModes[] = {{"idle", "api_ns"}, {"burst", "per_launch_ns"}};

std::vector<std::string_view> metrics_by_mode(const CaseName& name);
TracedAs traced_by_mode(const CaseName& name);
/// About `seconds` for either mode, at 4 us a launch.
double seconds_by_mode(const DeviceFacts&, const CaseName& name, Sampling sampling);

/// One launch on an idle stream.
struct IdleTimes {
  std::int64_t begin_ns, api_ns, roundtrip_ns;
};
template <class Launch, class Wait>
IdleTimes time_idle(Launch&& launch, Wait&& wait) {
  const std::int64_t called = now_ns();
  launch();
  const std::int64_t returned = now_ns();
  wait();
  const std::int64_t waited = now_ns();
  return {called, returned - called, waited - called};
}

/// The same, kept as api_ns and roundtrip_ns.
template <class Launch, class Wait>
void sample_idle(Block& block, Launch&& launch, Wait&& wait) {
  const IdleTimes times = time_idle(launch, wait);
  block.keep(times.begin_ns, times.api_ns, times.roundtrip_ns);
}

/// `launches` launches and one wait: the time for each.
struct BurstTimes {
  std::int64_t begin_ns;
  double per_launch_ns;
};
template <class Launch, class Wait>
BurstTimes time_burst(int launches, Launch&& launch, Wait&& wait) {
  const std::int64_t begin = now_ns();
  for (int i = 0; i < launches; ++i) launch(i);
  wait();
  const std::int64_t end = now_ns();
  return {begin, static_cast<double>(end - begin) / launches};
}

/// The same, kept as per_launch_ns.
template <class Launch, class Wait>
void sample_burst(Block& block, int launches, Launch&& launch, Wait&& wait) {
  const BurstTimes times = time_burst(launches, launch, wait);
  block.keep(times.begin_ns, times.per_launch_ns);
}

/// A case that launches one kernel in the mode that its name says. `launch` is called with nothing.
template <class Launch>
void sample_by_mode(Block& block, bool burst, Stream& stream, Launch&& launch) {
  if (burst) {
    sample_burst(
        block, kBurst, [&](int) { launch(); }, [&] { stream.wait(); });
  } else {
    sample_idle(block, launch, [&] { stream.wait(); });
  }
}

/// Samples that are not kept at the start of each block.
inline int warm_up_by_mode(bool burst) {
  return burst ? 2 : 50;
}

/// Launches of a kernel that does nothing: one after the other with a wait each, or in bursts.
class NullLaunch : public Case {
 public:
  NullLaunch(Device& device, bool burst, LaunchShape shape = {1, 1});
  void sample(Block& block) override;
  int warm_up_samples() const override { return warm_up_by_mode(burst_); }
  int operations_per_sample() const override { return burst_ ? kBurst : 1; }
  std::string method() const override { return method_; }

 protected:
  Device& device_;
  std::unique_ptr<Kernel> kernel_;

 private:
  std::unique_ptr<Stream> stream_;
  bool burst_;
  LaunchShape shape_;
  std::string method_;
};

/// Throws Unsupported unless the process may use so many CPUs.
void need_cpus(const Device& device, std::size_t cpus, std::string_view what);

}  // namespace launchgap
