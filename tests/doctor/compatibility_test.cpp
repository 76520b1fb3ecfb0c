#include "harness/doctor/compatibility/compatibility.h"

#include <gmock/gmock.h>

#include "harness/core/errors.h"

namespace launchgap::doctor {
namespace {

using namespace testing;

Version version(const std::string& text) {
  return *Version::parse(text);
}
Capability cc(const char* text) {
  return *Capability::parse(text);
}

TEST(FindGpu, TakesANameAsPeopleWriteIt) {
  struct Case {
    const char *asked, *name, *capability;
  };
  for (const Case& c : {Case{"K40m", "K40m", "3.5"},
                        {"k40m", "K40m", "3.5"},
                        {"K40", "K40m", "3.5"},
                        {"k20", "K20m", "3.5"},
                        {"GeForce GTX 1080", "GeForce GTX 1080", "6.1"},
                        {"gtx 1080 ti", "GeForce GTX 1080 Ti", "6.1"},
                        {"NVIDIA TITAN V", "TITAN V", "7.0"},
                        {"Quadro RTX 6000", "Quadro RTX 6000", "7.5"},
                        {"Quadro 4000", "Quadro 4000", "2.0"},
                        {"Tesla K40m", "K40m", "3.5"},
                        {"Tesla K80", "K80", "3.7"},
                        {"NVIDIA A100-SXM4-80GB", "A100 SXM 80GB", "8.0"},
                        {"A100", "A100 SXM", "8.0"},
                        {"H100 SXM", "H100 SXM", "9.0"},
                        {"NVIDIA H100 80GB HBM3", "H100", "9.0"},
                        {"Tesla V100-SXM2-16GB", "V100 SXM2 16GB", "7.0"},
                        {"V100", "V100", "7.0"},
                        {"NVIDIA GeForce RTX 4090", "RTX 4090", "8.9"},
                        {"rtx3090", "RTX 3090", "8.6"},
                        {"2080 ti", "RTX 2080 Ti", "7.5"},
                        {"B200", "B200", "10.0"},
                        {"Tesla M40 24GB", "M40 24GB", "5.2"},
                        {"NVIDIA A100 80GB PCIe", "A100 PCIe 80GB", "8.0"},
                        {"NVIDIA A100-PCIE-40GB", "A100 PCIe 40GB", "8.0"},
                        {"NVIDIA A100-SXM4-40GB MIG 1g.5gb", "A100 SXM 40GB", "8.0"},
                        {"NVIDIA A30", "A30 PCIe", "8.0"},
                        {"Quadro RTX 8000", "Quadro RTX 6000/8000", "7.5"},
                        {"GeForce GTX 1650 with Max-Q Design", "GeForce GTX 1650", "7.5"},
                        {"sm_61", "a GPU", "6.1"},
                        {"8.6", "a GPU", "8.6"},
                        {"10de:1023", "K40m", "3.5"},
                        {"10de:1b06", "Pascal (GP102)", "6.1"}}) {
    const auto gpu = find_gpu(c.asked);
    ASSERT_TRUE(gpu) << c.asked;
    EXPECT_EQ(gpu->name, c.name);
    EXPECT_EQ(gpu->capability, cc(c.capability)) << c.asked;
  }
}

TEST(FindGpu, SaysWhatIsNearAName) {
  EXPECT_THAT([] { require_gpu("K41m"); },
              ThrowsMessage<UsageError>(HasSubstr("near it are K40m")));
  EXPECT_THAT([] { require_gpu("V100 64GB"); },
              ThrowsMessage<UsageError>(HasSubstr("V100 SXM2 16GB")));
  for (const char* name :
       {"", " ", "GeForce", "Radeon VII", "A", "4", "\xff\x1b[2J", "10de:ffff"}) {
    EXPECT_THROW(require_gpu(name), UsageError) << name;
  }
  EXPECT_THROW(require_gpu(std::string(1 << 20, 'K')), UsageError);
  EXPECT_THAT([] { require_gpu("99.9"); },
              ThrowsMessage<UsageError>(HasSubstr("known are 2.0 to 12.1")));
  EXPECT_THAT([] { require_gpu("Quux 9000"); },
              ThrowsMessage<UsageError>(HasSubstr("https://developer.nvidia.com/cuda-gpus")));
}

TEST(FindGpu, ByPciIdWithoutADriver) {
  EXPECT_EQ(find_gpu_by_pci(0x102d)->architecture, "Kepler");
  EXPECT_EQ(find_gpu_by_pci(0x2330)->name, "H100 SXM");
  EXPECT_EQ(find_gpu_by_pci(0x17fd)->name, "M40 12GB or M40 24GB");
  EXPECT_EQ(find_gpu_by_pci(0x2b85)->capability, cc("12.0"));
  for (const int unknown : {-1, 0, 0x0001, 0x3fff, 0x10000}) EXPECT_FALSE(find_gpu_by_pci(unknown));
}

TEST(Compatibility, OfToolkitsAndGpus) {
  struct Case {
    const char *toolkit, *capability;
    Truth truth;
  };
  for (const Case& c : {Case{"10.2", "3.0", Truth::yes},
                        {"11.0", "3.0", Truth::no},
                        {"11.8", "3.5", Truth::yes},
                        {"12.0", "3.5", Truth::no},
                        {"12.9.1", "7.0", Truth::yes},
                        {"13.0", "7.0", Truth::no},
                        {"13.0", "7.5", Truth::yes},
                        {"11.0", "8.6", Truth::no},
                        {"12.8", "12.0", Truth::yes},
                        {"12.6", "12.0", Truth::no},
                        {"12.6", "9.9", Truth::unknown}}) {
    EXPECT_EQ(toolkit_knows_gpu(version(c.toolkit), cc(c.capability)).truth, c.truth)
        << c.toolkit << " " << c.capability;
  }
}

TEST(Compatibility, OfDriversAndGpus) {
  EXPECT_TRUE(driver_knows_gpu(version("470.256.02"), cc("3.5")).yes());
  EXPECT_TRUE(driver_knows_gpu(version("495.29.05"), cc("3.5")).no());
  EXPECT_TRUE(driver_knows_gpu(version("580.65.06"), cc("7.0")).yes());
  EXPECT_TRUE(driver_knows_gpu(version("590.44.01"), cc("7.0")).no());
  EXPECT_TRUE(driver_knows_gpu(version("390.157"), cc("2.1")).yes());
  EXPECT_TRUE(driver_knows_gpu(version("610.43.02"), cc("9.0")).yes());
  EXPECT_EQ(driver_knows_gpu(version("450.80.02"), cc("9.0")).truth, Truth::unknown);
  EXPECT_EQ(driver_knows_gpu(version("535"), cc("8.7")).truth, Truth::unknown);  // Tegra
  EXPECT_EQ(driver_knows_gpu(version("535"), cc("4.0")).truth, Truth::unknown);
}

TEST(Compatibility, ADriverBeforeTheGpusFirstDoesNotServeIt) {
  struct Case {
    const char *driver, *capability;
    Truth truth;
  };
  for (const Case& c : {Case{"470", "10.0", Truth::no},
                        {"570", "10.0", Truth::unknown},  // the branch of its first driver
                        {"570.86.10", "10.0", Truth::yes},
                        {"495.29.05", "3.5", Truth::no},
                        {"384.81", "8.0", Truth::no},
                        {"535", "8.7", Truth::unknown}}) {  // Tegra
    EXPECT_EQ(driver_serves_gpu(version(c.driver), cc(c.capability)).truth, c.truth)
        << c.driver << " " << c.capability;
  }
}

TEST(Compatibility, OfDriversAndToolkits) {
  struct Case {
    const char *driver, *toolkit;
    Truth truth;
  };
  for (const Case& c : {Case{"384.81", "9.0", Truth::yes},
                        {"384.81", "9.1", Truth::no},    // no minor-version compatibility before 11
                        {"418.39", "10.1", Truth::yes},  // the series' first release
                        {"418.39", "10.1.243", Truth::no},   // release-exact
                        {"450.51.05", "11.0", Truth::yes},   // its own, older than 450.80.02
                        {"450.51.05", "11.0.3", Truth::no},  // 11.0.3 has 450.51.06
                        {"450.80.02", "11.8", Truth::yes},
                        {"450.51.06", "11.8", Truth::no},
                        {"470.82.01", "12.1", Truth::no},
                        {"525.60.13", "12.9", Truth::yes},
                        {"525.60.11", "12.0", Truth::no},
                        {"525", "12.9", Truth::unknown},
                        {"530", "12.9", Truth::yes},
                        {"580", "13.3", Truth::yes},
                        {"575.51.03", "13.0", Truth::no},
                        {"600", "14.0", Truth::unknown}}) {
    const Verdict verdict = driver_serves_toolkit(version(c.driver), version(c.toolkit));
    EXPECT_EQ(verdict.truth, c.truth) << c.driver << " " << c.toolkit << ": " << verdict.reason;
  }
}

TEST(Compatibility, NewestToolkit) {
  EXPECT_EQ(newest_toolkit(cc("3.5"), {})->text(), "11.8");
  EXPECT_EQ(newest_toolkit(cc("3.0"), {})->text(), "10.2");
  EXPECT_EQ(newest_toolkit(cc("3.5"), version("440.33"))->text(), "10.2");
  EXPECT_EQ(newest_toolkit(cc("7.0"), {})->text(), "12.9");
  EXPECT_EQ(newest_toolkit(cc("9.0"), version("535.54.03"))->text(), "12.9");
  EXPECT_FALSE(newest_toolkit(cc("9.9"), {}));
}

TEST(Compatibility, ToolkitsThatNeverWere) {
  EXPECT_TRUE(toolkit_exists(version("12.6")).yes());
  EXPECT_TRUE(toolkit_exists(version("11.4.3")).yes());
  EXPECT_TRUE(toolkit_exists(version("12.7")).no());
  EXPECT_THAT(toolkit_exists(version("12.7")).reason, HasSubstr("12.6 and 12.8"));
  EXPECT_EQ(toolkit_exists(version("14")).truth, Truth::unknown);
  EXPECT_EQ(toolkit_exists(version("5.5")).truth, Truth::unknown);
}

TEST(Compatibility, PtxOfANewerToolkitIsNotCompiled) {
  EXPECT_TRUE(driver_compiles_ptx_of(version("470.82.01"), version("11.8")).no());
  EXPECT_TRUE(driver_compiles_ptx_of(version("520.61.05"), version("11.8")).yes());
}

TEST(Compatibility, NamesOfLibraries) {
  struct Case {
    const char *toolkit, *name, *soname;
  };
  for (const Case& c : {Case{"9.0", "cublas", "libcublas.so.9.0"},
                        {"10.0.130", "cusolver", "libcusolver.so.10.0"},
                        {"10.1", "cusolver", "libcusolver.so.10"},
                        {"10.1", "cudart", "libcudart.so.10.1"},
                        {"11.0", "cusolver", "libcusolver.so.10"},
                        {"11.1", "cusolver", "libcusolver.so.11"},
                        {"11.2", "cudart", "libcudart.so.11.0"},
                        {"12.4", "cusparse", "libcusparse.so.12"},
                        {"13.0", "cufft", "libcufft.so.12"}}) {
    EXPECT_EQ(soname_in_toolkit(version(c.toolkit), c.name), c.soname) << c.toolkit;
  }
  EXPECT_FALSE(soname_in_toolkit(version("9.0"), "cublasLt"));
  EXPECT_EQ(soname_of_cudnn(version("8.9.7")), "libcudnn.so.8");
  EXPECT_FALSE(soname_of_cudnn(version("10.0")));
}

TEST(Compatibility, OfCudnnAndGpus) {
  struct Case {
    const char *cudnn, *cuda, *capability;
    Truth truth;
    bool recalled;
  };
  for (const Case& c :
       {Case{"7.6.5", "10.2", "3.5", Truth::yes, false},
        {"7.6.0", "9.1", "3.5", Truth::unknown, false},  // not published for 9.1
        {"8.0.5", "11.0", "8.0", Truth::yes, false},
        {"8.0.5", "11.0", "8.6", Truth::no, false},
        {"8.5", "11.7", "3.7", Truth::yes, false},
        {"8.6", "11.8", "3.7", Truth::unknown, false},
        {"8.7", "11.8", "3.7", Truth::no, true},
        {"8.9.6", "12.2", "3.7", Truth::no, false},
        {"9.1.0", "11.8", "3.7", Truth::no, false},  // gone in 8.9, and not back
        {"9.1.0", "11.8", "8.0", Truth::yes, false},
        {"9.1.0", "12.1", "8.0", Truth::yes, true},
        {"9.3.0", "12.5", "8.0", Truth::unknown, false},  // not the neighbour's answer
        {"9.10.2", "12.8", "7.0", Truth::yes, false},
        {"9.17.1", "12.8", "7.0", Truth::no, false},
        {"9.10.2", "12.6", "12.0", Truth::no, false},
        {"10.0", "13.0", "7.0", Truth::no, false}}) {
    const Verdict verdict = cudnn_knows_gpu(version(c.cudnn), version(c.cuda), cc(c.capability));
    EXPECT_EQ(verdict.truth, c.truth)
        << c.cudnn << " " << c.cuda << " " << c.capability << ": " << verdict.reason;
    EXPECT_EQ(verdict.recalled, c.recalled) << c.cudnn << " " << c.capability;
  }
}

TEST(Compatibility, OfCudnnLoadedAndCompiled) {
  EXPECT_TRUE(cudnn_serves(version("8.0.5"), version("8.1.0")).no());
  EXPECT_TRUE(cudnn_serves(version("8.1.1"), version("8.1.0")).yes());
  EXPECT_TRUE(cudnn_serves(version("8.9.7"), version("8.1.0")).yes());
  EXPECT_TRUE(cudnn_serves(version("9.1.0"), version("8.9")).no());
  EXPECT_EQ(cudnn_serves(version("8"), version("8.1")).truth, Truth::unknown);
}

TEST(Images, RunWhereTheyCan) {
  struct Case {
    const char *image, *capability;
    Truth truth;
  };
  for (const Case& c : {Case{"sm_70", "7.0", Truth::yes},
                        {"sm_70", "7.5", Truth::yes},
                        {"sm_75", "7.0", Truth::no},
                        {"sm_80", "8.9", Truth::yes},
                        {"sm_80", "9.0", Truth::no},
                        {"compute_80", "12.0", Truth::yes},
                        {"compute_80", "7.5", Truth::no},
                        {"9.0+PTX", "10.0", Truth::yes},
                        {"sm_90a", "9.0", Truth::yes},
                        {"compute_90a", "10.0", Truth::no},
                        {"sm_100a", "10.3", Truth::no},
                        {"sm_100f", "10.3", Truth::unknown},
                        {"sm_100f", "12.0", Truth::no}}) {
    const auto image = CodeImage::parse(c.image);
    ASSERT_TRUE(image) << c.image;
    EXPECT_EQ(image_runs(*image, cc(c.capability)).truth, c.truth)
        << c.image << " " << c.capability;
  }
  for (const char* text : {"", "sm_", "compute_", "a", "+PTX", "sm_9", "8"})
    EXPECT_FALSE(CodeImage::parse(text)) << text;
}

}  // namespace
}  // namespace launchgap::doctor
