// What a description says of the cost of launches.
#include <algorithm>
#include <array>

#include "tests/fake_cuda/node_value.h"

namespace launchgap::fake {
namespace {

/// Distributions of one object by their keys.
template <typename Owner>
struct Field {
  const char* key;
  Distribution Owner::*to;
};

constexpr Field<LaunchDescription> kTimes[] = {
    {"stream_switch_ns", &LaunchDescription::stream_switch_ns},
    {"cooperative_ns", &LaunchDescription::cooperative_ns},
    {"contended_ns", &LaunchDescription::contended_ns},
    {"module_ns", &LaunchDescription::module_ns},
    {"lazy_ns", &LaunchDescription::lazy_ns},
    {"jit_ns", &LaunchDescription::jit_ns},
    {"legacy_ns", &LaunchDescription::legacy_ns},
    {"library_call_ns", &LaunchDescription::in_library_ns},
    {"library_ns", &LaunchDescription::first_handle_ns},
};
constexpr Field<GraphDescription> kGraphTimes[] = {
    {"call_ns", &GraphDescription::call_ns},
    {"call_node_ns", &GraphDescription::call_node_ns},
    {"launch_ns", &GraphDescription::launch_ns},
    {"node_ns", &GraphDescription::node_ns},
    {"capture_node_ns", &GraphDescription::capture_node_ns},
    {"instantiate_ns", &GraphDescription::instantiate_ns},
    {"instantiate_node_ns", &GraphDescription::instantiate_node_ns},
    {"upload_ns", &GraphDescription::upload_ns},
    {"upload_node_ns", &GraphDescription::upload_node_ns},
    {"update_ns", &GraphDescription::update_ns},
    {"update_node_ns", &GraphDescription::update_node_ns},
    {"first_ns", &GraphDescription::first_ns},
};
constexpr Field<WakeDescription> kWakeTimes[] = {{"spin", &WakeDescription::spin},
                                                 {"yield", &WakeDescription::yield},
                                                 {"block", &WakeDescription::block}};
constexpr Field<RuntimeDescription> kRuntimeTimes[] = {
    {"chevron_ns", &RuntimeDescription::chevron_ns},
    {"ex_ns", &RuntimeDescription::ex_ns}};

template <typename Fields, typename Owner>
void read_times(const Value& value, const Fields& fields, Owner& owner) {
  for (const auto& [key, to] : fields) {
    if (const auto time = value.find(key)) owner.*to = time->distribution();
  }
}

/// The same of an object that has no other keys.
template <typename Fields, typename Owner>
void read_object(const Value& value, const Fields& fields, Owner& owner) {
  std::set<std::string> known;
  for (const auto& field : fields) known.insert(field.key);
  value.expect_object(known);
  read_times(value, fields, owner);
}

/// None where the description says null; at first without a key.
template <typename Fields, typename Owner>
std::optional<Owner> read_optional(const Value& device,
                                   const char* key,
                                   const Fields& fields,
                                   Owner owner) {
  const auto value = device.find(key);
  if (value && value->json().is_null()) return std::nullopt;
  if (value) read_object(*value, fields, owner);
  return owner;
}

LaunchLock read_lock(const Value& value) {
  constexpr auto expected = "\"none\", \"stream\" or \"process\"";
  const auto name = value.text(expected);
  if (name == "none") return LaunchLock::none;
  if (name == "stream") return LaunchLock::stream;
  if (name == "process") return LaunchLock::process;
  value.reject(expected);
}

void read_priorities(const Value& value, LaunchDescription& launch) {
  constexpr auto expected = "[least, greatest], the greatest being the smaller number";
  const auto ends = value.elements(expected);
  if (ends.size() != 2) value.reject(expected);
  constexpr int kMost = 1000;
  launch.least_priority = static_cast<int>(ends[0].integer(-kMost, kMost, "a priority"));
  launch.greatest_priority = static_cast<int>(ends[1].integer(-kMost, kMost, "a priority"));
  if (launch.greatest_priority > launch.least_priority) value.reject(expected);
}

std::vector<IdleDelay> read_idle(const Value& value) {
  std::vector<IdleDelay> delays;
  for (const auto& delay : value.elements("an array of {\"after_ms\":ms,\"ns\":...}")) {
    delay.expect_object({"after_ms", "ns"});
    delays.push_back({1e6 * delay.at("after_ms", "milliseconds").number(0, "milliseconds >= 0"),
                      delay.at("ns", "a distribution").distribution()});
  }
  std::ranges::sort(delays, {}, &IdleDelay::after_ns);
  return delays;
}

Ramp read_ramp(const Value& value) {
  value.expect_object({"ms", "factor", "idle_ms"});
  return {1e6 * value.at("ms", "milliseconds").number(0, "milliseconds >= 0"),
          value.at("factor", "by which it is slower").number(1, "a factor >= 1"),
          1e6 * value.number_or("idle_ms", "milliseconds >= 0", 1000)};
}

Placement read_placement(const Value& value) {
  constexpr auto expected = "an array of CPUs";
  constexpr int kMost = 1 << 20;
  value.expect_object({"cpus", "far_factor"});
  Placement placement;
  for (const auto& cpu : value.at("cpus", expected).elements(expected))
    placement.near.push_back(static_cast<int>(cpu.integer(0, kMost, "a CPU's number")));
  placement.far_factor = value.at("far_factor", "by which it is slower").number(1, "a factor >= 1");
  return placement;
}

LazyLoading read_lazy_loading(const Value& value) {
  constexpr auto expected = "\"launch\" or \"function\"";
  const auto name = value.text(expected);
  if (name == "launch") return LazyLoading::at_launch;
  if (name == "function") return LazyLoading::at_get_function;
  value.reject(expected);
}

}  // namespace

int DeviceDescription::resident_blocks(unsigned long long threads) const {
  constexpr unsigned long long kWarp = 32;
  const auto whole_warps = (threads + kWarp - 1) / kWarp * kWarp;
  const auto by_threads =
      static_cast<unsigned long long>(launch.threads_per_multiprocessor) / whole_warps;
  return static_cast<int>(std::min<unsigned long long>(
      by_threads, static_cast<unsigned long long>(launch.max_blocks_per_multiprocessor)));
}

const std::set<std::string>& launch_keys() {
  // Never destroyed: a description may be read late.
  static const auto& keys = *[] {
    auto* const all = new std::set<std::string>{"argument_ns_per_byte",
                                                "threads_per_multiprocessor",
                                                "max_blocks_per_multiprocessor",
                                                "wave_ns",
                                                "launch_lock",
                                                "queue_depth",
                                                "graph",
                                                "cooperative",
                                                "dependent_overlap_ns",
                                                "priorities",
                                                "wake_ns",
                                                "idle",
                                                "runtime",
                                                "ramp",
                                                "near",
                                                "lazy_in",
                                                "lazy_memsets",
                                                "free_holds_launches",
                                                "grid_barrier",
                                                "global_timer_ns"};
    for (const auto& field : kTimes) all->insert(field.key);
    return all;
  }();
  return keys;
}

void read_launch(const Value& value, DeviceDescription& device) {
  LaunchDescription& launch = device.launch;
  read_times(value, kTimes, launch);
  launch.argument_ns_per_byte = value.number_or("argument_ns_per_byte", "a number of ns >= 0", 0);
  launch.threads_per_multiprocessor = value.integer_or("threads_per_multiprocessor", 1024, 2048);
  launch.max_blocks_per_multiprocessor = value.integer_or("max_blocks_per_multiprocessor", 1, 32);
  launch.wave_ns = value.number_or("wave_ns", "a number of ns >= 0", 0);
  if (const auto lock = value.find("launch_lock")) launch.lock = read_lock(*lock);
  if (value.find("queue_depth")) launch.queue_depth = value.integer_or("queue_depth", 1, 1);
  GraphDescription graph;
  graph.call_ns = device.call_ns;
  graph.launch_ns = device.launch_ns;
  launch.graph = read_optional(value, "graph", kGraphTimes, graph);
  launch.cooperative = value.boolean_or("cooperative", true);
  launch.dependent_overlap_ns = value.number_or("dependent_overlap_ns", "a number of ns >= 0", 0);
  if (const auto priorities = value.find("priorities")) read_priorities(*priorities, launch);
  if (const auto wake = value.find("wake_ns")) read_object(*wake, kWakeTimes, launch.wake_ns);
  if (const auto idle = value.find("idle")) launch.idle = read_idle(*idle);
  launch.runtime = read_optional(value, "runtime", kRuntimeTimes, RuntimeDescription());
  if (const auto ramp = value.find("ramp")) launch.ramp = read_ramp(*ramp);
  if (const auto near = value.find("near")) launch.placement = read_placement(*near);
  if (const auto lazy = value.find("lazy_in")) launch.lazy_loading = read_lazy_loading(*lazy);
  launch.free_holds_launches = value.boolean_or("free_holds_launches", false);
  launch.lazy_memsets = value.boolean_or("lazy_memsets", false);
  launch.grid_barrier = value.boolean_or("grid_barrier", true);
  launch.global_timer_ns = value.number_or("global_timer_ns", "a number of ns >= 0", 0);
}

}  // namespace launchgap::fake
