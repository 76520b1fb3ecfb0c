// What a node description says of the cost of launches.
#pragma once

#include <optional>
#include <vector>

#include "harness/record/field_rules.h"
#include "tests/fake_cuda/distribution.h"

namespace launchgap::fake {

/// What graphs cost.
struct GraphDescription {
  std::optional<Distribution> call_ns, launch_ns;  // none: the device's
  Distribution call_node_ns, node_ns, capture_node_ns, instantiate_ns, instantiate_node_ns,
      upload_ns, upload_node_ns, update_ns, update_node_ns, first_ns;

  static void fields(auto& self, auto&& field) {
    field("call_ns", self.call_ns);
    field("launch_ns", self.launch_ns);
    field.optional("call_node_ns", self.call_node_ns);
    field.optional("node_ns", self.node_ns);
    field.optional("capture_node_ns", self.capture_node_ns);
    field.optional("instantiate_ns", self.instantiate_ns);
    field.optional("instantiate_node_ns", self.instantiate_node_ns);
    field.optional("upload_ns", self.upload_ns);
    field.optional("upload_node_ns", self.upload_node_ns);
    field.optional("update_ns", self.update_ns);
    field.optional("update_node_ns", self.update_node_ns);
    field.optional("first_ns", self.first_ns);
  }
};

/// What the runtime's ways to launch add to the driver's.
struct RuntimeDescription {
  Distribution chevron_ns, ex_ns;

  static void fields(auto& self, auto&& field) {
    field.optional("chevron_ns", self.chevron_ns);
    field.optional("ex_ns", self.ex_ns);
  }
};

/// By how much later a kernel begins when the device had nothing to do for so long.
struct IdleDelay {
  double after_ms = 0;
  Distribution ns;

  static void fields(auto& self, auto&& field) {
    field("after_ms", self.after_ms, at_least(0));
    field("ns", self.ns);
  }
};

/// After idleness everything is slower at first: by `factor`, and less and less until `ms` are
/// over.
struct Ramp {
  double ms = 0;
  double factor = 1;
  double idle_ms = 1000;  // idleness that brings it back; a process begins with it

  static void fields(auto& self, auto&& field) {
    field("ms", self.ms, at_least(0));
    field("factor", self.factor, at_least(1));
    field.optional("idle_ms", self.idle_ms, at_least(0));
  }
};

/// Which CPUs are near the GPU: a context that is made where others may be used is slower.
struct Placement {
  std::vector<unsigned> cpus;
  double far_factor = 1;

  static void fields(auto& self, auto&& field) {
    field("cpus", self.cpus, between(0, 1 << 20));
    field("far_factor", self.far_factor, at_least(1));
  }
};

/// When the driver loads a function lazily.
enum class LazyLoading { at_launch, at_get_function };

/// What the end of a wait takes longer, by how it waits.
struct WakeDescription {
  Distribution spin, yield, block;

  static void fields(auto& self, auto&& field) {
    field.optional("spin", self.spin);
    field.optional("yield", self.yield);
    field.optional("block", self.block);
  }
};

/// Whose launching calls wait for each other.
enum class LaunchLock { none, stream, process };

/// What happens to the calling thread, for real: it sleeps, touches new pages, moves to another
/// CPU.
enum class HiccupSign { none, sleep, fault, move };

/// Launching calls take longer at times, of which the calling thread sees a sign.
struct Hiccup {
  double every = 100;  // launching calls, on average
  Distribution ns;     // how much longer the call takes
  HiccupSign sign = HiccupSign::none;

  static void fields(auto& self, auto&& field) {
    field("every", self.every, at_least(1));
    field("ns", self.ns);
    field.optional("sign",
                   self.sign,
                   Names<HiccupSign>{{{"none", HiccupSign::none},
                                      {"sleep", HiccupSign::sleep},
                                      {"fault", HiccupSign::fault},
                                      {"move", HiccupSign::move}}});
  }
};

/// What makes a launch cost more than the simplest one: keys of the device.
struct LaunchDescription {
  double argument_ns_per_byte = 0;
  int threads_per_multiprocessor = 2048;
  int max_blocks_per_multiprocessor = 32;
  double wave_ns = 0;
  Distribution stream_switch_ns;
  LaunchLock lock = LaunchLock::none;
  std::optional<int> queue_depth;
  std::optional<GraphDescription> graph = GraphDescription();  // none: the driver has no graphs
  bool cooperative = true;
  Distribution cooperative_ns;
  double dependent_overlap_ns = 0;
  std::vector<short> priorities = {0, -5};  // the least and the greatest
  Distribution contended_ns;
  WakeDescription wake_ns;
  std::vector<IdleDelay> idle;
  Distribution module_ns, lazy_ns, jit_ns, legacy_ns, in_library_ns;
  std::optional<RuntimeDescription> runtime = RuntimeDescription();  // none: too old for it
  std::optional<Ramp> ramp;
  std::optional<Placement> placement;
  LazyLoading lazy_loading = LazyLoading::at_launch;
  bool grid_barrier = true;          // holds back who comes first
  bool free_holds_launches = false;  // while cuMemFree waits, no other thread launches
  bool lazy_memsets =
      false;  // a context's first memset loads its kernel, which waits for the device
  std::vector<Hiccup> hiccups;
  double global_timer_ns = 0;    // steps of the clock by which kernels wait; 0: none
  Distribution first_handle_ns;  // a library's first handle

  static void fields(auto& self, auto&& field) {
    field.optional("argument_ns_per_byte", self.argument_ns_per_byte, at_least(0));
    field.optional("threads_per_multiprocessor", self.threads_per_multiprocessor, at_least(1024));
    field.optional(
        "max_blocks_per_multiprocessor", self.max_blocks_per_multiprocessor, at_least(1));
    field.optional("hiccups", self.hiccups);
    field.optional("wave_ns", self.wave_ns, at_least(0));
    field.optional("stream_switch_ns", self.stream_switch_ns);
    field.optional("launch_lock",
                   self.lock,
                   Names<LaunchLock>{{{"none", LaunchLock::none},
                                      {"stream", LaunchLock::stream},
                                      {"process", LaunchLock::process}}});
    field("queue_depth", self.queue_depth, at_least(1));
    field.optional("graph", self.graph);
    field.optional("cooperative", self.cooperative);
    field.optional("cooperative_ns", self.cooperative_ns);
    field.optional("dependent_overlap_ns", self.dependent_overlap_ns, at_least(0));
    field.optional("priorities", self.priorities, between(-1000, 1000));
    field.optional("contended_ns", self.contended_ns);
    field.optional("wake_ns", self.wake_ns);
    field.optional("idle", self.idle);
    field.optional("module_ns", self.module_ns);
    field.optional("lazy_ns", self.lazy_ns);
    field.optional("jit_ns", self.jit_ns);
    field.optional("legacy_ns", self.legacy_ns);
    field.optional("library_call_ns", self.in_library_ns);
    field.optional("library_ns", self.first_handle_ns);
    field.optional("runtime", self.runtime);
    field("ramp", self.ramp);
    field("near", self.placement);
    field.optional("lazy_in",
                   self.lazy_loading,
                   Names<LazyLoading>{{{"launch", LazyLoading::at_launch},
                                       {"function", LazyLoading::at_get_function}}});
    field.optional("grid_barrier", self.grid_barrier);
    field.optional("free_holds_launches", self.free_holds_launches);
    field.optional("lazy_memsets", self.lazy_memsets);
    field.optional("global_timer_ns", self.global_timer_ns, at_least(0));
  }
};

}  // namespace launchgap::fake
