// What the fake driver tells the fake CUPTI. Without a listener a call of the driver costs a null
// check more.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

namespace launchgap::fake {

/// Whose function was called: the driver's, or the one of the runtime that cuBLAS and cuDNN hold.
enum class ApiDomain { driver, runtime };

/// In CUPTI's numbers.
struct Place {
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;

  std::uint32_t device = 0;
  std::uint32_t context = 0;
  std::uint32_t stream = kNone;
};

struct KernelShape {
  const char* name = "";  // lives as long as the process
  std::array<unsigned, 3> grid{1, 1, 1};
  std::array<unsigned, 3> block{1, 1, 1};
  unsigned shared_bytes = 0;
};

/// When a kernel ran (CLOCK_MONOTONIC): written once by the driver, read by the listener.
class KernelTimes {
 public:
  void set(double begin_ns, double end_ns) {
    begin_ns_ = begin_ns;
    end_ns_ = end_ns;
    known_.store(true, std::memory_order_release);
  }
  bool known() const { return known_.load(std::memory_order_acquire); }
  double begin_ns() const { return begin_ns_; }
  double end_ns() const { return end_ns_; }

 private:
  double begin_ns_ = 0;
  double end_ns_ = 0;
  std::atomic<bool> known_ = false;
};

/// A copy or fill by the device.
struct TransferEvent {
  std::uint64_t bytes = 0;
  bool fill = false;
};

struct MemoryEvent {
  bool allocation = false;
  bool host = false;
  bool async = false;
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  Place place;
  // Of memory from a pool.
  std::uint64_t pool = 0;
  std::uint64_t pool_threshold = 0;
  std::uint64_t pool_bytes = 0;
  std::uint64_t pool_used_bytes = 0;
};

struct SynchronizationEvent {
  std::uint32_t type = 0;  // cupti::abi::SynchronizationType
  Place place;
  std::uint32_t event = Place::kNone;
};

/// Hears every call on the thread that makes it; calls nest. All but write() may be called with the
/// driver's lock held.
class Listener {
 public:
  virtual ~Listener() = default;

  /// A function with CUPTI's id `call` is entered at `begin_ns`.
  virtual void enter(ApiDomain domain, std::uint32_t call, double begin_ns) = 0;

  struct Launch {
    double late_ns = 0;                  // by which the rest of the call and the kernel are delayed
    std::shared_ptr<KernelTimes> times;  // null when nobody wants to know
  };
  /// The innermost call launches a kernel.
  virtual Launch launch(const KernelShape& kernel, const Place& place) = 0;

  /// The innermost call launches a graph: where it is to be told as a whole, what takes its times;
  /// null where each of its kernels is.
  virtual std::shared_ptr<KernelTimes> graph(const Place& place) = 0;

  /// The innermost call copies or fills: what takes its times; null when nobody wants to know.
  virtual std::shared_ptr<KernelTimes> transfer(const TransferEvent& event, const Place& place) = 0;

  virtual bool records_kernels() const = 0;

  /// The innermost call allocated or freed memory.
  virtual void memory(const MemoryEvent& event) = 0;

  /// The innermost call waited.
  virtual void synchronized(const SynchronizationEvent& event) = 0;

  /// The innermost call is about to return; `end_ns` is when it would if nobody listened. Returns
  /// when it does.
  virtual double leave(double end_ns, int result) = 0;

  /// Writes down what was heard on this thread, for which the client may be called back.
  virtual void write() = 0;
};

}  // namespace launchgap::fake
