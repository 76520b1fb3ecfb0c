// The architectures inside of fatbins: those that are written here, those that nvcc makes, and
// those of CUDA's libraries where there are any.
#include "harness/doctor/libraries/device_code.h"

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <random>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "harness/doctor/libraries/elf_file.h"
#include "tests/doctor/folder.h"

namespace launchgap::doctor {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kPlain = 0x11, kAlone = 0x100011, kFamily = 0x1200011;

void put(std::string& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(i < 8 ? value >> (8 * i) : 0);
}

/// One image: header, then as many bytes of anything.
std::string image(int kind,
                  int capability,
                  std::uint64_t flags = kPlain,
                  std::uint64_t bytes = 24) {
  std::string out;
  put(out, kind, 2);
  put(out, 0x0101, 2);
  put(out, 64, 4);
  put(out, bytes, 8);
  put(out, 0, 8);
  put(out, 0x10008, 4);
  put(out, capability, 4);
  put(out, 0, 8);
  put(out, flags, 8);
  put(out, 0, 16);
  return out + std::string(bytes, '\xAA');
}

std::string container(const std::string& images) {
  std::string out;
  put(out, 0xBA55ED50, 4);
  put(out, 1, 2);
  put(out, 16, 2);
  put(out, images.size(), 8);
  return out + images;
}

TEST(DeviceCode, ReadsContainers) {
  const Folder folder;
  struct Case {
    std::string bytes, text, incomplete;
  };
  const std::string ampere = image(2, 80), volta_ptx = image(1, 70);
  const Case cases[] = {
      {container(ampere), "SASS 8.0", ""},
      {container(ampere + volta_ptx), "SASS 8.0; PTX 7.0", ""},
      {container(image(2, 90, kAlone) + image(2, 100, kFamily) + image(2, 121)),
       "SASS 9.0a, 10.0f, 12.1",
       ""},
      {container(image(1, 90, kAlone)), "PTX 9.0a", ""},
      // The next container begins at a multiple of eight.
      {container(image(2, 75, kPlain, 3)) + std::string(5, '\0') + container(ampere),
       "SASS 7.5, 8.0",
       ""},
      {container(""), "no device code was found", ""},
      {container(image(8, 80)), "no device code was found", ""},  // for linking only
      {container(image(77, 80) + ampere), "SASS 8.0", "it has images of the unknown kind 77"},
      {container(image(2, 7)),
       "no device code was found",
       "it has images for capabilities that cannot be"},
      {container(image(2, 1000000000)),
       "no device code was found",
       "it has images for capabilities that cannot be"},
      {container(ampere).substr(0, 40),
       "no device code was found",
       "a container is larger than its section"},
      {container(ampere + ampere.substr(0, 70)),
       "SASS 8.0",
       "an image is larger than its container"},
  };
  for (const Case& c : cases) {
    const DeviceCode code = device_code_of(folder.write("k.fatbin", c.bytes));
    EXPECT_EQ(code.text(), c.text);
    EXPECT_EQ(code.incomplete, c.incomplete) << c.text;
  }
}

TEST(DeviceCode, ContainersThatLieEndTheWalk) {
  const Folder folder;
  std::string huge = container("");
  std::string header_of_nothing = image(2, 80);
  for (int i = 8; i < 16; ++i) huge[i] = '\xFF';
  header_of_nothing[4] = 0;  // would never get on
  std::string endless = image(2, 80);
  for (int i = 8; i < 16; ++i) endless[i] = '\xFF';
  for (const std::string& bytes : {huge, container(header_of_nothing), container(endless)}) {
    const DeviceCode code = device_code_of(folder.write("k.fatbin", bytes + std::string(64, 'x')));
    EXPECT_TRUE(code.unknown());
    EXPECT_NE(code.incomplete, "");
  }
  std::string many;
  for (int i = 0; i < 300'000; ++i) many += container("");
  EXPECT_NE(device_code_of(folder.write("k.fatbin", many)).incomplete, "");
  EXPECT_TRUE(device_code_of(folder.write("k.fatbin", container("") + std::string(8 << 20, 'x')))
                  .unknown());
}

TEST(DeviceCode, SurvivesRandomContainers) {
  const Folder folder;
  std::mt19937 random(1);
  for (int i = 0; i < 500; ++i) {
    std::string bytes =
        container(image(2, 80) + image(1, 90) + image(2, 100, kFamily)) + container(image(2, 75));
    for (int byte = 0; byte < 6; ++byte)
      bytes[4 + random() % (bytes.size() - 4)] = static_cast<char>(random());
    (void)device_code_of(folder.write("k.fatbin", bytes));
  }
}

TEST(DeviceCode, OfALibraryWithoutIsUnknown) {
  const DeviceCode code = device_code_of(fs::path(LAUNCHGAP_FAKE_CUDA_FOLDER) / "libcuda.so.1");
  EXPECT_TRUE(code.unknown());
  EXPECT_EQ(code.containers, 0);
  EXPECT_EQ(code.text(), "no device code was found");
  EXPECT_THROW(device_code_of("/etc/passwd"), BadFile);
  EXPECT_THROW(device_code_of("/"), BadFile);
}

TEST(DeviceCode, OfWhatNvccMakes) {
  const std::string nvcc = LAUNCHGAP_TEST_NVCC;
  if (nvcc.empty()) GTEST_SKIP() << "no nvcc";
  const Folder folder;
  const fs::path source = folder.write("k.cu", R"(
__global__ void k(float* p) { p[threadIdx.x] *= 2; }
extern "C" int go() { k<<<1, 32>>>(nullptr); return 0; }
#ifdef MAIN
int main() { return go(); }
#endif
)");
  struct Case {
    const char *name, *arguments, *text;
  };
  // Architectures that nvcc 12.9 and 13 know.
  const Case cases[] = {
      {"program",
       "-DMAIN -gencode arch=compute_75,code=sm_75 -gencode "
       "arch=compute_80,code=[sm_80,compute_80]",
       "SASS 7.5, 8.0; PTX 8.0"},
      {"libk.so",
       "-shared -Xcompiler -fPIC -gencode arch=compute_90a,code=sm_90a -gencode "
       "arch=compute_89,code=sm_89",
       "SASS 8.9, 9.0a"},
      {"k.o",
       "-c -gencode arch=compute_100f,code=sm_100f -gencode arch=compute_90a,code=compute_90a",
       "SASS 10.0f; PTX 9.0a"},
      {"rdc.o",
       "-c -rdc=true -gencode arch=compute_86,code=[sm_86,compute_86]",
       "SASS 8.6; PTX 8.6"},
      {"k.fatbin", "-fatbin -gencode arch=compute_120a,code=sm_120a", "SASS 12.0a"},
      {"k.cubin", "-cubin -arch=sm_120", "SASS 12.0"},
      {"old.cubin", "-cubin -arch=sm_75", "SASS 7.5"},
  };
  for (const Case& c : cases) {
    const fs::path made = folder.path() / c.name;
    const std::string command = fmt::format("{} {} -o {} {} >{} 2>&1",
                                            nvcc,
                                            c.arguments,
                                            made.string(),
                                            source.string(),
                                            (folder.path() / "log").string());
    if (std::system(command.c_str()) != 0) {
      ADD_FAILURE() << command << "\n" << folder.copy_of(folder.path() / "log");
      continue;
    }
    EXPECT_EQ(device_code_of(made).text(), c.text) << c.name;
  }
  // Not compressed, which the headers say in the same way.
  const fs::path plain = folder.path() / "plain.so";
  const std::string command = fmt::format(
      "{} --compress-mode=none -shared -Xcompiler -fPIC -gencode "
      "arch=compute_80,code=[sm_80,compute_80] -o {} {}",
      nvcc,
      plain.string(),
      source.string());
  if (std::system(command.c_str()) == 0) {
    EXPECT_EQ(device_code_of(plain).text(), "SASS 8.0; PTX 8.0");
  }
}

TEST(DeviceCode, OfCudasOwnLibraries) {
  bool any = false;
  for (const char* name : {"libcublas.so.13",
                           "libcublasLt.so.13",
                           "libcudnn_ops.so.9",
                           "libcudnn_cnn.so.9",
                           "libcudnn_engines_precompiled.so.9"}) {
    const fs::path path = fs::path("/usr/local/cuda/lib64") / name;
    if (!fs::exists(path)) continue;
    any = true;
    const auto begin = std::chrono::steady_clock::now();
    const DeviceCode code = device_code_of(path);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    EXPECT_FALSE(code.unknown()) << name;
    EXPECT_EQ(code.incomplete, "") << name;
    // They are made for Hopper, whatever else.
    EXPECT_TRUE(code.sass.contains({90, 0}) || code.sass.contains({90, 'a'}))
        << name << ": " << code.text();
    EXPECT_LT(took.count(), 5) << name;
    fmt::print("{}: {} ({} containers, {} images, {:.0f} ms)\n",
               name,
               code.text(),
               code.containers,
               code.images,
               1e3 * took.count());
  }
  if (!any) GTEST_SKIP() << "no CUDA libraries in /usr/local/cuda";
}

}  // namespace
}  // namespace launchgap::doctor
