// The tables read, and agree with each other and with arithmetic.
#include <set>

#include <gmock/gmock.h>

#include "harness/core/csv_table.h"
#include "harness/core/errors.h"
#include "harness/doctor/compatibility/compatibility.h"
#include "harness/doctor/compatibility/compatibility_tables.h"

namespace launchgap::doctor {
namespace {

using namespace testing;

VersionSet set(const char* text) {
  return VersionSet::parse(text);
}
Version version(const char* text) {
  return *Version::parse(text);
}

TEST(VersionSet, ContainsWhatItSays) {
  struct Case {
    const char *set, *version;
    bool inside;
  };
  for (const Case& c : {Case{"11.2", "11.2.1", true},
                        {"11.2", "11.3", false},
                        {"2.5-2.11", "2.5", true},
                        {"2.5-2.11", "2.11.1", true},
                        {"2.5-2.11", "2.12", false},
                        {"2.5-2.11", "2.4.4", false},
                        {"12.x", "12.9", true},
                        {"12.x", "13.0", false},
                        {"9.11+", "9.19.1", true},
                        {"9.11+", "9.10.2", false},
                        {">=2.8", "3.0", true},
                        {"<=1.12", "1.12.1", true},
                        {"<=1.12", "1.13", false},
                        {"9.0 9.2 10.0", "9.1", false},
                        {"9.0 9.2 10.0", "9.2.148", true},
                        {"1.2-1.3.0", "1.3", true},
                        {"1.2-1.3.0", "1.3.1", false},
                        {"1.3.1-1.5", "1.3.0", false}}) {
    EXPECT_EQ(set(c.set).contains(version(c.version)), c.inside) << c.set << " " << c.version;
  }
}

TEST(VersionSet, RefusesWhatIsNoSet) {
  for (const char* text : {"", " ", "a", "1-", "-1", "2-1", ">=", "1.x.2", "1,2"}) {
    EXPECT_THROW(VersionSet::parse(text), Error) << text;
  }
}

TEST(VersionSet, Overlaps) {
  EXPECT_TRUE(set("8.2").overlaps(set("8.2.2")));
  EXPECT_TRUE(set("1-5").overlaps(set("5.3")));
  EXPECT_FALSE(set("8.2").overlaps(set("8.3-8.5")));
  EXPECT_FALSE(set("9.0.0").overlaps(set("9.10.2 9.11+")));
}

TEST(Capability, IsTwoNumbers) {
  EXPECT_EQ(Capability::parse("12.0"), (Capability{12, 0}));
  EXPECT_EQ(Capability::parse("sm_35"), (Capability{3, 5}));
  EXPECT_EQ(Capability::parse("sm_120"), (Capability{12, 0}));
  for (const char* text : {"", "3", "3.5.1", "sm_", "sm_5", "0.1", "3.55", "sm_9x"}) {
    EXPECT_FALSE(Capability::parse(text)) << text;
  }
}

TEST(Source, SaysWhatWasNotConfirmed) {
  const Source source{"a page; recalled: min_cc cuda"};
  EXPECT_TRUE(source.recalled("min_cc"));
  EXPECT_FALSE(source.recalled("max_cc"));
  EXPECT_TRUE(Source{"recalled; a page"}.recalled("anything"));
  EXPECT_FALSE(Source{"a page"}.recalled("anything"));
}

TEST(Csv, ReadsQuotesAndLineEnds) {
  const CsvTable table = CsvTable::parse("a,b\r\n\"1,\"\"2\"\"\",x\n,\n", "t.csv");
  ASSERT_EQ(table.size(), 2U);
  EXPECT_EQ(table.at(0, "a"), "1,\"2\"");
  EXPECT_EQ(table.at(1, "b"), "");
  EXPECT_THROW(table.at(0, "c"), Error);
}

TEST(Csv, RefusesWhatIsNoTable) {
  for (const char* text :
       {"", "a,a\n", "a,\n", "a,b\n1\n", "a,b\n1,2,3\n", "a\n\"1\n", "a\n\"1\"2\n", "a\n1\"2\n"}) {
    EXPECT_THROW(CsvTable::parse(text, "t.csv"), Error) << text;
  }
}

TEST(Tables, NameTheCellThatDoesNotRead) {
  const auto with = [](std::string_view name, std::string_view text) {
    return [=] {
      Tables::parse(
          [=](std::string_view asked) { return asked == name ? text : embedded_table(asked); });
    };
  };
  EXPECT_THAT(with("toolkit_driver.csv",
                   "toolkit,bundled_driver_linux,min_driver_minor_compat,source\n12.x,1,,s\n"),
              ThrowsMessage<Error>(
                  HasSubstr("data/toolkit_driver.csv, line 2: toolkit '12.x' is no version")));
  EXPECT_THAT(with("pci_gpus.csv", "id,gpu,source\n10de1023,K40m,s\n"),
              ThrowsMessage<Error>(HasSubstr("is no PCI device id")));
  EXPECT_THAT(with("pci_gpus.csv", "id,gpu,source\n1023,K40m,\n"),
              ThrowsMessage<Error>(HasSubstr("source '' is empty")));
  EXPECT_THAT(with("cudnn_sonames.csv", "cudnn,soname,source\n"),
              ThrowsMessage<Error>(HasSubstr("has no rows")));
  EXPECT_THAT(with("cudnn_sonames.csv", ""), ThrowsMessage<Error>(HasSubstr("header")));
}

// --- What the tables say must be possible -------------------------------------------------------

TEST(Generations, EveryGpuHasAnArchitectureAndAName) {
  std::set<std::string> names;
  for (const GpuRow& gpu : tables().gpus) {
    EXPECT_NE(life_of(gpu.capability), nullptr) << gpu.name;
    EXPECT_TRUE(names.insert(gpu.name).second) << gpu.name;
    const auto found = find_gpu(gpu.name);
    ASSERT_TRUE(found) << gpu.name;
    EXPECT_EQ(found->capability, gpu.capability) << gpu.name;
  }
}

TEST(PciDevices, RangesAscendAndFitTheArchitectures) {
  int last = -1;
  for (const PciRange& range : tables().pci_ranges) {
    EXPECT_GT(range.first, last) << range.chip;
    last = range.last;
    const ArchitectureRow* const life = life_of(range.capability);
    ASSERT_NE(life, nullptr) << range.chip;
    EXPECT_EQ(range.architecture, life->architecture) << range.chip;
  }
}

TEST(GpuNames, AreFoundOnceAndHaveAnArchitecture) {
  std::set<std::string> names;
  for (const GpuName& row : tables().gpu_names) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    const auto found = find_gpu(row.name);
    ASSERT_TRUE(found) << row.name;
    EXPECT_EQ(found->capability, row.capability) << row.name;
    EXPECT_NE(life_of(row.capability), nullptr) << row.name;
  }
}

TEST(PciGpus, AreInGenerationsAndInARange) {
  for (const PciGpu& row : tables().pci_gpus) {
    const auto gpu = std::ranges::find(tables().gpus, row.gpu, &GpuRow::name);
    ASSERT_NE(gpu, tables().gpus.end()) << row.gpu;
    const auto found = find_gpu_by_pci(row.id);
    ASSERT_TRUE(found) << row.gpu;
    EXPECT_EQ(found->capability, gpu->capability) << row.gpu;
  }
}

TEST(Toolkits, AscendWithTheirDrivers) {
  const auto& rows = tables().toolkits;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    EXPECT_LT(rows[i - 1].toolkit, rows[i].toolkit);
    EXPECT_LT(rows[i - 1].bundled_driver, rows[i].bundled_driver) << rows[i].toolkit.text();
  }
}

