// What is known of a device, and of a library that was loaded.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace launchgap {

/// What a device is. Absent values are unknown, never zero.
struct DeviceFacts {
  std::string backend;  // "cuda" or "host"
  std::string
      uuid;  // "GPU-…", "MIG-…", or "host-…": identifies the device across reboots and orders
  int index = 0;  // in the driver's order, among devices of this backend
  std::string name;
  std::optional<std::string> compute_capability;  // "9.0"
  std::optional<std::string> pci_bus_id;          // "0000:07:00.0"
  std::optional<std::uint64_t> memory_bytes;
  std::optional<int> multiprocessors;  // SMs, or cores this process may use
  std::optional<int> clock_mhz;        // highest
  std::optional<int> memory_clock_mhz;
  std::optional<int> memory_bus_bits;
  std::optional<std::uint64_t> last_level_cache_bytes;
  std::optional<int> numa_node;
  std::optional<std::string>
      driver_version;  // "13.0", as the driver reports the CUDA version it serves
  std::map<std::string, std::string> details;  // whatever else was found, by name
  bool simulated = false;                      // a fake library of the tests stands below
  bool usable = true;
  std::string reason;  // why not usable

  /// As JSON (harness/record/fields.h).
  static void fields(auto& self, auto&& field) {
    field.optional("uuid", self.uuid);
    field.optional("name", self.name);
    field.optional("backend", self.backend);
    field.optional("index", self.index);
    field("compute_capability", self.compute_capability);
    field("pci_bus_id", self.pci_bus_id);
    field("memory_bytes", self.memory_bytes);
    field("multiprocessors", self.multiprocessors);
    field("clock_mhz", self.clock_mhz);
    field("memory_clock_mhz", self.memory_clock_mhz);
    field("memory_bus_bits", self.memory_bus_bits);
    field("last_level_cache_bytes", self.last_level_cache_bytes);
    field("numa_node", self.numa_node);
    field("driver_version", self.driver_version);
    field.optional("details", self.details);
    field.optional("simulated", self.simulated);
    field.optional("usable", self.usable);
    field.optional("reason", self.reason);
  }
};

/// A library as it was loaded.
struct LoadedLibrary {
  std::string name;     // "cuBLAS"
  std::string soname;   // "libcublas.so.13"
  std::string path;     // where the loader found it
  std::string version;  // what the library says of itself
  bool simulated = false;
  std::string code;        // of the host's: the code that it runs, "SkylakeX" (code_levels.h)
  std::string newer_code;  // that this CPU can execute too; empty: none that matters

  static void fields(auto& self, auto&& field) {
    field.optional("name", self.name);
    field.optional("soname", self.soname);
    field.optional("path", self.path);
    field.optional("version", self.version);
    field.optional("simulated", self.simulated);
    field.unless_empty("code", self.code);
    field.unless_empty("newer_code", self.newer_code);
  }
};

/// A GPU of which nothing is known but its number.
DeviceFacts unknown_gpu(int index);

}  // namespace launchgap
