// Whether a launch that gets slower does so with the CPU: every 5 ms of SECONDS, the median call of
// 50 empty launches (each after the one before has ended), beside a loop of dependent
// multiplications and walks through arrays that fit into the second cache (256 KiB), into the last
// one (8 MiB), and into none (256 MiB).
//   nvcc -O2 -arch=native -o launch_and_cpu launch_and_cpu.cu && ./launch_and_cpu SECONDS >
//   rounds.csv
// Units: ns, of a walk per step; t_ms since the start; cpu as sched_getcpu tells.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <sched.h>
#include <vector>

__global__ void empty() {}

static double now_ns() {
  return std::chrono::duration<double, std::nano>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// One cycle through all lines of an array, in random order.
struct Walk {
  explicit Walk(size_t bytes) : next(bytes / 64 * 16) {
    std::vector<uint32_t> order(bytes / 64);
    std::iota(order.begin(), order.end(), 0u);
    std::mt19937 random(1);
    std::shuffle(order.begin(), order.end(), random);
    for (size_t i = 0; i < order.size(); ++i)
      next[order[i] * 16] = order[(i + 1) % order.size()] * 16;
  }
  double ns_per_step(int steps) {
    const double begin = now_ns();
    for (int i = 0; i < steps; ++i) place = next[place];
    return (now_ns() - begin) / steps;
  }
  std::vector<uint32_t> next;
  volatile uint32_t place = 0;
};

int main(int count, char** arguments) {
  const double seconds = count > 1 ? std::atof(arguments[1]) : 5;
  Walk second(256 << 10), last(8 << 20), none(256 << 20);
  if (cudaFree(nullptr) != cudaSuccess) return 77;
  const double start = now_ns();
  std::puts(
      "t_ms,call_ns,call_p90_ns,wait_ns,multiply_ns,walk_256k_ns,walk_8m_ns,walk_256m_ns,cpu");
  volatile uint64_t value = 1;
  while (now_ns() - start < seconds * 1e9) {
    const double begin = now_ns();
    std::vector<double> calls, waits;
    for (int i = 0; i < 50; ++i) {
      const double before = now_ns();
      empty<<<1, 1>>>();
      const double after = now_ns();
      if (cudaDeviceSynchronize() != cudaSuccess) return 1;
      calls.push_back(after - before);
      waits.push_back(now_ns() - before);
    }
    const double loop = now_ns();
    uint64_t x = value;
    for (int i = 0; i < 20000; ++i) x = x * 6364136223846793005ull + 1442695040888963407ull;
    value = x;
    const double multiply = now_ns() - loop;
    second.ns_per_step(4096);  // brings it there
    const double w2 = second.ns_per_step(4096), w3 = last.ns_per_step(2000),
                 w4 = none.ns_per_step(1000);
    std::sort(calls.begin(), calls.end());
    std::sort(waits.begin(), waits.end());
    std::printf("%.1f,%.0f,%.0f,%.0f,%.0f,%.2f,%.2f,%.2f,%d\n",
                (begin - start) / 1e6,
                calls[25],
                calls[45],
                waits[25],
                multiply,
                w2,
                w3,
                w4,
                sched_getcpu());
    while (now_ns() - begin < 5e6) {
    }
  }
}