TEST(Toolkits, MinorVersionCompatibilityBeginsAt11AndIsNoStricterThanTheOwnDriver) {
  for (const ToolkitRow& row : tables().toolkits) {
    EXPECT_EQ(row.minimum_driver.has_value(), row.toolkit.major() >= 11) << row.toolkit.text();
    // 11.0 bundles drivers that are older than the minimum of all other 11.x.
    if (!row.minimum_driver || row.toolkit.in_series(version("11.0"))) continue;
    EXPECT_LE(*row.minimum_driver, row.bundled_driver) << row.toolkit.text();
  }
}

TEST(Architectures, LiveForwards) {
  std::set<Capability> seen;
  for (const ArchitectureRow& row : tables().architectures) {
    EXPECT_TRUE(seen.insert(row.capability).second) << row.capability.text();
    EXPECT_EQ(row.last_toolkit.has_value(), row.last_driver_branch.has_value())
        << row.capability.text();
    if (row.last_toolkit) {
      EXPECT_LE(row.first_toolkit, *row.last_toolkit) << row.capability.text();
    }
    if (!row.last_toolkit || *row.last_toolkit < version("8.0")) continue;
    EXPECT_TRUE(toolkit_exists(*row.last_toolkit).yes()) << row.last_toolkit->text();
  }
}

