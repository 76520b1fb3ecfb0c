// The node description: what the fake libraries pretend to be. docs/fake-node.md documents every
// key.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/fake_cuda/distribution.h"

namespace launchgap::fake {

enum class Library { cuda, cublas, cudnn, cupti, nvml };

/// What NVML says of a device.
struct NvmlDescription {
  std::string uuid;  // the device's
  int pstate = 0;
  int sm_clock_mhz = 0;
  int memory_clock_mhz = 0;
  int temperature_c = 40;
  int power_mw = 100'000;
  unsigned long long reasons = 0;
  // Of the time since the driver was loaded.
  double sw_power_cap_share = 0;
  double sw_thermal_share = 0;
  double hw_thermal_share = 0;
  double hw_power_brake_share = 0;
  int pcie_generation = 4;
  int pcie_width = 16;
  int pcie_replays = 0;
  std::vector<unsigned> processes;  // besides the caller
  std::size_t memory_used_bytes = 0;
  int compute_mode = 0;  // cuda::nvml::ComputeMode
  bool persistence = true;
  std::string vbios = "92.00.45.00.03";
  std::optional<int> mig_instances;  // none: not partitioned
  bool ecc = true;
  long long uncorrected_ecc_errors = 0;
  bool remap_pending = false, remap_failed = false;
  int max_pcie_generation = 4;
  int max_pcie_width = 16;
  int max_sm_clock_mhz = 0;
  int application_clock_mhz = 0;
  int power_limit_mw = 400'000, default_power_limit_mw = 400'000;
  int fabric = 0;  // cuda::nvml::FabricState
  std::set<std::string, std::less<>> missing_calls;
  std::set<unsigned> missing_fields;
};

/// What graphs cost.
struct GraphDescription {
  Distribution call_ns, call_node_ns, launch_ns, node_ns, capture_node_ns, instantiate_ns,
      instantiate_node_ns, upload_ns, upload_node_ns, update_ns, update_node_ns, first_ns;
};

/// What the runtime's ways to launch add to the driver's.
struct RuntimeDescription {
  Distribution chevron_ns, ex_ns;
};

/// By how much later a kernel begins when the device had nothing to do for so long.
struct IdleDelay {
  double after_ns = 0;
  Distribution ns;
};

/// After idleness everything is slower at first: by `factor`, and less and less until `ns` are
/// over.
struct Ramp {
  double ns = 0;
  double factor = 1;
  double idle_ns = 0;  // idleness that brings it back; a process begins with it
};

/// Which CPUs are near the GPU: a context that is made where others may be used is slower.
struct Placement {
  std::vector<int> near;
  double far_factor = 1;
};

/// When the driver loads a function lazily.
enum class LazyLoading { at_launch, at_get_function };

/// What the end of a wait takes longer, by how it waits.
struct WakeDescription {
  Distribution spin, yield, block;
};

/// Whose launching calls wait for each other.
enum class LaunchLock { none, stream, process };

/// What makes a launch cost more than the simplest one.
struct LaunchDescription {
  double argument_ns_per_byte = 0;
  int threads_per_multiprocessor = 2048;
  int max_blocks_per_multiprocessor = 32;
  double wave_ns = 0;
  Distribution stream_switch_ns;
  LaunchLock lock = LaunchLock::none;
  std::optional<int> queue_depth;
  std::optional<GraphDescription> graph;  // none: the driver has no graphs
  bool cooperative = true;
  Distribution cooperative_ns;
  double dependent_overlap_ns = 0;
  int least_priority = 0, greatest_priority = -5;
  Distribution contended_ns;
  WakeDescription wake_ns;
  std::vector<IdleDelay> idle;
  Distribution module_ns, lazy_ns, jit_ns, legacy_ns, in_library_ns;
  std::optional<RuntimeDescription> runtime;  // none: the driver is too old for it
  std::optional<Ramp> ramp;
  std::optional<Placement> placement;
  LazyLoading lazy_loading = LazyLoading::at_launch;
  bool grid_barrier = true;          // holds back who comes first
  bool free_holds_launches = false;  // while cuMemFree waits, no other thread launches
  bool lazy_memsets =
      false;  // a context's first memset loads its kernel, which waits for the device
  double global_timer_ns = 0;    // steps of the clock by which kernels wait; 0: none
  Distribution first_handle_ns;  // a library's first handle
};

/// What asynchronous copies do: all that they should, nothing, the first half of it, or only the
/// first copy to each destination.
enum class Copies { right, nothing, half, first_only };

/// Memory of cuMemAllocManaged: whether there is any, and whether the host may use it while the
/// device works, which it may not under Windows and WSL.
enum class ManagedMemory { none, exclusive, concurrent };

struct DeviceDescription {
  std::string name;
  std::string uuid;  // GPU-8-4-4-4-12, lower case
  std::array<unsigned char, 16> uuid_bytes{};
  std::string pci;
  int major = 0;
  int minor = 0;
  std::size_t memory_bytes = 0;
  int multiprocessors = 0;
  int clock_mhz = 0;
  int memory_clock_mhz = 0;
  int memory_bus_bits = 0;
  int l2_bytes = 0;
  bool memory_pools = true;
  bool pools_give_way = true;       // what they keep is given back where the device has no more
  bool frees_wait_for_all = false;  // cuMemFree waits for every GPU that the process uses
  bool virtual_memory = true;
  ManagedMemory managed_memory = ManagedMemory::concurrent;
  Distribution init_ns, context_ns, call_ns, launch_ns, kernel_ns, kernel_gap_ns, alloc_ns, free_ns,
      pool_free_ns;
  double process_factor_sigma = 0;
  std::map<std::string, double> tflops;
  double bandwidth_gbs = 0;
  double link_gbs = 0;      // between the device and pinned memory
  double pageable_gbs = 0;  // and pageable memory
  Copies copies = Copies::right;
  LaunchDescription launch;
  NvmlDescription nvml;

