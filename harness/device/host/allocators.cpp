#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <gnu/libc-version.h>
#include <malloc.h>
#include <memory_resource>
#include <sys/mman.h>
#include <unistd.h>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/device/device.h"
#include "harness/device/host/host_device.h"
#include "harness/device/inserted_delay.h"

namespace launchgap::host {
namespace {

/// Writes every byte, in a way that the compiler cannot leave out.
void write_all(void* address, std::size_t bytes) {
  std::memset(address, 0x5A, bytes);
  asm volatile("" : : "r"(address) : "memory");
}

class DirectAllocator : public Allocator {
 public:
  void* allocate(std::size_t bytes) override {
    insert_delay();
    void* const address = std::malloc(bytes);
    if (!address) throw OutOfMemory("host", "malloc", ENOMEM, "out of memory", false);
    return address;
  }
  void release(void* address, std::size_t) override { std::free(address); }
  void touch(void* address, std::size_t bytes) override { write_all(address, bytes); }
  void trim() override { malloc_trim(0); }
  std::string method() const override {
    return fmt::format("malloc, glibc {}", gnu_get_libc_version());
  }
};

class MappedAllocator : public Allocator {
 public:
  void* allocate(std::size_t bytes) override {
    insert_delay();
    void* const address =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (address == MAP_FAILED) {
      const int code = errno;
      if (code == ENOMEM) throw OutOfMemory("host", "mmap", code, std::strerror(code), false);
      throw LibraryError("host", "mmap", code, std::strerror(code), false);
    }
    return address;
  }
  void release(void* address, std::size_t bytes) override { munmap(address, bytes); }
  void touch(void* address, std::size_t bytes) override { write_all(address, bytes); }
  std::string method() const override { return "mmap, private anonymous pages"; }
};

/// Memory as others would get it, and how much of it there is.
class CountedMemory : public std::pmr::memory_resource {
 public:
  std::uint64_t bytes() const { return bytes_; }

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    void* const address = std::pmr::new_delete_resource()->allocate(bytes, alignment);
    bytes_ += bytes;
    return address;
  }
  void do_deallocate(void* address, std::size_t bytes, std::size_t alignment) override {
    std::pmr::new_delete_resource()->deallocate(address, bytes, alignment);
    bytes_ -= bytes;
  }
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  std::uint64_t bytes_ = 0;
};

class PoolAllocator : public Allocator {
 public:
  void* allocate(std::size_t bytes) override {
    insert_delay();
    try {
      return pool_.allocate(whole(bytes), kAlignment);
    } catch (const std::bad_alloc&) {
      throw OutOfMemory("host", "operator new", ENOMEM, "out of memory", false);
    }
  }
  void release(void* address, std::size_t bytes) override {
    pool_.deallocate(address, whole(bytes), kAlignment);
  }
  void touch(void* address, std::size_t bytes) override { write_all(address, bytes); }
  std::optional<std::uint64_t> reserved_bytes() const override { return memory_.bytes(); }
  std::string method() const override {
    return fmt::format(
        "std::pmr::unsynchronized_pool_resource, blocks up to {} bytes, operator new beyond",
        pool_.options().largest_required_pool_block);
  }

 private:
  static constexpr std::size_t kAlignment = 64;

  /// libstdc++ cuts a chunk into blocks of 80 bytes for 80 bytes, whatever their alignment.
  static std::size_t whole(std::size_t bytes) {
    return std::max(bytes, rounded_up(bytes, kAlignment));  // it may be 0 beyond what there can be
  }

  CountedMemory memory_;
  std::pmr::unsynchronized_pool_resource pool_{
      std::pmr::pool_options{.max_blocks_per_chunk = 0,
                             .largest_required_pool_block = std::size_t{1} << 30},
      &memory_};
};

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
      throw Error("{} bytes at {} are not whole pages of {} bytes", bytes, from, page_);
  }
  [[noreturn]] static void fail(const char* call) {
    const int code = errno;
    if (code == ENOMEM) throw OutOfMemory("host", call, code, std::strerror(code), false);
    throw LibraryError("host", call, code, std::strerror(code), false);
  }

  std::size_t page_ = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
};

}  // namespace

std::unique_ptr<Allocator> make_allocator(AllocatorKind kind, Device& device) {
  switch (kind) {
    case AllocatorKind::direct:
      return std::make_unique<DirectAllocator>();
    case AllocatorKind::mapped:
      return std::make_unique<MappedAllocator>();
    case AllocatorKind::pool:
      return std::make_unique<PoolAllocator>();
    case AllocatorKind::vmm:
      return mapping_allocator(make_virtual_memory(), write_all);
    case AllocatorKind::vmm_expand:
      return expanding_allocator(make_virtual_memory(),
                                 write_all,
                                 device.facts().memory_bytes.value_or(allocatable_bytes(device)),
                                 [&device] { return allocatable_bytes(device); });
    default:
      throw Unsupported("the host has no allocator {}", info_of(kind).name);
  }
}

std::unique_ptr<VirtualMemory> make_virtual_memory() {
  return std::make_unique<HostVirtualMemory>();
}

}  // namespace launchgap::host
