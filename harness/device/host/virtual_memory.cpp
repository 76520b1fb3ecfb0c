#include "harness/device/host/virtual_memory.h"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

#include <fmt/format.h>

#include "harness/core/errors.h"

namespace launchgap::host {
namespace {

class HostVirtualMemory : public VirtualMemory {
 public:
  std::size_t granularity() const override { return page_; }

  void* reserve(std::size_t bytes) override {
    check_whole_pages(nullptr, bytes);
    void* const range =
        mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) fail("mmap");
    return range;
  }
  void unreserve(void* range, std::size_t bytes) override {
    check_whole_pages(range, bytes);
    if (munmap(range, bytes) != 0) fail("munmap");
  }
  void map(void* from, std::size_t bytes) override {
    check_whole_pages(from, bytes);
    if (mprotect(from, bytes, PROT_READ | PROT_WRITE) != 0) fail("mprotect");
  }
  void unmap(void* from, std::size_t bytes) override {
    check_whole_pages(from, bytes);
    if (madvise(from, bytes, MADV_DONTNEED) != 0) fail("madvise");
    if (mprotect(from, bytes, PROT_NONE) != 0) fail("mprotect");
  }

 private:
  void check_whole_pages(const void* from, std::size_t bytes) const {
    if (bytes == 0 || bytes % page_ != 0 || reinterpret_cast<std::uintptr_t>(from) % page_ != 0)
      throw Error(
          fmt::format("{} bytes at {} are not whole pages of {} bytes", bytes, from, page_));
  }
  [[noreturn]] static void fail(const char* call) {
    const int code = errno;
    if (code == ENOMEM) throw OutOfMemory("host", call, code, std::strerror(code), false);
    throw LibraryError("host", call, code, std::strerror(code), false);
  }

  std::size_t page_ = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
};

}  // namespace

std::unique_ptr<VirtualMemory> make_virtual_memory() {
  return std::make_unique<HostVirtualMemory>();
}

}  // namespace launchgap::host
