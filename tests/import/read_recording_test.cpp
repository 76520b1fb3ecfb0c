#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "harness/import/compressed_text.h"
#include "harness/import/readers.h"
#include "tests/error_of.h"
#include "tests/import/sqlite_file.h"

namespace launchgap::recording {
namespace {

using namespace testing;
namespace fs = std::filesystem;

struct Forms : SqliteFile {
  /// What is said of a file, behind its name.
  std::string says(const std::string& content) const {
    const fs::path path = file(content);
    const std::string message = error_of([&] { read_recording(path); });
    const std::string begin = path.string() + ": ";
    EXPECT_TRUE(message.starts_with(begin)) << message;
    return message.substr(std::min(begin.size(), message.size()));
  }
  /// Compressed, beside the file.
  fs::path packed(const fs::path& path) const {
    fs::path made = path.string() + ".gz";
    CompressedOutput out(made);
    std::ifstream in(path, std::ios::binary);
    out.buffer().assign(std::istreambuf_iterator<char>(in), {});
    out.commit();
    return made;
  }
};

const std::string kNvprof =
    R"(CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start, "end", deviceId, contextId, streamId,
         correlationId, name);
       INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (10, 20, 0, 1, 7, 9, 1);)";

TEST_F(Forms, AreKnownByTheirBeginning) {
  const std::pair<std::string, const char*> cases[] = {
      {"[]", "PyTorch's profiler"},
      {" \t\r\n{\"traceEvents\":[]}", "PyTorch's profiler"},
      {"id,lower,upper,size\nb1,0,3,4\n", "minimalloc"},
      {"Time,Action,Pointer,Size,Stream\n12:00:00.000000,allocate,0x10,256,0\n", "RMM"},
      {"(dp0\nVsegments\n(lp1\nsVdevice_traces\n(lp2\n(("
       "dVaction\nValloc\nsVaddr\nI1\nsVsize\nI512\nsV"
       "time_us\nI1\nsla"
       "s.",
       "PyTorch's memory snapshot"},
  };
  for (const auto& [content, recorder] : cases)
    EXPECT_EQ(read_recording(file(content)).recorder, recorder) << content;
  EXPECT_EQ(read_recording(made_by(kNvprof)).recorder, "nvprof");
}

TEST_F(Forms, OfSqliteMayBeCompressed) {
  const fs::path path = made_by(kNvprof);
  EXPECT_EQ(read_recording(path).form, "SQLite");
  const Recording recording = read_recording(packed(path));
  EXPECT_EQ(recording.form, "SQLite, compressed");
  EXPECT_EQ(recording.file, path.string() + ".gz");
  EXPECT_EQ(recording.processes.at(0).trace.kernels.size(), 1u);
}

TEST_F(Forms, OfSqliteAreTold) {
  EXPECT_EQ(error_of([&] {
              read_sqlite_report(made_by("CREATE VIEW StringIds AS SELECT 1;" + kNvprof));
            }),
            "its StringIds is a view, which is a query of the file's own, and no table: export the "
            "report once more");
  EXPECT_THAT(error_of([&] {
                read_sqlite_report(made_by("CREATE VIEW CUPTI_ACTIVITY_KIND_MEMCPY AS SELECT 1;"));
              }),
              StartsWith("its CUPTI_ACTIVITY_KIND_MEMCPY is a view"));
  EXPECT_EQ(read_sqlite_report(made_by("CREATE VIEW other AS SELECT 1;" + kNvprof)).recorder,
            "nvprof");
  EXPECT_THAT(error_of([&] { read_sqlite_report(made_by("CREATE TABLE other(x);")); }),
              StartsWith("it is SQLite, and has no tables of Nsight Systems or nvprof"));
}

/// That it is a pickle is told by what is said of it then.
TEST_F(Forms, PicklesOfAllProtocolsAreKnown) {
  const auto is_pickle = [&](const std::string& content) {
    return !says(content).starts_with("it has no form that launchgap knows");
  };
  using namespace std::string_literals;
  for (const std::string& yes :
       {"\x80\x02N."s, "\x80\x1FN."s, "("s, "}"s, "]q"s, "cos\nsystem\n"s, "c_a1.B\nx\n."s})
    EXPECT_TRUE(is_pickle(yes)) << yes;
  for (const std::string& no : {"\x80\x01N."s,
                                "\x80\x20N."s,
                                "\x80"s,
                                "]x"s,
                                "cos\nsystem"s,
                                "cos"s,
                                "c\nsystem\n"s,
                                "cos\n\n"s,
                                "co s\nsystem\n"s,
                                "cos\nsys-tem\n"s,
                                "os\nsystem\n"s})
    EXPECT_FALSE(is_pickle(no)) << no;
}

