#include "harness/import/event_file.h"

#include <csignal>
#include <fstream>
#include <limits>
#include <zlib.h>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "harness/core/input_file.h"
#include "harness/core/output_file.h"
#include "harness/core/stop.h"
#include "tests/error_of.h"
#include "tests/import/job.h"

namespace launchgap::recording {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

template <class Integer>
constexpr Integer kLeast = std::numeric_limits<Integer>::min();
template <class Integer>
constexpr Integer kMostInteger = std::numeric_limits<Integer>::max();

/// A file of events in a folder of its own.
struct EventFile : testing::Test {
  struct Read {
    EventsHead head;
    Process process;
    std::size_t blocks = 0;
  };
  /// All blocks together.
  Read read() const {
    Read result;
    read_events(file_,
                {[&](const EventsHead& head) { result.head = head; },
                 [&](const Process& block) {
                   ++result.blocks;
                   Process& all = result.process;
                   all.pid = block.pid;
                   all.rank = block.rank;
                   all.threads = block.threads;
                   all.streams = block.streams;
                   all.trace.set_names(block.trace.names());
                   const auto append = [](auto& to, const auto& from) {
                     to.insert(to.end(), from.begin(), from.end());
                   };
                   append(all.trace.calls, block.trace.calls);
                   append(all.trace.kernels, block.trace.kernels);
                   append(all.trace.transfers, block.trace.transfers);
                   append(all.trace.graphs, block.trace.graphs);
                   append(all.trace.overheads, block.trace.overheads);
                   append(all.trace.waits, block.trace.waits);
                   append(all.trace.memory, block.trace.memory);
                   append(all.ranges, block.ranges);
                 }});
    return result;
  }
  Read written(const Process& process, const EventsHead& head = {}) const {
    fs::remove(file_);
    EventWriter(file_).write(head, process);
    return read();
  }

  std::string bytes() const { return InputFile(file_).text(1 << 22); }
  void put(std::string_view bytes) const {
    std::ofstream(file_, std::ios::binary | std::ios::trunc) << bytes;
  }
  std::string text() const {
    std::string result;
    const gzFile in = gzopen(file_.c_str(), "rb");
    char some[4096];
    for (int got; (got = gzread(in, some, sizeof some)) > 0;)
      result.append(some, static_cast<std::size_t>(got));
    gzclose(in);
    return result;
  }
  void put_text(const std::string& text) const {
    const gzFile out = gzopen(file_.c_str(), "wb");
    gzwrite(out, text.data(), static_cast<unsigned>(text.size()));
    gzclose(out);
  }

  /// The message of the Error that reading is.
  std::string error(const std::string& what) const {
    SCOPED_TRACE(what);
    std::string says = error_of([&] { read(); });
    EXPECT_THAT(says, HasSubstr(file_.string()));
    EXPECT_THAT(says, Not(HasSubstr("\n")));
    return says;
  }