  int capability() const { return 10 * major + minor; }
  /// How many blocks of so many threads are on a multiprocessor at once.
  int resident_blocks(unsigned long long threads) const;
  /// The rate of products of a type; none: not supported.
  std::optional<double> peak(const std::string& type) const {
    const auto found = tflops.find(type);
    if (found == tflops.end()) return std::nullopt;
    return found->second;
  }
};

/// Kernels by number: the order of their launches, from 0.
struct KernelRange {
  long long after = 0;
  std::optional<long long> count;  // none: all from there on

  bool contains(long long number) const {
    return number >= after && (!count || number - after < *count);
  }
};

/// The clock of CUPTI jumps once.
struct ClockStep {
  long long after = 0;  // kernels
  long long ns = 0;
};

/// What every n-th launch has to wait for while CUPTI is active.
struct TracingOverhead {
  std::uint32_t kind = 0;  // cupti::abi::OverheadKind
  long long every = 1;
  Distribution ns;
};

/// How the device's clock looks in records, after CUPTI has converted it.
struct GpuClock {
  double sd_ns = 0;      // of each kernel
  double drift_ppm = 0;  // since the last flush
  double quantum_ns = 0;
};

/// The first kernels of a tracing session have corrupt records, or none; for longer the longer the
/// device was idle before.
struct StartBurst {
  double ms_per_idle_s = 0;
  double most_ms = 0;
  double share = 1;  // of the kernels
};

struct CuptiDescription {
  /// How a launch from within a library is told: an API record of the runtime around that of the
  /// driver, with one id or two, or none.
  enum class Nested { same, different, none };

  std::uint32_t version = 130001;
  std::string subscriber;  // who has the process already; empty: nobody
  Distribution api_overhead_ns, kernel_overhead_ns, other_overhead_ns;
  std::vector<TracingOverhead> overheads;
  bool silent = false;
  bool callback_thread = false;
  bool shuffle = false;
  bool abort_at_exit = false;
  Nested nested = Nested::same;
  std::uint32_t first_correlation = 1;
  std::optional<ClockStep> clock_step;
  std::optional<KernelRange> dropped, lost, zero_timestamps, inverted, early, unknown_kind;
  bool whole_graphs = false;  // while GRAPH_TRACE is enabled, a graph has one record and no kernels
  bool stale_names = false;   // functions of reloaded modules have names of those that went before
  std::optional<int> queue_depth;  // of a stream while kernels are recorded
  double impossible_share = 0;     // of the kernels: without a time, inverted or early
  std::optional<GpuClock> gpu_clock;
  std::optional<StartBurst> start_burst;
};

struct FaultDescription {
  enum class Action { code, hang, abort, wrong_byte };

  std::optional<int> device;  // index into the description's devices; none: each of them
  Library callee = Library::cuda;
  std::string call;
  long long after = 0;             // calls that still succeed
  std::optional<long long> times;  // calls that fail from then on; none: all
  Action action = Action::code;
  int code = 0;
  long long wrong_byte = 0;  // of the result that the call computes; below 0: from its end
};

/// When cuBLAS adds in another order, so that sums have another last bit: in every process another,
/// where a handle without a workspace of the caller's changes its stream, or with another workspace
/// than it has by default.
enum class CublasVaries { never, runs, streams, workspace };

struct Node {
  int driver_version = 0;
  int cublas_version = 0;
  int cudnn_version = 0;
  CuptiDescription cupti;
  std::string nvml_version = "13.580.65.06";
  std::string nvml_driver_version = "580.65.06";
  bool serialised = false;  // a launch returns only when what it launched is over, as under ncu
  std::vector<DeviceDescription> devices;
  std::vector<FaultDescription> faults;
  /// How much slower each of cuBLASLt's candidates is than the fastest way; the first is the one
  /// that cuBLAS takes by itself.
  std::vector<double> cublaslt_candidates = {1, 1.1, 1.25, 1.5};
  std::optional<int> cublaslt_wrong;  // the candidate whose results are wrong
  CublasVaries cublas_varies = CublasVaries::never;
  std::optional<int> cudnn_wrong;  // the algorithm whose results are wrong
  /// The same of the candidates of cuDNN's graph interface.
  std::vector<double> cudnn_engines = {1, 1.2, 1.5, 2};
  std::optional<int> cudnn_engine_wrong;  // the candidate whose results are wrong
  int cudnn_flips_every = 0;              // selection has another algorithm first; 0: none
};

/// What is wrong with a description: where (a JSON pointer) and what would be right.
class DescriptionError : public std::runtime_error {
 public:
  DescriptionError(const std::string& where, const std::string& what)
      : std::runtime_error(where.empty() ? what : where + ": " + what) {}
};

/// Throws DescriptionError.
Node parse_node(const std::string& text);

/// parse_node of the file that LAUNCHGAP_FAKE_NODE names; errors name the file.
Node load_node();

}  // namespace launchgap::fake