TEST_F(Forms, OfOthersAreNamed) {
  const std::pair<std::string, const char*> cases[] = {
      {"", "it is empty"},
      {"version https://git-lfs.github.com/spec/v1\n", "it is a pointer to a large file"},
      {"/annex/objects/x\n", "`git annex get` brings it"},
      {"<?xml version", "it is XML, a session of nvvp"},
      {"# gmtrace 1\n", "`launchgap replay` plays as it is"},
      {"NVPROF is profiling", "it is a text of nvprof"},
      {"==123== NVPROF", "it is the text that nvprof prints"},
      {"\x7F"
       "ELF",
       "it is a program"},
      {"PK\3\4", "it is a zip archive"},
      {"\x28\xB5\x2F\xFD", "it is compressed by zstd"},
      {"BZh9", "it is compressed by bzip2"},
      {"\xFD"
       "7zXZ",
       "it is compressed by xz"},
      {"QDSTRM", "it is an unfinished report of Nsight Systems"},
      {std::string(3, '\0'), "it begins with zeros only: copy it again"},
      {std::string(3, '\0') + "x", "it has no form that launchgap knows: launchgap reads SQLite "},
      {" \n", "it has no form that launchgap knows"},
      {"\x0A\x04\x08\x01\x10\x02", "it is a profile of pprof"},
      {std::string("\x18\0\0\0\0\0\0\0\xA3\x7F\x4B\x22\x1A\x0D", 14) + "brain.Event:2",
       "it is an event file of TensorBoard"},
  };
  for (const auto& [content, what] : cases) EXPECT_THAT(says(content), HasSubstr(what)) << content;
}

TEST_F(Forms, OfTensorflowsProfilerIsNamed) {
  using namespace std::string_literals;
  for (const std::string& plane : {"\x0A\x85\x01\x08\x81\x02\x12\x09/host:CPU"s,
                                   "\x0A\x05\x12\x0D/device:GPU:0"s,
                                   "\x0A\x05\x08\x01\x12\x10Task Environment"s})
    EXPECT_THAT(says(plane), HasSubstr("it is cut off or damaged: ")) << plane;
  for (const std::string& other : {"\x0B\x05\x12\x09/host:CPU"s,
                                   "\x0A\x05\x13\x09/host:CPU"s,
                                   "\x0A\x05\x08\x01\x13\x09/host:CPU"s,
                                   "\x0A\x05\x12\x09/hosts"s,
                                   "\x0A"s,
                                   "\x0A\x85"s,
                                   "\x0A\x05\x08"s,
                                   "\x0A\x05\x09\x01\x12\x09/host:CPU"s})
    EXPECT_THAT(says(other), StartsWith("it has no form that launchgap knows")) << other;
}

/// Whatever stands in the first 512 bytes of text.
TEST_F(Forms, AreKnownByTheirTextAndNotByItsCompression) {
  const fs::path path = packed(file("id,lower,upper,size\nb1,0,3,4\n"));
  EXPECT_EQ(read_recording(path).recorder, "minimalloc");
  const auto indented = [](std::size_t blanks) { return std::string(blanks, ' ') + "[]"; };
  EXPECT_EQ(read_recording(file(indented(511))).recorder, "PyTorch's profiler");
  EXPECT_THAT(says(indented(512)), StartsWith("it has no form that launchgap knows"));
}

TEST_F(Forms, AreListed) {
  EXPECT_EQ(
      importable_forms(false),
      "SQLite exports of Nsight Systems, profiles of nvprof, memory snapshots of PyTorch, raw "
      "recordings, logs of RMM, problems of minimalloc, XPlanes of TensorFlow and JAX, Chrome "
      "traces of PyTorch's profiler, traces and timelines of TensorFlow and JAX");
  EXPECT_EQ(importable_forms(true),
            "SQLite exports of Nsight Systems (`nsys export --type sqlite REPORT.nsys-rep`), "
            "profiles of nvprof (`--export-profile`), memory snapshots of PyTorch "
            "(`torch.cuda.memory._dump_snapshot()`), raw recordings (`launchgap record`), logs of "
            "RMM, problems of minimalloc, XPlanes of TensorFlow and JAX (`*.xplane.pb`), Chrome "
            "traces of PyTorch's profiler, traces and timelines of TensorFlow and JAX "
            "(`*.trace.json.gz`)");
}

