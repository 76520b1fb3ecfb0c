// The loader's own account: as glibc writes it, and as it never should.
#include "harness/doctor/libraries/loader_trace.h"

#include <cstdlib>
#include <random>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "harness/core/errors.h"
#include "harness/doctor/libraries/library_copies.h"
#include "tests/doctor/folder.h"

namespace launchgap::doctor {
namespace {

using namespace testing;

namespace fs = std::filesystem;

const fs::path kPrograms = LAUNCHGAP_DOCTOR_PROGRAMS;
const fs::path kFakeCuda = LAUNCHGAP_FAKE_CUDA_FOLDER;

/// As glibc 2.36 writes it.
std::string trace_of(const std::string& lines, int pid = 12) {
  std::string text;
  for (std::size_t begin = 0; begin < lines.size();) {
    const std::size_t end = lines.find('\n', begin);
    text += fmt::format("{:>10}:\t{}\n", pid, lines.substr(begin, end - begin));
    begin = end + 1;
  }
  return text;
}

const LoaderSearch& only(const ProcessTrace& trace) {
  EXPECT_EQ(trace.searches.size(), 1);
  return trace.searches.front();
}

TEST(LoaderTrace, TellsWhereALibraryWasFoundAndWhy) {
  struct Case {
    std::string lines, found, why;
  };
  const std::string wanted =
      "file=libcudnn.so.8 [0];  dynamically loaded by /opt/tf/lib.so [0]\n"
      "find library=libcudnn.so.8 [0]; searching\n";
  const std::string map = "file=libcudnn.so.8 [0];  generating link map\n";
  const Case cases[] = {
      {" search path=/opt/old/lib\t\t(LD_LIBRARY_PATH)\n"
       "  trying file=/opt/old/lib/libcudnn.so.8\n",
       "/opt/old/lib/libcudnn.so.8",
       "LD_LIBRARY_PATH entry /opt/old/lib"},
      {" search path=/a/glibc-hwcaps/x86-64-v3:/a:/b\t\t(LD_LIBRARY_PATH)\n"
       "  trying file=/a/glibc-hwcaps/x86-64-v3/libcudnn.so.8\n"
       "  trying file=/a/libcudnn.so.8\n"
       "  trying file=/b/libcudnn.so.8\n",
       "/b/libcudnn.so.8",
       "LD_LIBRARY_PATH entry /b"},
      {" search path=/a/glibc-hwcaps/x86-64-v3:/a\t\t(LD_LIBRARY_PATH)\n"
       "  trying file=/a/glibc-hwcaps/x86-64-v3/libcudnn.so.8\n",
       "/a/glibc-hwcaps/x86-64-v3/libcudnn.so.8",
       "LD_LIBRARY_PATH entry /a"},
      {" search path=/opt/tf\t\t(RUNPATH from file /opt/tf/lib.so)\n"
       "  trying file=/opt/tf/libcudnn.so.8\n",
       "/opt/tf/libcudnn.so.8",
       "RUNPATH of /opt/tf/lib.so"},
      {" search path=/x/tls/haswell/x86_64:/x\t\t(RPATH from file ./prog (1))\n"
       "  trying file=/x/tls/haswell/x86_64/libcudnn.so.8\n"
       "  trying file=/x/libcudnn.so.8\n",
       "/x/libcudnn.so.8",
       "RPATH of ./prog (1)"},
      {" search cache=/etc/ld.so.cache\n"
       "  trying file=/usr/local/cuda/lib64/libcudnn.so.8\n",
       "/usr/local/cuda/lib64/libcudnn.so.8",
       "the loader's cache"},
      {" search cache=/etc/ld.so.cache\n"
       " search path=/lib:/usr/lib\t\t(system search path)\n"
       "  trying file=/lib/libcudnn.so.8\n"
       "  trying file=/usr/lib/libcudnn.so.8\n",
       "/usr/lib/libcudnn.so.8",
       "default folder /usr/lib"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.why);
    const ProcessTrace trace = parse_loader_trace(trace_of(wanted + c.lines + "\n" + map), 12);
    const LoaderSearch& search = only(trace);
    EXPECT_EQ(search.wanted, "libcudnn.so.8");
    EXPECT_EQ(search.requested_by, "/opt/tf/lib.so");
    EXPECT_TRUE(search.dlopened);
    EXPECT_EQ(search.found, c.found);
    EXPECT_EQ(search.why(), c.why);
    EXPECT_EQ(search.attempts.back().path, c.found);
  }
}

TEST(LoaderTrace, TellsWhereAMissingLibraryWasLookedFor) {
  const ProcessTrace trace = parse_loader_trace(
      trace_of("initialize program: ./t\n"
               "file=libcusolver.so.10 [0];  dynamically loaded by ./t [0]\n"
               "find library=libcusolver.so.10 [0]; searching\n"
               " search path=/opt/cuda/lib64\t\t(LD_LIBRARY_PATH)\n"
               "  trying file=/opt/cuda/lib64/libcusolver.so.10\n"
               " search cache=/etc/ld.so.cache\n"
               " search path=/lib/haswell:/lib:/usr/lib\t\t(system search path)\n"
               "  trying file=/lib/haswell/libcusolver.so.10\n"
               "  trying file=/lib/libcusolver.so.10\n"
               "  trying file=/usr/lib/libcusolver.so.10\n"
               "\n"
               "file=libcublas.so.11 [0];  dynamically loaded by ./t [0]\n"
               "find library=libcublas.so.11 [0]; searching\n"
               "  trying file=/usr/lib/libcublas.so.11\n"
               "file=libcublas.so.11 [0];  generating link map\n"),
      12);
  ASSERT_EQ(trace.searches.size(), 2);
  EXPECT_EQ(trace.program, "./t");
  EXPECT_EQ(trace.searches[0].found, "");
  EXPECT_EQ(trace.searches[0].attempts.size(), 3);
  EXPECT_EQ(trace.searches[0].why(),
            "looked for in LD_LIBRARY_PATH entry /opt/cuda/lib64, the loader's cache, the default "
            "folders");
  EXPECT_EQ(trace.searches[1].found, "/usr/lib/libcublas.so.11");
}

TEST(LoaderTrace, TellsPathsNeedsAndWhatIsGivenBack) {
  const ProcessTrace trace =
      parse_loader_trace(trace_of("file=/opt/libcudnn.so.8 [0];  dynamically loaded by ./t [0]\n"
                                  "file=/opt/libcudnn.so.8 [0];  generating link map\n"
                                  "file=libcublas.so.11 [0];  needed by /opt/libcudnn.so.8 [0]\n"
                                  "find library=libcublas.so.11 [0]; searching\n"
                                  "  trying file=/usr/lib/libcublas.so.11\n"
                                  "file=/opt/libcudnn.so.8 [0];  destroying link map\n"
                                  "file=/opt/none.so [0];  dynamically loaded by ./t [0]\n"),
                         12);
  ASSERT_EQ(trace.searches.size(), 3);
  EXPECT_EQ(trace.searches[0].found, "/opt/libcudnn.so.8");
  EXPECT_EQ(trace.searches[0].why(), "the path that the program gave");
  EXPECT_TRUE(trace.searches[0].unloaded);
  EXPECT_FALSE(trace.searches[1].dlopened);
  EXPECT_EQ(trace.searches[1].found, "");
  EXPECT_EQ(trace.searches[2].why(), "no file of this path could be loaded");
}

TEST(LoaderTrace, ChildrenAndTornLinesAreKeptApart) {
  const std::string parent = trace_of(
      "file=libcuda.so.1 [0];  dynamically loaded by ./t [0]\n"
      "find library=libcuda.so.1 [0]; searching\n"
      "  trying file=/a/libcuda.so.1\n"
      "file=libcuda.so.1 [0];  generating link map\n");
  std::string child = parent;
  for (std::size_t at; (at = child.find(" 12:")) != std::string::npos;)
    child.replace(at, 4, " 13:");
  for (std::size_t at; (at = child.find("/a/")) != std::string::npos;) child.replace(at, 3, "/b/");
  // Line by line in turn, with garbage between.
  std::string mixed;
  std::size_t p = 0, c = 0;
  while (p < parent.size()) {
    const std::size_t p_end = parent.find('\n', p) + 1, c_end = child.find('\n', c) + 1;
    mixed += parent.substr(p, p_end - p) + "torn [0]; gener\n\n:\n12\n     12:\tfile=\n" +
             child.substr(c, c_end - c) + std::string("     12:\t\0\xff\n", 12);
    p = p_end, c = c_end;
  }
  LoaderTraceReader reader;
  for (const char byte : mixed) reader.read({&byte, 1});
  ASSERT_EQ(reader.processes().size(), 2);
  EXPECT_EQ(only(reader.processes().at(12)).found, "/a/libcuda.so.1");
  EXPECT_EQ(only(reader.processes().at(13)).found, "/b/libcuda.so.1");
}

TEST(LoaderTrace, KeepsWhatIsAskedForAndNoMoreThanFits) {
  LoaderTraceReader reader(
      [](std::string_view wanted, std::string_view) { return is_cuda_library(wanted); });
  for (int i = 0; i < 20'000; ++i) {
    reader.read(
        trace_of(fmt::format("file=libx{0}.so [0];  needed by ./t [0]\n"
                             "find library=libx{0}.so [0]; searching\n"
                             "  trying file=/a/libx{0}.so\n"
                             "file=libcuda.so.{0} [0];  needed by ./t [0]\n"
                             "find library=libcuda.so.{0} [0]; searching\n"
                             "  trying file=/a/libcuda.so.{0}\n",
                             i)));
  }
  const ProcessTrace& trace = reader.processes().at(12);
  EXPECT_TRUE(trace.truncated);
  EXPECT_LE(trace.searches.size(), 8192);
  EXPECT_EQ(trace.searches.front().wanted, "libcuda.so.0");

  LoaderTraceReader long_lines;
  const std::string path(1 << 20, 'x');
  long_lines.read("        12:\tfile=" + path + " [0];  needed by ./t [0]\n");
  long_lines.read("        12:\t search path=" + path + "\t\t(LD_LIBRARY_PATH)\n");
  for (const auto& search : long_lines.processes().at(12).searches)
    EXPECT_LE(search.wanted.size(), 4096);
}

TEST(LoaderTrace, SurvivesRandomDamage) {
  const std::string good = trace_of(
      "file=libcuda.so.1 [0];  dynamically loaded by ./t [0]\n"
      "find library=libcuda.so.1 [0]; searching\n"
      " search path=/a:/b\t\t(LD_LIBRARY_PATH)\n"
      "  trying file=/a/libcuda.so.1\n"
      "file=libcuda.so.1 [0];  generating link map\n"
      "file=/a/libcuda.so.1 [0];  destroying link map\n");
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    std::string bad = good;
    for (int byte = 0; byte < 10; ++byte) bad[random() % bad.size()] = static_cast<char>(random());
    (void)parse_loader_trace(bad.substr(random() % 50), 12);
  }
}

/// Runs a program whose loader writes its account into a folder. Returns its process.
pid_t run_traced(const Folder& folder, std::vector<const char*> command) {
  command.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    for (const auto& [name, value] : loader_trace_environment(folder.path()))
      setenv(name.c_str(), value.c_str(), 1);
    setenv("LD_LIBRARY_PATH", kFakeCuda.c_str(), 1);
    execv(command[0], const_cast<char* const*>(command.data()));
    _exit(9);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  return child;
}

TEST(LoaderTrace, OfThisMachinesLoader) {
  const Folder folder;
  const std::string program = kPrograms / "doctor_acts";
  const pid_t child =
      run_traced(folder, {program.c_str(), "open", "libcuda.so.1", "open", "libcusolver.so.10"});
  const std::string text = folder.copy_of(folder.path() / fmt::format("loader.{}", child));
  const ProcessTrace trace = parse_loader_trace(text, child);
  const auto find = [&](std::string_view wanted) -> const LoaderSearch& {
    for (const LoaderSearch& search : trace.searches) {
      if (search.wanted == wanted) return search;
    }
    ADD_FAILURE() << "nothing about " << wanted;
    return trace.searches.front();
  };
  EXPECT_EQ(find("libcuda.so.1").found, (kFakeCuda / "libcuda.so.1").string());
  EXPECT_EQ(find("libcuda.so.1").why(), "LD_LIBRARY_PATH entry " + kFakeCuda.string());
  EXPECT_EQ(find("libcusolver.so.10").found, "");
  EXPECT_THAT(find("libcusolver.so.10").why(),
              HasSubstr("LD_LIBRARY_PATH entry " + kFakeCuda.string() +
                        ", the loader's cache, the default folders"));
  EXPECT_THAT(find("libc.so.6").found, HasSubstr("libc.so.6"));
}

// In a process that was started with the loader's account: the next test starts it.
TEST(LoaderTrace, DISABLED_TellsWhatItLoads) {
  const auto searches = trace_loading({"libcublas.so.13",
                                       "libcusolver.so.10",
                                       "libcublas.so.13",
                                       "libc.so.6",
                                       (kPrograms / "stubs/libcuda.so.1").string()});
  ASSERT_GE(searches.size(), 5);
  EXPECT_EQ(searches[0].found, (kFakeCuda / "libcublas.so.13").string());
  EXPECT_EQ(searches[0].why(), "LD_LIBRARY_PATH entry " + kFakeCuda.string());
  EXPECT_EQ(searches[0].error, "");
  EXPECT_EQ(searches[1].found, "");
  EXPECT_THAT(searches[1].error, HasSubstr("No such file"));
  EXPECT_EQ(searches[2].found, searches[0].found);
  EXPECT_TRUE(searches[3].already_loaded);
  EXPECT_THAT(searches[3].found, HasSubstr("libc.so.6"));
  EXPECT_EQ(searches[4].why(), "the path that the program gave");
}

TEST(LoaderTrace, OfAWorkersOwnLoads) {
  const Folder folder;
  run_traced(folder,
             {"/proc/self/exe",
              "--gtest_also_run_disabled_tests",
              "--gtest_filter=LoaderTrace.DISABLED_TellsWhatItLoads"});
  unsetenv("LD_DEBUG_OUTPUT");
  EXPECT_THROW(trace_loading({}), Error);
}

TEST(LoaderCache, ReadsWhatLdconfigPrints) {
  const LoaderCache cache = LoaderCache::parse(
      "684 libs found in cache `/etc/ld.so.cache'\n"
      "\tlibcuda.so.1 (libc6,x86-64) => /usr/lib/x86_64-linux-gnu/libcuda.so.1\n"
      "\tlibcuda.so.1 (libc6) => /usr/lib/i386-linux-gnu/libcuda.so.1\n"
      "\tlibcusolver.so.11 (libc6,x86-64) => /usr/local/cuda/lib64/libcusolver.so.11\n"
      "\tlibc.so.6 (libc6,x86-64, OS ABI: Linux 3.2.0) => /lib/x86_64-linux-gnu/libc.so.6\n"
      "garbage\n\t\n\tx (y) = z\n\t) => (\nCache generated by: ldconfig (GNU libc) stable release "
      "2.36");
  EXPECT_THAT(cache.paths("libcuda.so.1"),
              ElementsAre("/usr/lib/x86_64-linux-gnu/libcuda.so.1",
                          "/usr/lib/i386-linux-gnu/libcuda.so.1"));
  EXPECT_THAT(cache.paths("libc.so.6"), ElementsAre("/lib/x86_64-linux-gnu/libc.so.6"));
  EXPECT_THAT(cache.names_with("libcusolver.so."), ElementsAre("libcusolver.so.11"));
  EXPECT_FALSE(LoaderCache::of(SystemFiles()).paths("libc.so.6").empty());
  EXPECT_TRUE(LoaderCache::of(SystemFiles("/nonexistent")).empty());
}

TEST(LibraryCopies, AreTheOtherFilesThatTheLoaderWouldHaveHad) {
  const Folder folder;
  const std::string library = folder.copy_of(kPrograms / "stubs/libcuda.so.1");
  folder.write("a/libcuda.so.1", library);
  folder.write("b/libcuda.so.1", library);
  folder.write("text/libcuda.so.1", "no library");
  fs::create_directories(folder.path() / "link");
  fs::create_symlink("../b/libcuda.so.1", folder.path() / "link/libcuda.so.1");
  const std::string at = folder.path();
  const auto copies = other_copies(
      "libcuda.so.1",
      at + "/a/libcuda.so.1",
      fmt::format("{0}/a:{0}/text:{0}/link:{0}/b:{0}/none", at),
      LoaderCache::parse("\tlibcuda.so.1 (libc6,x86-64) => " + at + "/b/libcuda.so.1\n"),
      SystemFiles());
  ASSERT_GE(copies.size(), 1);
  EXPECT_EQ(copies[0].path, at + "/link/libcuda.so.1");
  EXPECT_EQ(copies[0].origin.text(), "LD_LIBRARY_PATH entry " + at + "/link");
  for (std::size_t i = 1; i < copies.size(); ++i)
    EXPECT_EQ(copies[i].path.find(at), std::string::npos);
}

TEST(LibraryCopies, NamesOfCudasLibraries) {
  EXPECT_EQ(library_stem("/opt/libcusolver.so.10.6.1"), "libcusolver");
  EXPECT_EQ(library_stem("libcuda.so"), "libcuda");
  EXPECT_EQ(library_stem(""), "");
  for (const char* name : {"libcuda.so.1",
                           "/x/libcudnn_ops_infer.so.8",
                           "libcublasLt.so.13",
                           "libnvidia-ml.so.1",
                           "libnvidia-ptxjitcompiler.so.580.65.06",
                           "libnvrtc-builtins.so.13.0"})
    EXPECT_TRUE(is_cuda_library(name)) << name;
  for (const char* name :
       {"libc.so.6", "libcudaish.so", "libcudnnx.so", "libm.so", "", "/cuda/libfoo.so"})
    EXPECT_FALSE(is_cuda_library(name)) << name;
  EXPECT_THAT(path_entries("/a::/b;/c"), ElementsAre("/a", ".", "/b", "/c"));
  EXPECT_THAT(path_entries("/a;b:/c", ":"), ElementsAre("/a;b", "/c"));
}

}  // namespace
}  // namespace launchgap::doctor
