#include "harness/allocation/gmtrace.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>

#include "harness/allocation/patterns.h"
#include "harness/core/errors.h"
#include "harness/core/input_file.h"
#include "harness/core/output_file.h"

namespace launchgap::allocation {
namespace {

namespace fs = std::filesystem;

const std::string kHead =
    "# gmtrace 1\n# source=rmm sizes=requested truncated=0 devices=1\n"
    "seq,t_ns,op,id,size,align,device,stream,thread,tag\n";
const std::string kTruncatedHead =
    "# gmtrace 1\n# source=torch-snapshot sizes=requested truncated=1 devices=1\n"
    "seq,t_ns,op,id,size,align,device,stream,thread,tag\n";

struct Gmtrace : testing::Test {
  fs::path file(const std::string& text) const {
    fs::path path = folder_.path() / "x.gmtrace.csv";
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  /// What reading it to the end says.
  std::string error(const std::string& text) const {
    const fs::path path = file(text);
    try {
      const auto trace = open_gmtrace(path);
      for (TraceEvent event; trace->next(event);) {
      }
    } catch (const Error& error) {
      const std::string said = error.what(), begin = path.string() + ": ";
      EXPECT_TRUE(said.starts_with(begin)) << said;
      return said.substr(std::min(said.size(), begin.size()));
    }
    return "nothing";
  }

  TemporaryFolder folder_;
};

TEST_F(Gmtrace, IsKnownByItsFirstWordsWithAByteOrderMarkTooAndNotByFewer) {
  EXPECT_TRUE(is_gmtrace(file(kHead)));
  EXPECT_TRUE(is_gmtrace(file("\xEF\xBB\xBF" + kHead)));
  EXPECT_FALSE(is_gmtrace(file("# gm")));
  EXPECT_FALSE(is_gmtrace(file("")));
}

TEST_F(Gmtrace, OfAnotherVersionIsToldByFortyBytesOfIt) {
  EXPECT_THAT(error("# gmtrace " + std::string(40, '7') + "\n"),
              testing::HasSubstr("version '" + std::string(40, '7') + "',"));
  EXPECT_THAT(error("# gmtrace " + std::string(41, '7') + "\n"), testing::HasSubstr("…',"));
}

TEST_F(Gmtrace, IsReadAsDescribed) {
  const auto trace =
      open_gmtrace(file(kHead + "0,0,alloc,0,524288,256,0,3,0,\n"
                                "1,64000,free,0,524288,256,0,3,1,a tag, with a comma\n"
                                "\n# a remark\n"
                                "2,70000,fail,,132870728,256,0,0,0,\r\n"
                                "3,90000,step,,,,,,,1\n"
                                "4,90001,sync,,,,0,,,\n"));
  EXPECT_EQ(trace->head().source, "rmm");
  TraceEvent event;
  ASSERT_TRUE(trace->next(event));
  EXPECT_EQ(event, (TraceEvent{0, 0, 524288, 256, 0, 3, 0, Op::alloc}));
  ASSERT_TRUE(trace->next(event));
  EXPECT_EQ(event, (TraceEvent{64000, 0, 524288, 256, 0, 3, 1, Op::free}));
  ASSERT_TRUE(trace->next(event));
  EXPECT_EQ(event, (TraceEvent{70000, 0, 132870728, 256, 0, 0, 0, Op::fail}));
  ASSERT_TRUE(trace->next(event));
  EXPECT_EQ(event.op, Op::step);
  ASSERT_TRUE(trace->next(event));
  EXPECT_EQ(event.stream, kAllStreams);
  EXPECT_FALSE(trace->next(event));
}

TEST_F(Gmtrace, WhatCannotBeIsNamedWithItsLine) {
  const std::string alloc = "0,0,alloc,0,512,256,0,0,0,\n";
  const struct {
    std::string text, error;
  } cases[] = {
      {"", "it is empty, and no gmtrace"},
      {"seq,t_ns\n", "it does not begin with '# gmtrace 1'"},
      {"# gmtrace 2\n", "it is a gmtrace of version '2', and this launchgap reads 1"},
      {"# gmtrace 1\nseq,t_ns,op\n",
       "line 2: 'seq,t_ns,op' stands where the columns must be named: "
       "seq,t_ns,op,id,size,align,device,stream,thread,tag"},
      {"# gmtrace 1\n# sizes=exact\n",
       "line 2: sizes are 'requested' or 'granted', and not 'exact'"},
      {kHead + alloc + "1,1,free,0,512",
       "line 5: it has 5 fields of 10: the file may have been cut off"},
      {kHead + "0,0,alloc,0,-5,256,0,0,0,\n", "line 4: size -5 is negative"},
      {kHead + "0,0,alloc,0,99999999999999999999,256,0,0,0,\n",
       "line 4: size 99999999999999999999 is out of range"},
      {kHead + "0,0,alloc,0,1125899906842625,256,0,0,0,\n",
       "line 4: size 1125899906842625 is more than 1 PiB"},
      {kHead + "0,0,alloc,0,1125899906842624,256,0,0,0,\n", "nothing"},
      {kHead + "0,0,alloc,0,5x,256,0,0,0,\n", "line 4: size '5x' is no whole number"},
      {kHead + "0,0,alloc,0," + std::string(41, 'x') + ",256,0,0,0,\n",
       "line 4: size '" + std::string(40, 'x') + "…' is no whole number"},
      {kHead + "0,0,alloc,0,512,300,0,0,0,\n", "line 4: align 300 is no power of two"},
      {kHead + "0,0,alloc,,512,256,0,0,0,\n", "line 4: it has no id"},
      {kTruncatedHead + "0,0,alloc,,512,256,0,0,0,\n", "line 4: it has no id"},
      {kHead + "0,0,free,,512,256,0,0,0,\n", "line 4: it has no id"},
      {kHead + "0,0,alloc,0,,256,0,0,0,\n", "line 4: it has no size"},
      {kHead + "0,,alloc,0,512,256,0,0,0,\n", "line 4: it has no t_ns"},
      {kHead + "0,0,malloc,0,512,256,0,0,0,\n", "line 4: there is no op 'malloc'"},
      {kHead + "0,0,free,7,512,256,0,0,0,\n",
       "line 4: allocation 7 is freed, and is not live: it was freed before or never made"},
      {kHead + alloc + "1,1,free,0,512,256,0,0,0,\n2,2,free,0,512,256,0,0,0,\n",
       "line 6: allocation 0 is freed, and is not live: it was freed before or never made"},
      {kHead + alloc + "1,1,alloc,0,512,256,0,0,0,\n",
       "line 5: allocation 0 is made again, and is live since line 4"},
      {kHead + alloc + "1,1,free,0,512,256,0,0,0,\n2,2,alloc,0,512,256,0,0,0,\n",
       "line 6: id 0 comes after 0: ids rise, and none is used again"},
      {kHead + alloc + "1,1,free,0,513,256,0,0,0,\n",
       "line 5: allocation 0 is freed with 513 bytes, and was made with 512 on line 4"},
      {kHead + alloc + "0,1,free,0,512,256,0,0,0,\n", "line 5: seq 0 comes after 0"},
      {kHead + alloc + "1,1,free_req,0,512,,0,0,0,\n2,1,free_req,0,512,,0,0,0,\n",
       "line 6: allocation 0 is given back a second time"},
      {kTruncatedHead + alloc + "1,1,free,0,512,,0,0,0,\n2,1,free,0,512,,0,0,0,\n",
       "line 6: allocation 0 is freed, and is not live: it was freed before or never made"},
      {kHead + alloc + std::string(5000, 'x'), "line 5 (byte 141) is longer than 4096 bytes"},
  };
  for (const auto& [text, expected] : cases)
    EXPECT_EQ(error(text), expected) << text.substr(0, 300);
}

TEST_F(Gmtrace, FactsOfTheHeadAreReadOneByOne) {
  const auto head = [&](const std::string& facts) {
    return open_gmtrace(file("# gmtrace 1\n#" + facts + "\n" + kHead.substr(kHead.find("seq,"))))
        ->head();
  };
  const TraceHead none = head("");
  EXPECT_EQ(none.devices, 1u);
  EXPECT_EQ(none.sizes, Sizes::requested);
  EXPECT_FALSE(none.truncated);
  const TraceHead all = head(" words  source=own =  sizes=granted devices=3 unknown=1 truncated=1");
  EXPECT_EQ(all.source, "own");
  EXPECT_EQ(all.sizes, Sizes::granted);
  EXPECT_EQ(all.devices, 3u);
  EXPECT_TRUE(all.truncated);
  EXPECT_EQ(head(" devices=").devices, 1u);
  EXPECT_EQ(head(" sizes=granted\n# sizes=requested").sizes, Sizes::requested) << "the last";
  EXPECT_EQ(head(" source=" + std::string(40, 's')).source, std::string(40, 's'));
  EXPECT_EQ(head(" source=" + std::string(41, 's')).source, std::string(40, 's') + "…");
  EXPECT_EQ(error("# gmtrace 1\n# truncated=2\n"), "line 2: truncated is 0 or 1, and not '2'");
  EXPECT_EQ(error("# gmtrace 1\n# devices=-1\n"), "line 2: devices -1 is negative");
}

TEST_F(Gmtrace, EveryOpIsWrittenWithWhatItHas) {
  std::vector<TraceEvent> events;
  for (const Op op : {Op::alloc,
                      Op::free_req,
                      Op::free,
                      Op::fail,
                      Op::sync,
                      Op::step,
                      Op::seg_alloc,
                      Op::seg_free,
                      Op::mark})
    events.push_back(
        {.t_ns = 7, .id = 5, .bytes = 64, .device = 1, .stream = 2, .thread = 3, .op = op});
  events[0].align = 256;
  events.push_back(events[4]);
  events.back().stream = kAllStreams;
  TraceInMemory trace({.source = "own", .sizes = Sizes::granted, .truncated = true, .devices = 2},
                      std::move(events));
  const fs::path path = folder_.path() / "ops.gmtrace.csv";
  EXPECT_EQ(write_gmtrace(trace, path), 10u);
  EXPECT_EQ(InputFile(path).text(1 << 20),
            "# gmtrace 1\n# source=own sizes=granted truncated=1 devices=2\n"
            "seq,t_ns,op,id,size,align,device,stream,thread,tag\n"
            "0,7,alloc,5,64,256,1,2,3,\n"
            "1,7,free_req,5,64,,1,2,3,\n"
            "2,7,free,5,64,,1,2,3,\n"
            "3,7,fail,,64,,1,2,3,\n"
            "4,7,sync,,,,1,2,3,\n"
            "5,7,step,,,,1,2,3,\n"
            "6,7,seg_alloc,,64,,1,2,3,\n"
            "7,7,seg_free,,64,,1,2,3,\n"
            "8,7,mark,,,,1,2,3,\n"
            "9,7,sync,,,,1,,3,\n");
}

TEST_F(Gmtrace, AGigabyteInALineIsNotReadOn) {
  const fs::path path = file(kHead);
  fs::resize_file(path, std::uintmax_t{2} << 30);  // a hole, of zeros
  EXPECT_THAT(
      [&] {
        const auto trace = open_gmtrace(path);
        TraceEvent event;
        trace->next(event);
      },
      testing::ThrowsMessage<Error>(testing::HasSubstr("line 4 (byte 114) is longer than")));
}

TEST_F(Gmtrace, FreesOfWhatWasNotSeenAreCountedWhereItIsTruncated) {
  const auto trace = open_gmtrace(file(kTruncatedHead + "0,0,free,90,512,256,0,0,0,\n"
                                                        "1,1,free,,512,256,0,0,0,\n"
                                                        "2,2,alloc,5,512,256,0,0,0,\n"
                                                        "3,3,free,4,512,256,0,0,0,\n"
                                                        "4,4,free,6,512,256,0,0,0,\n"
                                                        "5,5,free_req,4,512,256,0,0,0,\n"));
  TraceEvent event;
  ASSERT_TRUE(trace->next(event));
  EXPECT_EQ(event.op, Op::alloc);
  EXPECT_FALSE(trace->next(event));
  EXPECT_EQ(trace->counts().unseen_frees, 4u) << "what is given back is freed later";
}

TEST_F(Gmtrace, AClockThatGoesBackIsCounted) {
  const auto trace = open_gmtrace(file(kHead + "0,10,alloc,0,512,256,0,0,0,\n"
                                               "1,9,free,0,512,256,0,0,0,\n"
                                               "2,11,step,,,,,,,\n3,10,step,,,,,,,\n"));
  for (TraceEvent event; trace->next(event);) {
  }
  EXPECT_EQ(trace->counts().clock_went_back, 2u);
  EXPECT_EQ(trace->counts().first_clock_line, 5u);
}

TEST_F(Gmtrace, ComesBackAsItWasWritten) {
  for (const char* const name : {"x.gmtrace.csv", "x.gmtrace.csv.gz"}) {
    for (const char* const pattern : {"training/allocations:2000", "thrash/cycles:20", "batches"}) {
      const auto made = make_pattern(CaseName::parse(pattern), 3);
      const fs::path path = folder_.path() / name;
      const std::uint64_t written = write_gmtrace(*made, path);
      EXPECT_TRUE(is_gmtrace(path));
      const auto back = open_gmtrace(path);
      made->rewind();
      std::uint64_t events = 0;
      TraceEvent a, b;
      for (; made->next(a); ++events) {
        ASSERT_TRUE(back->next(b));
        // Of what has none, files tell neither.
        if (a.op == Op::step || a.op == Op::sync) b.stream = a.stream;
        ASSERT_EQ(a, b) << pattern << " " << events;
      }
      EXPECT_FALSE(back->next(b));
      EXPECT_EQ(events, written);
    }
  }
}

TEST_F(Gmtrace, OtherFilesAreNone) {
  EXPECT_FALSE(is_gmtrace(file("Thread,Time,Action\n")));
  EXPECT_FALSE(is_gmtrace(file("")));
  EXPECT_FALSE(is_gmtrace(folder_.path() / "not there"));
  EXPECT_TRUE(is_gmtrace(file("# gmtrace 7\n")));
}

}  // namespace
}  // namespace launchgap::allocation