TEST_F(Forms, ErrorsNameTheFileOnce) {
  EXPECT_EQ(error_of([] { read_recording("/nowhere"); }).find("/nowhere: /nowhere"),
            std::string::npos);
  EXPECT_THAT(says("[7"), StartsWith("it is no whole JSON"));
}

// --- Their text ---

TEST_F(Forms, OfTextHaveNoByteOrderMark) {
  EXPECT_EQ(read_recording(file("\xEF\xBB\xBF[]")).recorder, "PyTorch's profiler");
  EXPECT_EQ(says("\xEF\xBB\xBF"), "it is empty");
  for (const char* const utf16 : {"\xFF\xFE[", "\xFE\xFF["})
    EXPECT_EQ(says(utf16), "it is text in UTF-16: save it as UTF-8");
}

struct Compressed : Forms {
  static std::string all(CompressedText& text, std::size_t at_once = 1 << 16) {
    std::string piece(at_once, '\0'), read;
    while (const std::size_t got = text.read(piece.data(), piece.size()))
      read.append(piece, 0, got);
    return read;
  }
};

TEST_F(Compressed, AMarkIsOneAtTheBeginningAlone) {
  CompressedText text(
      file("\xEF\xBB\xBF"
           "a\xEF\xBB\xBF"
           "b"));
  EXPECT_EQ(all(text, 4),
            "a\xEF\xBB\xBF"
            "b");
  CompressedText apart(
      file("\xEF\xBB\xBF"
           "ab"));
  EXPECT_EQ(all(apart, 3), "ab") << "a mark alone is not the end";
}

TEST_F(Compressed, ThatEndTooEarlySaySo) {
  const fs::path path = packed(file(std::string(1000, 'x')));
  fs::resize_file(path, fs::file_size(path) - 9);
  CompressedText text(path);
  EXPECT_TRUE(text.is_compressed());
  EXPECT_THAT(error_of([&] { all(text); }),
              StartsWith("its compression ends too early or is damaged ("));
}

TEST_F(Compressed, UnpackToALimit) {
  constexpr std::size_t kSmall = std::size_t{64} << 20;
  const fs::path path = file("").string() + ".gz";
  {
    CompressedOutput out(path);
    out.buffer().assign(kSmall / 16, 'x');
    for (int i = 0; i < 17; ++i) {
      out.flush_if_long();
      out.buffer().assign(kSmall / 16, 'x');
    }
    out.commit();
  }
  const std::size_t packed_size = fs::file_size(path);
  EXPECT_LT(packed_size * 10, kSmall / 16);
  CompressedText text(path);
  text.limit_unpacking(10);
  std::string piece(std::size_t{1} << 20, '\0');
  const std::size_t most = kSmall + 10 * packed_size;
  for (std::size_t left = most; left > 0;)
    left -= text.read(piece.data(), std::min(left, piece.size()));
  EXPECT_EQ(
      error_of([&] { text.read(piece.data(), 1); }),
      fmt::format("it unpacks to more than 10 times its size (at byte {}), as no recording does",
                  most + 1));
}

TEST_F(Compressed, ThatAreDamagedSaySo) {
  const fs::path path = packed(file(std::string(1000, 'x')));
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary)
      .seekp(-6, std::ios::end)
      .put(7);
  CompressedText text(path);
  EXPECT_THAT(error_of([&] { all(text); }),
              StartsWith("its compression ends too early or is damaged ("));
}

TEST_F(Compressed, WhatIsNotCompressedHasNoSuchLimit) {
  CompressedText text(file("abc"));
  EXPECT_FALSE(text.is_compressed());
  text.limit_unpacking(0);
  EXPECT_EQ(all(text), "abc");
}

TEST_F(Compressed, AreWrittenInPieces) {
  const fs::path path = file("").string() + ".gz";
  std::string expected;
  CompressedOutput out(path);
  for (const std::size_t size : {std::size_t{1} << 20, (std::size_t{1} << 20) + 1}) {
    std::string some(size, 'x');
    // What has no pattern fills many buffers.
    std::uint32_t state = 1;
    for (char& c : some) c = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
    out.buffer() = some;
    out.flush_if_long();
    EXPECT_EQ(out.buffer().empty(), size > std::size_t{1} << 20);
    if (out.buffer().empty()) expected = some;
  }
  out.buffer() = "end";
  out.commit();
  CompressedText text(path);
  EXPECT_TRUE(all(text) == expected + "end");
  EXPECT_TRUE(text.is_compressed());
}

}  // namespace
}  // namespace launchgap::recording
