// The folder `compatibility` takes the tables of data/, what this machine and its Python have, and
// a question; it gives which versions go together. Other folders include this header, for
// frameworks, and compatibility.h, for GPUs, drivers, toolkits and cuDNN.
//
// What a build of TensorFlow or PyTorch needs, what there is, and what follows: does it use the
// GPU, does it fall back to the CPU without a word, and which version would work.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/finding.h"
#include "harness/doctor/compatibility/compatibility.h"
#include "harness/doctor/compatibility/requirement.h"
#include "harness/record/json.h"

namespace launchgap::doctor {

// --- What there is ------------------------------------------------------------------------------

/// A package in the active Python, as its metadata has it.
struct InstalledPackage {
  std::string name;      // "torch"
  std::string version;   // "2.3.0+cu121"
  std::string location;  // the folder
  /// The CUDA version that it was built for, where its own files tell ("12.1"): torch/version.py,
  /// TensorFlow's build_info.py. "none": a build without CUDA. Empty: not known.
  std::string cuda = {};
  std::string cudnn = {};  // that its metadata requires of pip: "9.26.0"; empty: it names none
};

struct InstalledGpu {
  std::string name;                      // "Tesla K40m"
  std::optional<Capability> capability;  // nothing: not known
  std::string id;                 // UUID or PCI address; empty for a GPU that is only asked about
  bool listed_by_driver = false;  // so that the driver knows it, whatever a table says
};

/// What the machine has, or what is assumed. Nothing stands for "not known", unless it says so.
struct Installation {
  std::vector<InstalledGpu> gpus;
  bool gpus_known = false;  // so that none means that there is none

  bool driver_known = false;  // so that no version means that there is no driver
  std::optional<Version> driver;
  std::optional<Version> driver_cuda;  // what cuDriverGetVersion says

  bool libraries_known = false;      // so that a name that is not in `sonames` is missing
  std::vector<std::string> sonames;  // what the loader would find: "libcublas.so.12"
  std::vector<Version> toolkits;     // assumed, or found: they ship their names too
  std::optional<Version> cudnn;      // that the loader would take
  std::vector<InstalledPackage> installed;
  std::string python;  // the active one: "/home/u/.venv/bin/python3"; empty: not known
};

// --- The answer ---------------------------------------------------------------------------------

enum class Outcome {
  works,
  works_after_compiling,  // the driver compiles PTX at the first start
  silent_cpu,             // work is done, on the CPU, and no error says so
  fails,                  // an error
  unknown,
};
std::string_view name_of(Outcome outcome);

/// The newest build of a framework that a GPU can use, with what it needs.
struct NewestBuild {
  std::string framework;
  Version version;
  std::string package;  // "wheel", "conda"
  Version cuda;
  std::optional<Version> cudnn;
  DriverNeed driver;
  Verdict cudnn_knows_gpu;
  bool recalled = false;           // the row was not confirmed
  bool compiled_at_start = false;  // by the driver, from PTX
  bool default_build = false;      // what pip installs when no CUDA is named
  std::string extra = {};          // of pip, that brings CUDA and cuDNN: "and-cuda"

  /// "PyTorch 2.7 with CUDA 11.8 (wheel)".
  std::string text() const;
  /// "pip install 'torch==2.7.*' --index-url https://download.pytorch.org/whl/cu118".
  std::string command() const;
};

struct Newest {
  std::optional<NewestBuild> certain;
  std::optional<NewestBuild> with_cudnn;  // where `certain` has a cuDNN without code for the GPU
  std::optional<NewestBuild> possible;    // newer, by a row that was not confirmed
};

struct GpuAnswer {
  InstalledGpu gpu;
  std::string architecture;  // empty: not known
  Outcome outcome = Outcome::unknown;
  std::string reason;
  std::string brief;         // the reason in a few words, where that is long; else empty
  bool conditional = false;  // what it needs of driver and libraries is not all known to be there
  std::vector<std::string> once;  // that is: "CUDA 11.0", "a driver 450.51.05 to R470"
  std::string range;  // of a range, where what pip would install does not work: what does
  Truth has_code = Truth::unknown;  // the build, for this GPU
  std::vector<Newest> newest;       // by framework: the one that was asked for, or all
  std::string newest_after;  // the driver that `newest` is for, where this one cannot serve the GPU
  std::optional<Version> newest_toolkit;  // with the driver there is, or with the GPU's last one
  std::optional<int> last_driver_branch;
};

/// One line of need and have.
struct NeedRow {
  std::string what;  // "driver"
  std::string need;
  std::string have;
  Truth met = Truth::unknown;
};

struct FrameworkAnswer {
  std::string subject;             // "tensorflow 2.4.0"; empty: no framework was asked for
  std::string asked;               // "tensorflow>=2.4"
  std::vector<std::string> first;  // what has to be known before the verdicts are read
  std::optional<BuildRow> build;
  std::vector<NeedRow> needs;
  std::vector<std::string> loads;    // the names that it opens, in the system's libraries
  std::vector<std::string> missing;  // those of them that the loader would not find
  std::vector<GpuAnswer> gpus;
  std::vector<Finding> findings;  // one per subject: its root cause
  std::vector<std::string> notes;
};

/// Which build a requirement means, and whether it would use the GPUs of an installation.
FrameworkAnswer answer(const Requirement& requirement, const Installation& installation);

/// The newest builds of a framework for a GPU; without a driver, with the last one that knows it.
/// Of `among` only the versions that it allows, where it is given.
Newest newest_builds(std::string_view framework,
                     Capability capability,
                     const std::optional<Version>& driver,
                     const Requirement* among = nullptr);

/// Verdicts, what is needed and what is there, remedies, and the newest that works.
std::string text(const FrameworkAnswer& answer, const TextStyle& style = {});
Json to_json(const FrameworkAnswer& answer);

/// The builds of a requirement's version in the tables, the one that it means first; of a range, of
/// the newest version that it allows. Empty if no table has it.
std::vector<const BuildRow*> builds_for(const Requirement& requirement, const Version& version);
/// The version that a requirement means: pinned, or the newest in the tables that it allows.
std::optional<Version> version_for(const Requirement& requirement);
/// "TensorFlow", "PyTorch".
std::string title_of(std::string_view framework);
/// How pip or conda install a build; `pin` is "2.7.*" or "2.7.1". PyTorch's wheels come from its
/// own index, but for pip's default build. Source: pytorch.org, "Previous versions"; TensorFlow's
/// installation guide.
std::string install_command(const BuildRow& build, const Version& version, const std::string& pin);
/// As above for PyTorch, in place of another build of the same version: with its tag, since pip
/// takes the other one for the same otherwise.
std::string replace_command(const BuildRow& build, const Version& version);

}  // namespace launchgap::doctor
