// Where libraries are looked for that the loader does not find, in roots that are made here.
#include <cstdlib>
#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include "harness/device/shared_library.h"
#include "tests/doctor/folder.h"
#include "tests/error_of.h"

namespace launchgap::doctor {
namespace {

using ::testing::HasSubstr;

namespace fs = std::filesystem;

const fs::path kPrograms = LAUNCHGAP_DOCTOR_PROGRAMS;
const std::string kToolkit = "usr/local/cuda-11.4/lib64";

/// A system with a Python of its own, one in a virtual environment, and toolkits.
class System : public Folder {
 public:
  System() {
    program("usr/bin/python3.12");
    fs::create_symlink("python3.12", path() / "usr/bin/python3");
    program("venv/bin/python3.12");
    fs::create_symlink("python3.12", path() / "venv/bin/python3");
    write("venv/pyvenv.cfg", "home = /usr/bin\n");
    make_folder("venv/lib/python3.12/site-packages/nvidia/cu13/lib");
    make_folder("usr/local/lib/python3.12/dist-packages/nvidia/cublas/lib");
    make_folder("home/u/.local/lib/python3.12/site-packages/nvidia/cudnn/lib");
    for (const char* name : {"cuda", "cuda-11.4", "cuda-12.8", "cudamat"})
      make_folder(fmt::format("usr/local/{}/lib64", name));
  }
  void program(const std::string& name) const {
    chmod(write(name,
                "\x7f"
                "ELF")
              .c_str(),
          0755);
  }
  std::vector<std::string> folders(const std::map<std::string, std::string>& environment) const {
    return library_folders(SystemFiles(path()), environment);
  }
};

TEST(LibraryFolders, AreThoseOfPointersThenPythonThenToolkits) {
  const System system;
  EXPECT_EQ(fmt::format(
                "{}",
                fmt::join(system.folders(
                              {{"PATH", "/usr/bin"}, {"HOME", "/home/u"}, {"CUDA_HOME", "/opt/a"}}),
                          " ")),
            "/opt/a/lib64 /opt/a/lib /opt/a/extras/CUPTI/lib64 "
            "/home/u/.local/lib/python3.12/site-packages/nvidia/cudnn/lib "
            "/usr/local/lib/python3.12/dist-packages/nvidia/cublas/lib "
            "/usr/local/cuda/lib64 /usr/local/cuda/lib /usr/local/cuda/extras/CUPTI/lib64 "
            "/usr/local/cuda-12.8/lib64 /usr/local/cuda-12.8/lib "
            "/usr/local/cuda-12.8/extras/CUPTI/lib64 "
            "/usr/local/cuda-11.4/lib64 /usr/local/cuda-11.4/lib "
            "/usr/local/cuda-11.4/extras/CUPTI/lib64");
  EXPECT_THAT(
      system.folders({{"VIRTUAL_ENV", "/venv"}, {"CONDA_PREFIX", "/c"}, {"CUDA_PATH", "relative"}}),
      ::testing::IsSupersetOf(
          {"/venv/lib/python3.12/site-packages/nvidia/cu13/lib", "/c/lib", "/usr/local/cuda/lib"}));
}

TEST(LibraryFolders, OwnPackagesComeFirstUnlessAnEnvironmentWasChosen) {
  const System system;
  // As the program of a checkout whose virtual environment is /venv.
  fs::create_directories(system.path() / "proc/self");
  fs::create_symlink("/build/bin/launchgap", system.path() / "proc/self/exe");
  fs::rename(system.path() / "venv", system.path() / ".venv");
  system.program("other/bin/python3.12");
  system.write("other/pyvenv.cfg", "home = /usr/bin\n");
  fs::create_symlink("python3.12", system.path() / "other/bin/python3");
  system.make_folder("other/lib/python3.12/site-packages/nvidia/cublas/lib");
  const std::string own = "/.venv/lib/python3.12/site-packages/nvidia/cu13/lib";
  EXPECT_EQ(system.folders({{"PATH", "/usr/bin"}})[0], own);
  EXPECT_EQ(system.folders({{"PATH", "/usr/bin"}})[1],
            "/usr/local/lib/python3.12/dist-packages/nvidia/cublas/lib");
  EXPECT_EQ(system.folders({{"VIRTUAL_ENV", "/other"}})[0],
            "/other/lib/python3.12/site-packages/nvidia/cublas/lib");
  EXPECT_EQ(system.folders({{"VIRTUAL_ENV", "/other"}})[1], own);
}

/// libcudnn.so.7 in a toolkit: without an RPATH, and linked with libcudart.so.10.1.
class ToolkitWithNeeds : public System {
 public:
  ToolkitWithNeeds() {
    setenv("LAUNCHGAP_SYSTEM_ROOT", path().c_str(), 1);
    setenv("CONDA_PREFIX", "/conda", 1);
    write(kToolkit + "/libcudnn.so.7", copy_of(kPrograms / "cudnn/libcudnn.so.7"));
  }
  ~ToolkitWithNeeds() {
    unsetenv("LAUNCHGAP_SYSTEM_ROOT");
    unsetenv("CONDA_PREFIX");
  }
  void add_runtime(const std::string& folder) const {
    write(folder + "/libcudart.so.10.1", copy_of(kPrograms / "runtime/libcudart.so.10.1"));
  }
  /// Opens it in a child, since a library that is there satisfies whoever needs it next. Exits with
  /// 0 if its need was met from `folder`.
  [[noreturn]] void open_and_exit(const std::string& folder) const {
    SharedLibrary::open({"cuDNN", "", {"libcudnn.so.7"}, {}});
    const std::string runtime = path() / folder / "libcudart.so.10.1";
    _exit(dlopen(runtime.c_str(), RTLD_LAZY | RTLD_NOLOAD) ? 0 : 1);
  }
};

TEST(SharedLibrary, WhatALibraryNeedsIsNamedWhereItIsMissing) {
  const ToolkitWithNeeds system;
  EXPECT_THAT(error_of([] {
                SharedLibrary::open({"cuDNN", "", {"libcudnn.so.7"}, {}});
              }),
              HasSubstr("libcudnn.so.7, libcudart.so.10.1: cannot open shared object file"));
}

TEST(SharedLibrary, WhatALibraryNeedsIsTakenFromBesideItOrElsewhere) {
  const ToolkitWithNeeds system;
  system.add_runtime("conda/lib");
  EXPECT_EXIT(system.open_and_exit("conda/lib"), ::testing::ExitedWithCode(0), "");
  // Conda's comes first in the search, but is of another toolkit.
  system.add_runtime(kToolkit);
  EXPECT_EXIT(system.open_and_exit(kToolkit), ::testing::ExitedWithCode(0), "");
}

TEST(SharedLibrary, NamesByVersionBeginWithTheNewestThatCanBeUsed) {
  const std::map<int, std::string> names = {
      {11040, "a.4"}, {11080, "a.8"}, {12000, "b"}, {13000, "c"}};
  const auto all = [&](int newest) {
    const LibrarySearch search = by_version({"A", "", {}, {}}, names, newest, "plain");
    return fmt::format("{} | {}", fmt::join(search.sonames, " "), fmt::join(search.otherwise, " "));
  };
  EXPECT_EQ(all(11040), "a.4 | a.8 b c plain");
  EXPECT_EQ(all(12040), "b a.8 a.4 | c plain");
  EXPECT_EQ(all(14000), "c b a.8 a.4 | plain");
  EXPECT_EQ(all(10000), " | a.4 a.8 b c plain");
}

}  // namespace
}  // namespace launchgap::doctor
