// The form of a raw recording: what liblaunchgap_record.so writes from within a program, and what
// harness/import reads.
//
// A file is a RawHeader, which is written anew in its place, and blocks, which are appended and
// never touched again. So what was written before a program crashed or was killed can be read.
// Within a block stand entries: a tag, and numbers as variable-length integers of 7 bits a byte,
// the lowest first. Numbers that may be negative are in zigzag form. Times are differences from the
// time before of the same block, and so are correlations.
#pragma once

#include <cstddef>
#include <cstdint>

namespace launchgap::injected {

inline constexpr char kRawMagic[16] =
    {'l', 'a', 'u', 'n', 'c', 'h', 'g', 'a', 'p', '-', 'r', 'a', 'w', ' ', '1', '\n'};

/// How much is recorded, by number: TraceLevel without `none`.
inline constexpr const char* kRawLevels[] = {"launches", "kernels", "all"};

/// The level at which CUPTI is left alone, and only how long the program runs is written.
inline constexpr std::uint32_t kClockAlone = 1000;

enum class RawState : std::uint32_t {
  starting,   // CUPTI is being asked
  recording,  // or the program ended without a word
  ended,      // with the program
  stopped,    // before the program's end, for the reason that stands beside it
};

/// The first 4 KiB of a file. Text ends with a zero, or is cut off.
struct RawHeader {
  char magic[16];
  RawState state;
  std::uint32_t level;  // of kRawLevels, or kClockAlone
  std::uint64_t pid;
  std::int64_t rank;  // of a distributed job; -1: none is known
  std::uint32_t cupti_version;
  std::uint32_t cuda_version;  // that the driver serves: 13000
  std::uint32_t simulated;     // 1: the driver is a fake one
  std::uint32_t reserved;
  std::int64_t begin_ns;    // when the driver was initialised, Unix time
  std::int64_t startup_ns;  // that recording took before the program went on
  std::int64_t ending_ns;   // and at its end
  std::int64_t writing_ns;  // CPU time of the thread that writes
  std::int64_t ran_ns;      // from the end of the one to the beginning of the other; 0: not known
  std::uint64_t bytes;      // of blocks
  std::uint64_t dropped;    // records that CUPTI says it lost, or for which there was no room
  std::uint64_t unknown;    // records that could not be read
  std::uint64_t lost_ranges;
  char driver[128];
  char cupti_path[512];
  char command[512];
  char reason[512];
  char fill[4096 - 16 - 2 * 4 - 2 * 8 - 4 * 4 - 9 * 8 - 128 - 3 * 512];
};
static_assert(sizeof(RawHeader) == 4096);

struct RawBlock {
  static constexpr std::uint32_t kMagic = 0x42474C52;
  static constexpr std::uint32_t kMost = 1 << 20;

  std::uint32_t magic;
  std::uint32_t bytes;  // of what follows, at most kMost
  std::uint64_t checksum;
};
static_assert(sizeof(RawBlock) == 16);

/// What an entry is. Names, threads, streams and kernels are numbered in the order in which they
/// appear, from 0, before they are used.
enum class RawTag : std::uint8_t {
  name = 1,  // bytes, and as many characters
  thread,    // id, as the system has it
  stream,    // GPU, context, stream
  kernel,    // name, grid x y z, block x y z
  gpu,       // number, compute capability 10·major+minor, memory bytes, 16 bytes of its UUID, name
  call,      // begin, duration, correlation, thread, id; of the driver
  runtime_call,
  kernel_run,  // begin, duration, correlation, stream, kernel
  copy,        // begin, duration, correlation, stream, bytes
  fill,
  overhead,     // begin, duration, correlation, kind as CUPTI has it
  wait,         // begin, duration, correlation, type
  memory,       // time, address, bytes, pool, correlation, kind, release, GPU
  graph,        // begin, duration, correlation, stream, graph
  range,        // begin, duration, thread, name
  failed_call,  // as a call, which returned an error
  failed_runtime_call,
  copy_from_host,  // as a copy
  copy_to_host,    // the same
};

/// A fuzzer takes every block as whole, or it would see none from within.
inline bool raw_checksums_are_right = false;

/// Of a block's bytes: finds what a torn write leaves, and no forger.
inline std::uint64_t raw_checksum(const unsigned char* bytes, std::size_t count) {
  constexpr std::uint64_t kPrime = 0x9E3779B97F4A7C15u;
  std::uint64_t sum = count * kPrime;
  for (std::size_t i = 0; i < count; i += 8) {
    std::uint64_t word = 0;
    const std::size_t n = count - i < 8 ? count - i : 8;
    __builtin_memcpy(&word, bytes + i, n);
    sum = (sum ^ word) * kPrime;
    sum ^= sum >> 29;
  }
  return sum;
}

constexpr std::uint64_t zigzag(std::int64_t number) {
  return (static_cast<std::uint64_t>(number) << 1) ^ static_cast<std::uint64_t>(number >> 63);
}
constexpr std::int64_t unzigzag(std::uint64_t number) {
  return static_cast<std::int64_t>((number >> 1) ^ (~(number & 1) + 1));
}

}  // namespace launchgap::injected
