// What is installed in a Python, read from roots that are made here.
#include "harness/doctor/compatibility/python_packages.h"

#include <algorithm>
#include <random>
#include <sys/stat.h>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include "tests/doctor/folder.h"
#include "tests/sentences/said.h"

namespace launchgap::doctor {
namespace {

using namespace testing;

namespace fs = std::filesystem;
using Environment = std::map<std::string, std::string>;

class Root : public Folder {
 public:
  void program(const std::string& name,
               const std::string& bytes =
                   "\x7f"
                   "ELF") const {
    chmod(write(name, bytes).c_str(), 0755);
  }
  void link(const std::string& name, const std::string& target) const {
    fs::create_directories((path() / name).parent_path());
    fs::create_symlink(target, path() / name);
  }
  void package(const std::string& site, const std::string& name, const std::string& version) const {
    write(fmt::format("{}/{}-{}.dist-info/METADATA", site, name, version),
          fmt::format(
              "Metadata-Version: 2.1\nName: {}\nVersion: {}\n\nName: not this\n", name, version));
  }
  ActivePython python(const Environment& environment) const {
    return active_python(SystemFiles(path()), environment);
  }
};

std::vector<std::string> texts(const ActivePython& python) {
  std::vector<std::string> all;
  for (const PythonPackage& package : python.packages)
    all.push_back(fmt::format("{} {} {}", package.name, package.version, package.location));
  return all;
}

TEST(ActivePython, IsTheOneThatAUserWouldStart) {
  Root root;
  root.program("usr/bin/python3.98");
  root.link("usr/bin/python3", "python3.98");
  root.make_folder("usr/lib/python3.98");
  root.make_folder("usr/lib/python3/dist-packages");
  root.make_folder("usr/local/lib/python3.98/dist-packages");
  root.make_folder("home/u/.local/lib/python3.98/site-packages");
  root.link("venv/bin/python3", "/usr/bin/python3");
  root.link("venv/lib64", "lib");
  root.write("venv/pyvenv.cfg", "home = /usr/bin\ninclude-system-site-packages = false\n");
  root.make_folder("venv/lib/python3.98/site-packages");
  root.link("open/bin/python", "/usr/bin/python3.98");
  root.write("open/pyvenv.cfg", "home = /usr/bin\r\ninclude-system-site-packages = true\r\n");
  root.make_folder("open/lib/python3.98/site-packages");
  root.program("conda/bin/python3.99");
  root.link("conda/bin/python", "python3.99");
  root.make_folder("conda/lib/python3.99/site-packages");
  root.link("bin", "usr/bin");
  root.link("opt/links", "/usr/share/far/../../bin");
  root.link("opt/round", "round");
  root.program("pyenv/shims/python3", "#!/bin/sh\n");
  root.program("pyenv/versions/3.12.1/bin/python3");
  root.write("pyenv/version", "3.12.1\n");
  root.make_folder("pyenv/versions/3.12.1/lib/python3.12/site-packages");
  root.program("script/python3", "#!/bin/sh\n");
  root.make_folder("extra");
  root.make_folder("usr/share/far");

  const std::string system =
      "/usr/local/lib/python3.98/dist-packages /usr/lib/python3/dist-packages";
  const std::string user = "/home/u/.local/lib/python3.98/site-packages " + system;
  const std::string in_venv = "/venv/lib/python3.98/site-packages";
  const Environment plain = {{"PATH", "/usr/bin"}};
  const auto with = [&](Environment more) {
    more.insert(plain.begin(), plain.end());
    return more;
  };
  const struct {
    Environment environment;
    std::string found;  // what chose it, the program, and its folders
  } cases[] = {
      {{{"PATH", "/none:/usr/bin"}}, "PATH /usr/bin/python3: " + system},
      {with({{"HOME", "/home/u"}}), "PATH /usr/bin/python3: " + user},
      {{{"PATH", "/opt/round:/bin"}}, "PATH /bin/python3: " + system},
      {{{"PATH", "/opt/links"}}, "PATH /opt/links/python3: " + system},
      {with({{"HOME", "/home/u"}, {"PYTHONNOUSERSITE", "1"}}), "PATH /usr/bin/python3: " + system},
      {with({{"VIRTUAL_ENV", "/venv"}, {"HOME", "/home/u"}}),
       "VIRTUAL_ENV /venv/bin/python3: " + in_venv},
      {{{"PATH", "/venv/bin:/usr/bin"}}, "PATH /venv/bin/python3: " + in_venv},
      {with({{"VIRTUAL_ENV", "/open"}, {"HOME", "/home/u"}}),
       "VIRTUAL_ENV /open/bin/python: /open/lib/python3.98/site-packages " + user},
      {with({{"CONDA_PREFIX", "/conda"}}),
       "CONDA_PREFIX /conda/bin/python: /conda/lib/python3.99/site-packages"},
      {with({{"VIRTUAL_ENV", "/gone"}}), "PATH /usr/bin/python3: " + system},
      {{{"PATH", "/pyenv/shims:/usr/bin"}},
       "PATH /pyenv/versions/3.12.1/bin/python3: "
       "/pyenv/versions/3.12.1/lib/python3.12/site-packages"},
      {with({{"PYTHONPATH", "/extra::relative:/none"}, {"VIRTUAL_ENV", "/venv"}}),
       "VIRTUAL_ENV /venv/bin/python3: /extra " + in_venv},
      {{{"PATH", "/script"}}, "PATH /script/python3: "},
      {{{"PATH", "/pyenv/shims"}, {"PYENV_VERSION", "../../evil"}}, "PATH /pyenv/shims/python3: "},
      {{{"PATH", "/none"}}, " : "},
      {{}, " : "},
  };
  for (const auto& c : cases) {
    const ActivePython python = root.python(c.environment);
    EXPECT_EQ(fmt::format(
                  "{} {}: {}", python.chosen_by, python.executable, fmt::join(python.folders, " ")),
              c.found);
    EXPECT_EQ(python.unknown.empty(), !python.folders.empty()) << python.unknown;
  }
}

constexpr const char* kSite = "venv/lib/python3.11/site-packages";
const Environment kVenv = {{"VIRTUAL_ENV", "/venv"}};

class Venv : public Root {
 public:
  Venv() {
    program("venv/bin/python3");
    write("venv/pyvenv.cfg", "home = /usr/bin\n");
    make_folder(kSite);
  }
  void install(const std::string& name, const std::string& version) const {
    package(kSite, name, version);
  }
  ActivePython python() const { return Root::python(kVenv); }
};

TEST(PythonPackages, AreReadFromTheirMetadata) {
  Venv venv;
  const std::string site = kSite;
  venv.install("torch", "2.3.0+cu121");
  venv.write(site + "/torch/version.py",
             "__version__ = '2.3.0+cu121'\ndebug = False\ncuda: Optional[str] = "
             "'12.1'\ngit_version = 'x'\n");
  venv.write(site + "/torch/lib/libtorch_cuda.so");
  venv.install("nvidia_cublas_cu12", "12.1.3.1");
  venv.make_folder(site + "/nvidia/cublas/lib");
  venv.install("numpy", "2.0");
  venv.write(site + "/tensorflow_gpu-2.4.0-py3.8.egg-info/PKG-INFO",
             "Name: tensorflow-gpu\r\nVersion: 2.4.0\r\n");
  venv.write(site + "/tensorflow/python/platform/build_info.py",
             "build_info = collections.OrderedDict([('cpu_compiler', 'x'), ('cuda_version', "
             "'11.0'), ('is_cuda_build', True)])\n");
  venv.write(site + "/jaxlib-0.4.egg-info", "Name: jaxlib\nVersion: 0.4\n");
  const ActivePython python = venv.python();
  const auto find = [&](std::string_view name) -> PythonPackage {
    const auto found = std::ranges::find(python.packages, name, &PythonPackage::name);
    return found == python.packages.end() ? PythonPackage{} : *found;
  };
  EXPECT_THAT(python.packages, SizeIs(4));
  EXPECT_EQ(find("torch").version, "2.3.0+cu121");
  EXPECT_EQ(find("torch").cuda, "12.1");
  EXPECT_TRUE(find("torch").brings_cuda);
  EXPECT_EQ(find("torch").location, "/" + site);
  EXPECT_TRUE(find("nvidia_cublas_cu12").brings_cuda);
  EXPECT_EQ(find("tensorflow-gpu").cuda, "11.0");
  EXPECT_EQ(find("jaxlib").version, "0.4");
  EXPECT_THAT(python_findings(python), IsEmpty());
}

TEST(PythonPackages, TorchsVersionIsReadByAStrictPattern) {
  const struct {
    const char *line, *cuda;
  } cases[] = {
      {"cuda = '11.3'", "11.3"},
      {"cuda: Optional[str] = \"12.8\"", "12.8"},
      {"cuda = None", "none"},
      {"cuda: Optional[str] = None\r", "none"},
      {"# cuda = '11.3'", ""},
      {"cuda = '11.3'; import os", ""},
      {"cuda = '11'", ""},
      {"cuda = '"
       "\x1b"
       "[31m'",
       ""},
      {"cuda = __import__('os').system('true')", ""},
      {"", ""},
  };
  for (const auto& c : cases) {
    Venv venv;
    venv.install("torch", "2.3.0");
    venv.write(std::string(kSite) + "/torch/version.py", std::string("x = 1\n") + c.line + "\n");
    EXPECT_EQ(venv.python().packages.at(0).cuda, c.cuda) << c.line;
  }
}

TEST(PythonPackages, HostileMetadataIsSurvived) {
  Venv venv;
  const std::string site = kSite;
  std::mt19937 random(1);
  std::string noise(200'000, '\0');
  for (char& c : noise) c = static_cast<char>(random());
  venv.write(site + "/torch-1.0.dist-info/METADATA", noise);
  venv.write(site + "/jax-\x1b[2J.dist-info/METADATA", "Name: jax\nVersion: \x1b[31m\n");
  venv.write(site + "/jaxlib-2.dist-info/METADATA", std::string(8 << 20, 'x'));
  venv.write(site + "/cupy-3.dist-info/METADATA", "Name: something-else\nVersion: 3\n");
  venv.make_folder(site + "/tf_nightly-4.dist-info/METADATA");
  mkfifo((venv.path() / site / "tensorflow.egg-info").c_str(), 0600);
  venv.write(site + "/nvidia_.dist-info/METADATA", "");
  venv.link(site + "/loop.pth", "loop.pth");
  venv.write(site + "/big.pth", std::string(1 << 20, '/'));
  venv.write(site + "/code.pth", "import os; os.system('touch /tmp/launchgap-was-here')\n");
  const ActivePython python = venv.python();
  for (const PythonPackage& package : python.packages) {
    EXPECT_EQ(package.name.find('\x1b'), std::string::npos);
    EXPECT_EQ(package.version.find('\x1b'), std::string::npos);
    EXPECT_LE(package.version.size(), 110);
  }
  EXPECT_EQ(std::ranges::count(python.packages, "cupy", &PythonPackage::name), 1);
  EXPECT_EQ(std::ranges::count(python.packages, "jaxlib", &PythonPackage::name), 1);
  EXPECT_FALSE(fs::exists("/tmp/launchgap-was-here"));
}

TEST(PythonPackages, FoldersOfPthFilesCount) {
  Venv venv;
  const std::string site = kSite;
  venv.write(site + "/mine.pth", "# comment\n/src/torch\n../other\n/none\n");
  venv.make_folder("src/torch");
  venv.make_folder("venv/lib/python3.11/other");
  venv.package("src/torch", "torch", "2.9");
  EXPECT_THAT(venv.python().folders,
              ElementsAre("/" + site, "/src/torch", "/venv/lib/python3.11/other"));
  EXPECT_THAT(texts(venv.python()), ElementsAre("torch 2.9 /src/torch"));
}

TEST(FrameworkInstalledTwice, SaysWhichOneWins) {
  Root root;
  root.program("usr/bin/python3.11");
  root.link("usr/bin/python3", "python3.11");
  root.package("home/u/.local/lib/python3.11/site-packages", "torch", "1.13.0");
  root.package("usr/lib/python3/dist-packages", "torch", "2.3.0");
  root.package("usr/lib/python3/dist-packages", "jax", "0.4");
  const auto findings =
      said(python_findings(root.python({{"PATH", "/usr/bin"}, {"HOME", "/home/u"}})));
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].code, "framework-installed-twice");
  EXPECT_EQ(findings[0].severity, Severity::distorts);
  EXPECT_EQ(findings[0].sentence,
            "torch is installed 2 times: `import torch` takes torch 1.13.0 of "
            "/home/u/.local/lib/python3.11/site-packages.");
  EXPECT_THAT(findings[0].remedy, HasSubstr("/usr/bin/python3 -m pip uninstall torch"));
}

TEST(FrameworkInstalledTwice, SideBySideTheLastOneInstalledWins) {
  Venv venv;
  venv.install("tensorflow", "2.4.0");
  venv.install("tensorflow_gpu", "2.3.0");
  venv.install("cupy_cuda12x", "13.0");
  venv.install("cupy-cuda11x", "13.0");
  const auto findings = said(python_findings(venv.python()));
  ASSERT_THAT(findings, SizeIs(2));
  EXPECT_EQ(findings[0].subject, "tensorflow");
  EXPECT_THAT(findings[0].sentence, HasSubstr("installed last"));
  EXPECT_EQ(findings[1].subject, "cupy");
}

TEST(NormalisedName, AsInPep503) {
  EXPECT_EQ(normalised_name("Tensorflow_GPU"), "tensorflow-gpu");
  EXPECT_EQ(normalised_name("nvidia.-_cublas"), "nvidia-cublas");
}

}  // namespace
}  // namespace launchgap::doctor