TEST(Cudnn, IsForToolkitsThatExistAndForGpusThatTheyKnow) {
  for (const CudnnRow& row : tables().cudnn) {
    bool any = false;
    for (const ToolkitRow& toolkit : tables().toolkits) {
      if (!row.cuda.contains(toolkit.toolkit)) continue;
      any = true;
      for (const auto& bound : {row.minimum, row.maximum}) {
        if (!bound) continue;
        // A bound may be dropped by the newest toolkits of a row, and come with its newest.
        EXPECT_NE(life_of(*bound), nullptr) << row.cudnn.text() << " " << bound->text();
      }
    }
    EXPECT_TRUE(any) << row.cudnn.text() << " for " << row.cuda.text();
    if (row.minimum && row.maximum) {
      EXPECT_LE(*row.minimum, *row.maximum) << row.cudnn.text();
    }
    const auto known_by_any = [&](Capability bound) {
      return std::ranges::any_of(tables().toolkits, [&](const ToolkitRow& toolkit) {
        return row.cuda.contains(toolkit.toolkit) &&
               toolkit_knows_gpu(toolkit.toolkit, bound).yes();
      });
    };
    if (row.minimum) {
      EXPECT_TRUE(known_by_any(*row.minimum)) << row.cudnn.text() << " " << row.cuda.text();
    }
  }
}

TEST(Cudnn, RowsDoNotContradict) {
  const auto& rows = tables().cudnn;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t j = i + 1; j < rows.size(); ++j) {
      EXPECT_FALSE(rows[i].cudnn.overlaps(rows[j].cudnn) && rows[i].cuda.overlaps(rows[j].cuda))
          << rows[i].cudnn.text() << " and " << rows[j].cudnn.text() << " for "
          << rows[i].cuda.text();
    }
  }
}

TEST(Builds, AreForToolkitsThatExistAndGpusThatTheyKnow) {
  for (const BuildRow& build : tables().builds) {
    const std::string what =
        build.framework + " " + build.versions.text() + " " + build.cuda.text();
    EXPECT_TRUE(toolkit_exists(build.cuda).yes()) << what;
    for (const Capability c : build.code.machine_code) {
      EXPECT_TRUE(toolkit_knows_gpu(build.cuda, c).yes()) << what << " " << c.text();
    }
    EXPECT_TRUE(std::ranges::is_sorted(build.code.machine_code)) << what;
    if (build.code.ptx_target) {
      EXPECT_TRUE(toolkit_knows_gpu(build.cuda, *build.code.ptx_target).yes()) << what;
    }
    if (build.cudnn) {
      EXPECT_TRUE(soname_of_cudnn(*build.cudnn)) << what;
    }
  }
}

TEST(Builds, AreThereOnce) {
  const auto& rows = tables().builds;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t j = i + 1; j < rows.size(); ++j) {
      const bool same = rows[i].framework == rows[j].framework &&
                        rows[i].package == rows[j].package && rows[i].cuda == rows[j].cuda &&
                        rows[i].versions.overlaps(rows[j].versions);
      EXPECT_FALSE(same) << rows[i].framework << " " << rows[i].versions.text() << " and "
                         << rows[j].versions.text() << " for CUDA " << rows[i].cuda.text();
      const bool defaults =
          rows[i].framework == "torch" && rows[i].default_build && rows[j].default_build;
      EXPECT_FALSE(defaults && rows[i].versions.overlaps(rows[j].versions))
          << rows[i].versions.text();
    }
  }
}

TEST(Sonames, AreThereOnceForEveryToolkit) {
  for (const ToolkitRow& toolkit : tables().toolkits) {
    for (const char* library :
         {"cudart", "cublas", "cufft", "curand", "cusolver", "cusparse", "cupti"}) {
      const auto here = [&](const SonameRow& row) {
        return row.name == library && row.versions.contains(toolkit.toolkit);
      };
      EXPECT_EQ(std::ranges::count_if(tables().toolkit_sonames, here), 1)
          << toolkit.toolkit.text() << " " << library;
    }
    const bool has_lt = soname_in_toolkit(toolkit.toolkit, "cublasLt").has_value();
    EXPECT_EQ(has_lt, toolkit.toolkit >= version("10.1")) << toolkit.toolkit.text();
  }
  for (const SonameRow& row : tables().toolkit_sonames) {
    EXPECT_TRUE(row.soname.starts_with("lib" + row.name + ".so.")) << row.soname;
  }
}

TEST(FrameworkLibraries, HaveANameInTheToolkitOfEveryBuild) {
  for (const FrameworkLibraryRow& row : tables().framework_libraries) {
    for (const BuildRow& build : tables().builds) {
      if (build.framework != row.framework || !build.versions.overlaps(row.versions)) continue;
      if (row.name == "cudnn" || row.name == "cuda") continue;
      EXPECT_TRUE(soname_in_toolkit(build.cuda, row.name)) << build.cuda.text() << " " << row.name;
    }
  }
}

}  // namespace
}  // namespace launchgap::doctor
