// The node description: what the fake libraries pretend to be. docs/fake-node.md documents every
// key, harness/record/fields.h how structs are read.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "harness/record/field_rules.h"
#include "tests/fake_cuda/distribution.h"
#include "tests/fake_cuda/node_cupti.h"
#include "tests/fake_cuda/node_launch.h"
#include "tests/fake_cuda/node_nvml.h"

namespace launchgap::fake {

enum class Library { cuda, cublas, cudnn, cupti, nccl, nvml };

/// What asynchronous copies do: all that they should, nothing, the first half of it, or only the
/// first copy to each destination.
enum class Copies { right, nothing, half, first_only };

/// Memory of cuMemAllocManaged: whether there is any, and whether the host may use it while the
/// device works, which it may not under Windows and WSL.
enum class ManagedMemory { none, exclusive, concurrent };

/// 10^12 operations a second that products of each type reach; none: not supported.
struct Rates {
  static constexpr std::array kTypes = {"fp64", "fp32", "tf32", "fp16", "bf16", "int8", "fp8"};
  std::array<std::optional<double>, kTypes.size()> tflops;

  static void fields(auto& self, auto&& field) {
    for (std::size_t i = 0; i < kTypes.size(); ++i) field(kTypes[i], self.tflops[i], above(0));
  }
};

struct DeviceDescription {
  std::string name;
  std::string uuid;  // GPU-8-4-4-4-12, lower case
  std::array<unsigned char, 16> uuid_bytes{};
  std::string pci;
  std::string compute_capability;  // "8.0"
  int major = 0;
  int minor = 0;
  std::size_t memory_bytes = 0;
  int multiprocessors = 80;
  int clock_mhz = 1500;
  int memory_clock_mhz = 1000;
  int memory_bus_bits = 4096;
  int l2_bytes = 4 << 20;
  bool memory_pools = true;
  bool pools_give_way = true;       // what they keep is given back where the device has no more
  bool frees_wait_for_all = false;  // cuMemFree waits for every GPU that the process uses
  bool virtual_memory = true;
  ManagedMemory managed_memory = ManagedMemory::concurrent;
  Distribution init_ns, context_ns,
      call_ns = Distribution::constant(2000), launch_ns = Distribution::constant(4000),
      kernel_ns = Distribution::constant(1500), kernel_gap_ns,
      alloc_ns = Distribution::constant(100'000), free_ns = Distribution::constant(100'000),
      pool_free_ns;
  double process_factor_sigma = 0;
  Rates rates;
  double bandwidth_gbs = 1000;
  double link_gbs = 25;     // between the device and pinned memory
  double pageable_gbs = 6;  // and pageable memory
  Copies copies = Copies::right;
  LaunchDescription launch;
  NvmlDescription nvml;

  void complete();
  int capability() const { return 10 * major + minor; }
  /// How many blocks of so many threads are on a multiprocessor at once.
  int resident_blocks(unsigned long long threads) const;
  /// The rate of products of a type; none: not supported.
  std::optional<double> peak(std::string_view type) const {
    for (std::size_t i = 0; i < Rates::kTypes.size(); ++i) {
      if (Rates::kTypes[i] == type) return rates.tflops[i];
    }
    return std::nullopt;
  }

  static void fields(auto& self, auto&& field) {
    field("name", self.name, kNotEmpty);
    field("uuid", self.uuid);
    field.optional("pci", self.pci, kNotEmpty);
    field("compute_capability", self.compute_capability);
    field("memory_bytes", self.memory_bytes, at_least(1));
    field.optional("multiprocessors", self.multiprocessors, at_least(1));
    field.optional("clock_mhz", self.clock_mhz, at_least(1));
    field.optional("memory_clock_mhz", self.memory_clock_mhz, at_least(1));
    field.optional("memory_bus_bits", self.memory_bus_bits, at_least(1));
    field.optional("l2_bytes", self.l2_bytes, at_least(0));
    field.optional("memory_pools", self.memory_pools);
    field.optional("pools_give_way", self.pools_give_way);
    field.optional("frees_wait_for_all", self.frees_wait_for_all);
    field.optional("virtual_memory", self.virtual_memory);
    field.optional("managed_memory",
                   self.managed_memory,
                   Names<ManagedMemory>{{{"none", ManagedMemory::none},
                                         {"exclusive", ManagedMemory::exclusive},
                                         {"concurrent", ManagedMemory::concurrent}}});
    field.optional("init_ns", self.init_ns);
    field.optional("context_ns", self.context_ns);
    field.optional("call_ns", self.call_ns);
    field.optional("launch_ns", self.launch_ns);
    field.optional("kernel_ns", self.kernel_ns);
    field.optional("kernel_gap_ns", self.kernel_gap_ns);
    field.optional("alloc_ns", self.alloc_ns);
    field.optional("free_ns", self.free_ns);
    field.optional("pool_free_ns", self.pool_free_ns);
    field.optional("process_factor_sigma", self.process_factor_sigma, at_least(0));
    field.optional("tflops", self.rates);
    field.optional("bandwidth_gbs", self.bandwidth_gbs, above(0));
    field.optional("link_gbs", self.link_gbs, above(0));
    field.optional("pageable_gbs", self.pageable_gbs, above(0));
    field.optional("copies",
                   self.copies,
                   Names<Copies>{{{"right", Copies::right},
                                  {"nothing", Copies::nothing},
                                  {"half", Copies::half},
                                  {"first only", Copies::first_only}}});
    LaunchDescription::fields(self.launch, field);
    field.optional("nvml", self.nvml);
  }
};

/// A device by its index in the description, or at first by its UUID.
struct DeviceChoice {
  int index = -1;
  std::string uuid;
};

/// Exactly one of the last four.
struct FaultDescription {
  std::optional<DeviceChoice> device;  // none: each of them
  Library callee = Library::cuda;
  std::string call;
  long long after = 0;             // calls that still succeed
  std::optional<long long> times;  // calls that fail from then on; none: all
  std::optional<int> code;
  bool hang = false;
  bool abort = false;
  std::optional<long long>
      wrong_byte;  // of the result that the call computes; below 0: from its end

