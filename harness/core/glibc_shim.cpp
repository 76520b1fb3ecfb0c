// Part of portable builds only. libstdc++'s random_device, which Google Benchmark uses, asks for a
// function that glibc has since 2.36; with one of our own the binary runs on 2.34.
#include <cstdint>
#include <sys/random.h>

extern "C" std::uint32_t arc4random() {
  std::uint32_t value = 0;
  while (getrandom(&value, sizeof value, 0) != sizeof value) {
  }
  return value;
}