  const TemporaryFolder folder_;
  const fs::path file_ = folder_.path() / "events.jsonl.gz";
};

/// An event of each kind.
Process one_of_each() {
  Job job = Job().call(100, 200, 1).kernel(300, 400, 1).transfer(500, 600, true).graph(700, 800, 2);
  job.range(50, 900, "step");
  job.process.trace.overheads.push_back({1, 2, 3, activity::OverheadKind::buffer_request});
  job.process.trace.waits.push_back({4, 5, 6, 7});
  job.process.trace.memory.push_back({8, 9, 10, 11, 12, 13, true, 14});
  return job.process;
}

TEST_F(EventFile, GivesBackEveryField) {
  using namespace activity;
  constexpr auto k32 = kMostInteger<std::uint32_t>;
  constexpr auto k64 = kMostInteger<std::uint64_t>;
  constexpr auto kEarly = kLeast<std::int64_t>, kLate = kMostInteger<std::int64_t>;
  Process process;
  process.pid = k64;
  process.rank = kLeast<std::int64_t>;
  process.threads = {"main", "4242/7", ""};
  process.streams = {{k64, k64 - 1, k64 - 2}, {0, 0, 0}, {1, 2, 3}};
  process.trace.set_names({"a", "b", "c"});
  process.trace.calls = {{kEarly, kLate, k32, 2, 1, Domain::runtime, Purpose::wait},
                         {1, 2, 3, 0, 2, Domain::host, Purpose::other},
                         {4, 5, 6, 1, 0, Domain::driver, Purpose::launch_graph}};
  constexpr auto kWide = kMostInteger<std::int32_t>, kNarrow = kLeast<std::int32_t>;
  process.trace.kernels = {{kLate, kEarly, k32, 2, 1, {kWide, kNarrow, -1}, {0, 7, kWide - 1}},
                           {1, 2, 3, 0, 2, {2, 3, 4}, {5, 6, 7}}};
  process.trace.transfers = {{-1, 0, k64, k32, 2, true}, {1, 2, 3, 4, 1, false}};
  process.trace.graphs = {{kEarly, kLate, k32, k32 - 1, 2}, {1, 2, 3, 4, 1}};
  process.trace.overheads = {{kEarly, kLate, k32, OverheadKind::other},
                             {1, 2, 3, OverheadKind::buffer_request}};
  process.trace.waits = {{kEarly, kLate, k32, k32 - 1}};
  process.trace.memory = {{kEarly, k64, k64 - 1, k64 - 2, k32, k32 - 1, true},
                          {kLate, std::uint64_t{1} << 63, 2, 3, 4, 5, false}};
  process.ranges = {{kEarly, kLate, 2, 1}, {1, 2, 0, 0}};
  const EventsHead head{"a recorder \"1\"",
                        "a clock",
                        k64,
                        kLeast<std::int64_t>,
                        {{k64, "a GPU", "GPU-1", "9.0", k64}, {0, "", "", "", std::nullopt}}};

  const Read back = written(process, head);
  EXPECT_EQ(back.head.recorder, head.recorder);
  EXPECT_EQ(back.head.clock, head.clock);
  EXPECT_EQ(back.head.pid, head.pid);
  EXPECT_EQ(back.head.rank, head.rank);
  EXPECT_EQ(back.head.gpus, head.gpus);
  EXPECT_EQ(back.process.pid, process.pid);
  EXPECT_EQ(back.process.rank, process.rank);
  EXPECT_EQ(back.process.threads, process.threads);
  EXPECT_EQ(back.process.streams, process.streams);
  EXPECT_EQ(back.process.trace.names(), process.trace.names());
  EXPECT_EQ(back.process.trace.calls, process.trace.calls);
  EXPECT_EQ(back.process.trace.kernels, process.trace.kernels);
  EXPECT_EQ(back.process.trace.transfers, process.trace.transfers);
  EXPECT_EQ(back.process.trace.graphs, process.trace.graphs);
  EXPECT_EQ(back.process.trace.overheads, process.trace.overheads);
  EXPECT_EQ(back.process.trace.waits, process.trace.waits);
  EXPECT_EQ(back.process.trace.memory, process.trace.memory);
  ASSERT_EQ(back.process.ranges.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    const Range &range = process.ranges[i], &found = back.process.ranges[i];
    EXPECT_EQ(found.begin_ns, range.begin_ns);
    EXPECT_EQ(found.end_ns, range.end_ns);
    EXPECT_EQ(found.thread, range.thread);
    EXPECT_EQ(found.name, range.name);
  }
}

TEST_F(EventFile, WritesAddressesAsTheyAre) {
  Process process;
  process.trace.memory = {{1, 0xFFFF'FFFF'FFFF'FF00, 2, 3, 4, 5, true}};
  written(process);
  EXPECT_THAT(text(), HasSubstr(R"("address":[18446744073709551360],"bytes":[2])"));
}

TEST_F(EventFile, GivesBackNamesOfAnyBytes) {
  Process process;
  process.threads = {"a \"thread\"\n"};
  process.trace.set_names(
      {"operator\"\" _x", "a\\b", "a\nb\tc\r\x01\x7F", "", "größer", "\U0001F600", "</script>"});
  process.ranges = {{1, 2, 0, 0}};
  const Read back = written(process, {"\"", "\n", 1, {}, {}});
  EXPECT_EQ(back.head.recorder, "\"");
  EXPECT_EQ(back.head.clock, "\n");
  EXPECT_EQ(back.process.threads, process.threads);
  EXPECT_EQ(back.process.trace.names(), process.trace.names());
}

TEST_F(EventFile, GivesBackNamesThatAreNoUtf8WithMarksForWhatIsNone) {
  Process process;
  process.threads = {"t"};
  process.trace.set_names(
      {"a\xFF"
       "b",
       "\xC3",
       "\xED\xA0\x80"});
  process.ranges = {{1, 2, 0, 0}};
  const auto names = written(process).process.trace.names();
  ASSERT_EQ(names.size(), 3u);
  EXPECT_EQ(names[0], "a\uFFFDb");
  EXPECT_THAT(names[1], HasSubstr("\uFFFD"));
  EXPECT_THAT(names[2], HasSubstr("\uFFFD"));
}

TEST_F(EventFile, MayHaveNoEvents) {
  const Read back = written(Process(), {"r", "c", 7, 0, {}});
  EXPECT_EQ(back.blocks, 0u);
  EXPECT_EQ(back.head.pid, 7u);
  EXPECT_EQ(back.head.rank, 0);
}

TEST_F(EventFile, IsReadBlockByBlock) {
  const struct {
    int launches;
    std::size_t blocks;
  } cases[] = {{8191, 2}, {8192, 2}, {8193, 4}, {20'000, 6}};  // of calls and of kernels
  for (const auto& [launches, blocks] : cases) {
    const Job job = steady(launches);
    const Read back = written(job.process);
    EXPECT_EQ(back.blocks, blocks) << launches;
    EXPECT_EQ(back.process.trace.calls, job.process.trace.calls) << launches;
    EXPECT_EQ(back.process.trace.kernels, job.process.trace.kernels) << launches;
  }
}

TEST_F(EventFile, IsOnlyWrittenWhereNothingIs) {
  put("something");
  EXPECT_THROW(EventWriter{file_}, WriteError);
  EXPECT_EQ(bytes(), "something");
}

TEST_F(EventFile, ThatIsCutOffAnywhereIsAnError) {
  written(one_of_each());
  const std::string whole = bytes();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    put(std::string_view(whole).substr(0, size));
    error(fmt::format("{} of {} bytes", size, whole.size()));
  }
}

TEST_F(EventFile, WithOneByteThatIsAnotherIsAnErrorOrTheSame) {
  const Process process = one_of_each();
  written(process);
  const std::string whole = bytes();
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string other = whole;
    other[at] = static_cast<char>(~other[at]);
    put(other);
    try {
      const Read back = read();
      EXPECT_EQ(back.process.trace.calls, process.trace.calls) << at;
      EXPECT_EQ(back.process.trace.memory, process.trace.memory) << at;
      EXPECT_EQ(back.process.ranges.size(), process.ranges.size()) << at;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(file_.string())) << at;
    }
  }
}

std::string replaced(std::string text, std::string_view old, std::string_view with) {
  const std::size_t at = text.find(old);
  EXPECT_NE(at, std::string::npos) << old << " in " << text;
  return at == std::string::npos ? text : text.replace(at, old.size(), with);
}

TEST_F(EventFile, OfAnotherContentIsAnErrorThatSaysWhatIsWrong) {
  const struct {
    const char *old, *with, *message;
  } cases[] = {
      {R"("correlation":[1])", R"("correlation":[])", "\"correlation\" has 0 values"},
      {R"("end_ns":[100])", R"("end_ns":[200,300])", "\"end_ns\" has 2 values"},
      {R"("end_ns":[100])", R"("end_ns":[2e9])", "cannot be: 2000000000"},
      {R"("end_ns":[100])", R"("end_ns":["200"])", "cannot be: a string"},
      {R"("end_ns":[100])", R"("end_ns":[null])", "cannot be"},
      {R"("end_ns":[100])", R"("end_ns":[18446744073709551615])", "cannot be: 1844"},
      {R"("end_ns":[100])", R"("end_ns":200)", "\"end_ns\" is 200"},
      {R"("thread":[0])", R"("thread":[1])", "a thread has the number 1 of 1"},
      {R"("thread":[0])", R"("thread":[4294967296])", "cannot be: 4294967296"},
      {R"("thread":[0])", R"("thread":[-1])", "cannot be: -1"},
      {R"("name":[0])", R"("name":[3])", "a name has the number 3 of 3"},
      {R"("stream":[0],"name":[1])", R"("stream":[0],"name":[3])", "a name has the number 3 of 3"},
      {R"("stream":[0],"name":[1])", R"("stream":[1],"name":[1])", "a stream has the number 1"},
      {R"("stream":[0],"bytes")", R"("stream":[1],"bytes")", "a stream has the number 1"},
      {R"("stream":[0],"graph")", R"("stream":[1],"graph")", "a stream has the number 1"},
      {R"("thread":[0],"name":[2])", R"("thread":[1],"name":[2])", "a thread has the number 1"},
      {R"("thread":[0],"name":[2])", R"("thread":[0],"name":[9])", "a name has the number 9"},
      {R"("domain":[2])", R"("domain":[3])", "a domain of calls is of a later launchgap"},
      {R"("domain":[2])", R"("domain":[258])", "cannot be: 258"},
      {R"("purpose":[1])", R"("purpose":[8])", "a purpose of calls is of a later launchgap"},
      {R"("overhead":[8])", R"("overhead":[9])", "a kind of overhead is of a later launchgap"},
      {R"("fill":[1])", R"("fill":[2])", "cannot be: 2"},
      {R"("release":[1])", R"("release":[-1])", "cannot be: -1"},
      {R"("grid_x":[1])", R"("grid_x":[2147483648])", "cannot be: 2147483648"},
      {R"("grid_x":[1],)", "", "\"grid_x\" has 0 values"},
      {R"("names":[)", R"("names":[7,)", "\"names\" is an array"},
      {R"("names":[)", R"("name":[)", "\"names\" is missing"},
      {R"("threads":["main"])", R"("threads":"main")", "\"threads\" is a string"},
      {R"("streams":[[0,1,7]])", R"("streams":[[0,1]])", "a stream has not three numbers"},
      {R"("streams":[[0,1,7]])", R"("streams":[[0,1,-7]])", "a stream has not three numbers"},
      {R"("streams":[[0,1,7]])", R"("streams":[7])", "a stream has not three numbers"},
      {R"("gpus":[])", R"("gpus":[7])", "it is a number and no object"},
      {R"("gpus":[])", R"("gpus":{})", "\"gpus\" is an object"},
      {R"("pid":0)", R"("pid":-1)", "\"pid\" is -1"},
      {R"("events":8)", R"("events":9)", "it has 8 of its 9 events"},
      {R"("events":8)", R"("event":8)", "\"events\" is missing"},
      {R"("record":"event_names")", R"("record":"names")", "it does not begin with its names"},
      {R"("record":"event_names")", R"("record":7)", "\"record\" is 7"},
      {R"("kind":"call")", R"("kind":"calls")", "it has 7 of its 8 events"},
      {R"("kind":"call",)", "", "\"kind\" is missing"},
      {"{", "", "parse error"},
      {"}\n", "}", "parse error"},
  };
  written(one_of_each());
  const std::string whole = text();
  for (const auto& [old, with, message] : cases) {
    const std::string what = fmt::format("{} for {}", with, old);
    put_text(replaced(whole, old, with));
    EXPECT_THAT(error(what), HasSubstr(message)) << what;
  }
}

TEST_F(EventFile, OlderOnesDoNotSayOnWhichGpuMemoryIs) {
  written(one_of_each());
  put_text(replaced(text(), R"(,"gpu":[14])", ""));
  bool seen = false;
  EventVisitor visitor;
  visitor.block = [&](const Process& process) {
    for (const activity::Memory& memory : process.trace.memory) {
      EXPECT_EQ(memory.gpu, 0u);
      EXPECT_TRUE(memory.release);
      seen = true;
    }
  };
  read_events(file_, visitor);
  EXPECT_TRUE(seen);
}

TEST_F(EventFile, HasItsNamesFirst) {
  written(one_of_each());
  const std::string whole = text();
  const std::string names = whole.substr(0, whole.find('\n') + 1);
  put_text(names + whole);
  EXPECT_THAT(error("names twice"), HasSubstr("it has 0 of its 8 events"));
  put_text(whole.substr(names.size()));
  EXPECT_THAT(error("no names"), HasSubstr("it does not begin with its names"));
  put_text(whole.substr(names.size()) + names);
  EXPECT_THAT(error("names last"), HasSubstr("it does not begin with its names"));
  put_text("");
  EXPECT_THAT(error("nothing"), HasSubstr("it is empty"));
}

TEST_F(EventFile, MayHaveSectionsOfDifferentNames) {
  Job first, second;
  first.call(100, 200, 1).range(50, 900, "step");
  second.kernel(5'000, 6'000, 1);
  {
    EventWriter writer(file_);
    writer.write({"r", "c", 7, {}, {}, "launch/null/mode:idle", 3}, first.process);
    writer.write({"r", "c", 7, {}, {}, "launch/null/mode:burst"}, second.process);
  }
  std::vector<EventsHead> heads;
  std::vector<std::string> names;
  read_events(file_,
              {[&](const EventsHead& head) { heads.push_back(head); },
               [&](const Process& block) {
                 for (const auto& call : block.trace.calls)
                   names.push_back(block.trace.name(call.id));
                 for (const auto& kernel : block.trace.kernels)
                   names.push_back(block.trace.name(kernel.name));
               }});
  ASSERT_EQ(heads.size(), 2u);
  EXPECT_EQ(heads[0].case_name, "launch/null/mode:idle");
  EXPECT_EQ(heads[0].block, 3);
  EXPECT_EQ(heads[0].first_ns, 50);
  EXPECT_EQ(heads[1].case_name, "launch/null/mode:burst");
  EXPECT_EQ(heads[1].block, std::nullopt);
  EXPECT_EQ(heads[1].first_ns, 5'000);
  EXPECT_EQ(names.size(), 2u);
}

TEST_F(EventFile, BlocksThatNobodyWantsArePassedOver) {
  const Job job = steady(20'000);
  written(job.process);
  const std::int64_t at = job.process.trace.calls[15'000].begin_ns;
  std::size_t blocks = 0;
  bool found = false;
  read_events(file_,
              {{},
               [&](const Process& block) {
                 ++blocks;
                 for (const auto& call : block.trace.calls) found = found || call.begin_ns == at;
               },
               [&](std::int64_t first, std::int64_t last) { return first <= at && at <= last; }});
  EXPECT_TRUE(found);
  EXPECT_LE(blocks, 2u) << "one of calls, and one of kernels";
}

TEST_F(EventFile, ThatIsNoneIsAnError) {
  put("This is a text.\n");
  error("a text");
  put(std::string("\0\1\2\3\n", 5));
  error("bytes");
  put("\x1F\x8B");
  error("the first two bytes of gzip");
  fs::remove(file_);
  error("no file");
  fs::create_directory(file_);
  error("a folder");
}

TEST_F(EventFile, DoesNotTakeTheBlameForWhatIsMadeOfIt) {
  written(one_of_each());
  const auto fail = [&](const Process&) { throw WriteError(std::string("the disk is full")); };
  EXPECT_THAT(
      [&] {
        read_events(file_, {{}, fail});
      },
      testing::ThrowsMessage<WriteError>("the disk is full"));
}

TEST_F(EventFile, HasBlocksOf8192Events) {
  for (const int n : {8192, 8193}) {
    Process process = steady(n).process;
    process.trace.kernels.clear();
    const Read back = written(process);
    EXPECT_EQ(back.blocks, n == 8192 ? 1u : 2u);
    EXPECT_EQ(back.process.trace.calls, process.trace.calls);
    EXPECT_THAT(text(), HasSubstr(R"("kind":"call","n":8192,"first_ns":10000000000,"last_ns":)"));
  }
}

TEST_F(EventFile, AreBesideTheirRecords) {
  EXPECT_EQ(events_of("a/records/x.jsonl"), fs::path("a/events/x.jsonl.gz"));
}

TEST_F(EventFile, IsLeftOffWhenAskedTo) {
  written(one_of_each());
  const SignalWatch watch;
  raise(SIGINT);
  EXPECT_THROW(read(), Stopped);
}

}  // namespace
}  // namespace launchgap::recording
