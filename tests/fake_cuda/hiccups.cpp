#include "tests/fake_cuda/hiccups.h"

#include <ctime>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace launchgap::fake {
namespace {

/// By the system's own call, since the fake clock may stand in for the library's.
void sleep_for_real() {
  const timespec shortest = {0, 1000};
  syscall(SYS_nanosleep, &shortest, nullptr);
}

void touch_new_pages() {
  constexpr std::size_t kPage = 4096, kBytes = 3 * kPage;
  void* const fresh =
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (fresh == MAP_FAILED) return;
  for (std::size_t at = 0; at < kBytes; at += kPage) static_cast<volatile char*>(fresh)[at] = 1;
  munmap(fresh, kBytes);
}

void move_to_another_cpu() {
  const int cpu = sched_getcpu();
  const auto all = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  cpu_set_t other;
  CPU_ZERO(&other);
  CPU_SET((cpu + 1) % all, &other);
  sched_setaffinity(0, sizeof other, &other);
}

void show(HiccupSign sign) {
  switch (sign) {
    case HiccupSign::none:
      return;
    case HiccupSign::sleep:
      return sleep_for_real();
    case HiccupSign::fault:
      return touch_new_pages();
    case HiccupSign::move:
      return move_to_another_cpu();
  }
}

}  // namespace

double strike(const std::vector<Hiccup>& hiccups, std::mt19937_64& random) {
  double late_ns = 0;
  for (const Hiccup& hiccup : hiccups) {
    if (!std::bernoulli_distribution(1 / hiccup.every)(random)) continue;
    late_ns += hiccup.ns(random);
    show(hiccup.sign);
  }
  return late_ns;
}

}  // namespace launchgap::fake
