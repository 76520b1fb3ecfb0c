// Which GPU, driver, toolkit and cuDNN go together, by the tables. Pure functions: nothing is read
// from the machine, and what no row says is unknown, never the neighbouring row's answer.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "harness/doctor/compatibility/compatibility_tables.h"

namespace launchgap::doctor {

enum class Truth { no, yes, unknown };
std::string_view name_of(Truth truth);

struct Verdict {
  Truth truth = Truth::unknown;
  std::string reason = {};  // one clause, "CUDA 12.0 and newer have no Kepler"
  std::string source = {};  // of the row it rests on; empty for a rule or where there is no row
  bool recalled = false;    // that row was not confirmed

  bool yes() const { return truth == Truth::yes; }
  bool no() const { return truth == Truth::no; }
};

// --- GPUs ---------------------------------------------------------------------------------------

struct GpuIdentity {
  std::string name;  // as the table has it, "K40m"; of several rows their common words, "A100"
  Capability capability;
  std::string architecture;  // "Kepler"; empty if no row of architecture_life.csv has it
};

/// A GPU by its name: "K40m", "tesla k40m", "NVIDIA A100-SXM4-80GB", "H100 80GB HBM3". Makers'
/// names, "GeForce" and the like do not matter; form and memory only must not contradict. Also by
/// capability ("3.5", "sm_35") and PCI id ("10de:1023").
std::optional<GpuIdentity> find_gpu(std::string_view name);
/// As above; throws UsageError that names the nearest names of the table.
GpuIdentity require_gpu(std::string_view name);
/// By the device id that PCI gives it (vendor 10de), without a driver.
std::optional<GpuIdentity> find_gpu_by_pci(int device_id);

// --- Architectures, drivers, toolkits -----------------------------------------------------------

const ArchitectureRow* life_of(Capability capability);

/// Whether a toolkit's compiler and libraries know a GPU.
Verdict toolkit_knows_gpu(const Version& toolkit, Capability capability);
/// Whether a driver still, or already, knows a GPU.
Verdict driver_knows_gpu(const Version& driver, Capability capability);
/// As above, and no as well where the driver's branch is older than the oldest that a table has for
/// the GPU.
Verdict driver_serves_gpu(const Version& driver, Capability capability);
/// Whether programs of a toolkit run on a driver: it is the toolkit's own or newer, or, from CUDA
/// 11 on, at least the minimum of minor-version compatibility. A driver that is only a branch
/// ("525") leaves it open where the release matters.
Verdict driver_serves_toolkit(const Version& driver, const Version& toolkit);
/// Whether PTX that a toolkit made is compiled by a driver: not by an older one's JIT, whatever
/// minor-version compatibility says (error 222).
Verdict driver_compiles_ptx_of(const Version& driver, const Version& toolkit);

struct DriverNeed {
  Version bundled;  // with this one everything works
  Version minimum;  // with this one programs run, without newer PTX and features
};
/// Of a release, or of the first one of its series; nothing for a toolkit that is in no table.
std::optional<DriverNeed> driver_needed_by(const Version& toolkit);
/// The oldest driver that a table has for a GPU: the one of the first toolkit with it.
std::optional<Version> first_driver_of(Capability capability);
/// What a toolkit's programs need on a GPU: at least a driver that knows it.
std::optional<DriverNeed> driver_needed_by(const Version& toolkit, Capability capability);
/// The newest toolkit, "11.8", that knows the GPU and runs on the driver; without a driver, on the
/// last that knows the GPU.
std::optional<Version> newest_toolkit(Capability capability, const std::optional<Version>& driver);
/// Whether a toolkit was ever published ("12.7" was not). Unknown beyond the newest in the table.
Verdict toolkit_exists(const Version& toolkit);

/// The name by which a toolkit ships a library: "libcusolver.so.11" for 11.1 and "cusolver".
std::optional<std::string> soname_in_toolkit(const Version& toolkit, std::string_view library);
std::optional<std::string> soname_of_cudnn(const Version& cudnn);

// --- cuDNN --------------------------------------------------------------------------------------

/// Whether a release of cuDNN for a toolkit has code for a GPU.
Verdict cudnn_knows_gpu(const Version& cudnn, const Version& cuda, Capability capability);
/// Whether a program that was compiled against one cuDNN runs with another: the same major, and the
/// minor not older. TensorFlow's rule, and since cuDNN 7 NVIDIA's.
Verdict cudnn_serves(const Version& loaded, const Version& compiled);

// --- Code for GPUs ------------------------------------------------------------------------------

struct CodeImage {
  enum class Encoding { machine_code, ptx };
  Encoding kind = Encoding::machine_code;
  Capability target;
  char variant = ' ';  // 'a': for this capability only; 'f': for its family

  /// "sm_90a", "compute_80", "8.6", "9.0+PTX" (read as its PTX).
  static std::optional<CodeImage> parse(std::string_view text);
};
/// Machine code runs on the same major and an equal or higher minor, PTX on any capability that is
/// not lower.
Verdict image_runs(const CodeImage& image, Capability capability);

struct CodeVerdict {
  Verdict verdict;
  bool compiled_at_start = false;  // by the driver, from PTX
};
/// Whether a framework's build has code that a GPU can run.
CodeVerdict code_runs(const BuildCode& code, const Version& cuda, Capability capability);

}  // namespace launchgap::doctor