  void complete() const;
  /// Hangs or aborts where that is wanted.
  void act() const;

  static void fields(auto& self, auto&& field) {
    field("device", self.device);
    field("library",
          self.callee,
          Names<Library>{{{"cuda", Library::cuda},
                          {"cublas", Library::cublas},
                          {"cudnn", Library::cudnn},
                          {"cupti", Library::cupti},
                          {"nccl", Library::nccl},
                          {"nvml", Library::nvml}}});
    field("call", self.call);
    field.optional("after", self.after, at_least(0));
    field("times", self.times, at_least(1));
    field("code", self.code, at_least(1));
    field.optional("hang", self.hang);
    field.optional("abort", self.abort);
    field("wrong_byte", self.wrong_byte);
  }
};

/// When cuBLAS adds in another order, so that sums have another last bit: in every process another,
/// where a handle without a workspace of the caller's changes its stream, or with another workspace
/// than it has by default.
enum class CublasVaries { never, runs, streams, workspace };

struct NvmlVersions {
  std::string version = "13.580.65.06";
  std::string driver_version = "580.65.06";

  static void fields(auto& self, auto&& field) {
    field.optional("version", self.version, kNotEmpty);
    field.optional("driver_version", self.driver_version, kNotEmpty);
  }
};

struct NcclDescription {
  int version = 22809;
  Distribution all_reduce_ns = {Distribution::Kind::lognormal, 12'000, 0.1, {}, {}};

  static void fields(auto& self, auto&& field) {
    field.optional("version", self.version, at_least(2000));
    field.optional("all_reduce_ns", self.all_reduce_ns);
  }
};

struct Node {
  int driver_version = 13000;
  int cublas_version = 130100;
  int cudnn_version = 91900;
  CuptiDescription cupti;
  NcclDescription nccl;
  NvmlVersions nvml;
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

  void complete();

  static void fields(auto& self, auto&& field) {
    field.optional("driver_version", self.driver_version, at_least(1000));
    field.optional("cublas_version", self.cublas_version, at_least(1000));
    field.optional("cudnn_version", self.cudnn_version, at_least(1000));
    field.optional("cupti", self.cupti);
    field.optional("nccl", self.nccl);
    field.optional("nvml", self.nvml);
    field.optional("serialised", self.serialised);
    field.optional("cublaslt_candidates", self.cublaslt_candidates, at_least(1));
    field("cublaslt_wrong", self.cublaslt_wrong, between(0, 31));
    field.optional("cublas_varies",
                   self.cublas_varies,
                   Names<CublasVaries>{{{"runs", CublasVaries::runs},
                                        {"streams", CublasVaries::streams},
                                        {"workspace", CublasVaries::workspace}}});
    field.optional("cudnn_engines", self.cudnn_engines, at_least(1));
    field("cudnn_engine_wrong", self.cudnn_engine_wrong, between(0, 31));
    field.optional("cudnn_flips_every", self.cudnn_flips_every, at_least(0));
    field("cudnn_wrong", self.cudnn_wrong, between(0, 1));
    field("devices", self.devices);
    field.optional("faults", self.faults);
  }
};

/// The calls of a library that can be given a fault: those that return a status.
const std::set<std::string, std::less<>>& calls_of(Library library);

/// Throws Error that says what is wrong with a description: where, and what would be right.
Node parse_node(const std::string& text);

/// parse_node of the file that LAUNCHGAP_FAKE_NODE names; errors name the file.
Node load_node();

}  // namespace launchgap::fake
