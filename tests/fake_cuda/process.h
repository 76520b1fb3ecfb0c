// The state of the fake driver in this process: devices, contexts, current contexts, and the rules
// that every call shares (initialised? context? fault? dead context?).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kernels/kernel.h"
#include "tests/fake_cuda/call.h"
#include "tests/fake_cuda/faults.h"
#include "tests/fake_cuda/graph.h"
#include "tests/fake_cuda/memory.h"
#include "tests/fake_cuda/mutex.h"
#include "tests/fake_cuda/node.h"
#include "tests/fake_cuda/operation.h"
#include "tests/fake_cuda/results.h"
#include "tests/fake_cuda/timeline.h"
#include "tests/fake_cuda/worker.h"

namespace launchgap::fake {

struct Event {
  unsigned flags = 0;
  std::uint32_t id = 0;
  ItemPointer recorded;
  std::optional<CapturePoint> captured;  // when it was recorded last, that was into a capture
};

/// That a block may ask for: without saying so before, and at most (CUDA C Programming Guide, by
/// compute capability).
inline constexpr unsigned kUsualSharedBytes = 48 << 10;
inline unsigned most_shared_bytes(const DeviceDescription& device) {
  const int capability = device.capability();
  const bool large = capability == 90 || (capability >= 100 && capability < 120);
  return (large              ? 227
          : capability == 80 ? 163
          : capability >= 86 ? 99
          : capability == 75 ? 64
          : capability >= 70 ? 96
                             : 48)
         << 10;
}

struct Function {
  const kernels::KernelDescription* kernel = nullptr;
  const char* recorded_name = nullptr;  // what a trace calls it
  int ptx_version = 0;
  bool loaded = false;                                // onto the device
  unsigned dynamic_shared_bytes = kUsualSharedBytes;  // that a launch may ask for
};

struct Module {
  int ptx_version = 0;  // 10 * major + minor of the virtual architecture
  bool native = false;
  std::map<std::string, std::unique_ptr<Function>> functions;
};

/// The primary context of a device.
struct Context {
  Context(const DeviceDescription& description,
          int index,
          int ordinal,
          std::uint64_t seed,
          const AddressMap& addresses);

  /// By how much everything is slower than described: for this process, and for now.
  double slowness() const { return factor * pace; }
  double draw(const Distribution& distribution) { return slowness() * distribution(random); }
  /// What is drawn only at times: the next launches do not depend on whether it was.
  double draw_at_times(const Distribution& distribution) {
    return slowness() * distribution(random_at_times);
  }
  /// How long the device takes for it.
  double work_ns(const Work& work, std::mt19937_64& source) const {
    return work.share * slowness() * description.kernel_ns(source) + slowness() * work.work_ns +
           work.clocked_ns;
  }

  const DeviceDescription& description;
  const int index;  // in the description
  const int ordinal;
  std::mt19937_64 random;
  std::mt19937_64 random_at_times;
  double factor;    // of this process on this device: how its launches differ from other processes'
  double pace = 1;  // above 1 while the device rises from idleness
  std::optional<double> risen_from_ns;  // when it began to; none: nothing was launched yet
  unsigned references = 0;
  unsigned flags = 0;
  std::uint32_t id = 0;                // another every time that the device is retained anew
  abi::Result sticky = abi::kSuccess;  // survives the context: only a new process gets rid of it
  std::size_t used_bytes = 0;
  Pool pool;                                                               // the default one
  std::map<const void*, std::unique_ptr<Pool>> pools;                      // the others
  std::map<abi::PhysicalMemory, std::shared_ptr<PhysicalPages>> physical;  // not released
  Results results;
  Timeline null_stream{true, kNullStreamId};
  std::uint32_t next_stream_id = kFirstStreamId;
  std::uint32_t next_event_id = 1;
  std::map<const void*, std::unique_ptr<Timeline>> streams;
  std::vector<std::unique_ptr<Timeline>> destroyed_streams;  // that still have work
  std::set<const void*> lost_streams;                        // not destroyed before the context was
  std::map<const void*, std::unique_ptr<Event>> events;
  std::map<const void*, std::unique_ptr<Module>> modules;
  std::map<const Timeline*, CapturePoint> captures;  // of the streams that are being captured
  std::map<const void*, std::unique_ptr<Graph>> graphs;
  std::map<const void*, std::unique_ptr<GraphExec>> executables;
  std::vector<const char*> names_of_unloaded;  // functions of modules that are gone
  bool memsets_loaded = false;
  std::set<std::uintptr_t> copied_to;  // where Copies::first_only has copied
  int frees_in_progress = 0;           // calls of cuMemFree that wait
  double busy_until_ns = 0;            // what streams that are gone did, and the context's creation

  /// Null when `stream` is none of this context's; a real driver crashes where it was one of a
  /// context that is gone, and so does this.
  Timeline* find(abi::Stream stream);
  Function* find(abi::Function function) const;
  std::vector<Timeline*> timelines();
  abi::Stream add_stream(bool blocking, int priority);
  /// Forgets streams that were destroyed and have done their work.
  void drop_finished_streams();

  /// Null unless the stream is being captured.
  CapturePoint* capture_of(const Timeline& timeline);
  /// Whether it is, which is now invalid.
  bool invalidate_capture_of(const Timeline& timeline);
  /// Whether a capture forbids calls like this thread's, which then have made it invalid.
  bool invalidate_forbidding_capture();

  /// Whether a launch into `timeline` would make the null stream wait for a capture, which is then
  /// invalid.
  bool invalidate_implied_capture(const Timeline& timeline);

  /// The entries after which the device, or a stream, is idle.
  std::vector<ItemPointer> all_ends();
  std::vector<ItemPointer> ends_of(const Timeline& timeline);

  /// Since when the device has had nothing to do; none while it has.
  std::optional<double> idle_since(double now_ns);
  /// Sets `pace`, as a device does that is given work now.
  void rise(double now_ns);
  /// Whether the calling thread may run where the device's memory of the host would be far.
  bool would_be_far() const;
  /// Whether a kernel of that stream has rivals: other streams that are busy and not below it.
  bool contended(const Timeline& timeline, double now_ns);

  /// Enqueues in stream order, which for the null stream includes the blocking streams.
  ItemPointer push(Timeline& timeline, Item item);

  /// The entries after which the null stream is idle.
  std::vector<ItemPointer> null_stream_ends();

  void fail(abi::Result code);

  Place place() const { return {static_cast<std::uint32_t>(ordinal), id}; }
  Place place(const Timeline& timeline) const {
    return {static_cast<std::uint32_t>(ordinal), id, timeline.id()};
  }

  // As CUPTI numbers streams.
  static constexpr std::uint32_t kNullStreamId = 7;
  static constexpr std::uint32_t kFirstStreamId = 13;
};

/// When a launching call gets its turn, and what delays it.
struct Turn {
  abi::Result status = abi::kSuccess;
  double begin_ns = 0;
  double late_ns = 0;         // of the call, and of what it launches
  double kernel_late_ns = 0;  // of what it launches alone
};

class Process {
 public:
  static Process& instance();

  Mutex mutex;
  AddressMap addresses;
  ReservedRanges reserved;
  Worker worker{mutex};

  /// Null when the description is unusable.
  const Node* node() { return node_.get(); }
  abi::Result initialize(unsigned flags);

  bool initialized() const { return !contexts_.empty(); }
  int device_count() const { return static_cast<int>(contexts_.size()); }
  /// By ordinal.
  const std::vector<std::unique_ptr<Context>>& contexts() const { return contexts_; }
  Context* device(abi::Device ordinal);
  Context* context_of(abi::Context handle);
  Context* current() const;
  void set_current(Context* context);

  /// Counts the call; hangs or aborts if that is what the description wants. Returns the code that
  /// it must return.
  abi::Result fault(Lock& lock, Library library, const char* call, Context* context);
  /// Makes the result of the call wrong that was told to be.
  void spoil(Operation& operation);

  /// Destroys what the context owns.
  void tear_down(Context& context);

  /// Runs what is due, as a device would have by now.
  void look(Context& context);

  /// Waits as the flags (usually the context's) say until `items` are complete, then does what
  /// every synchronisation does. With `spin_until_ns` the rest of a wait that spins is left to the
  /// caller, who has something to do meanwhile; 0 where nothing is left.
  abi::Result wait(Lock& lock,
                   Context& context,
                   const std::vector<ItemPointer>& items,
                   unsigned flags,
                   double* spin_until_ns = nullptr);
  abi::Result wait(Lock& lock, Context& context, const std::vector<ItemPointer>& items) {
    return wait(lock, context, items, context.flags);
  }

  /// Enqueues a launch, or captures it; returns when the call does, which it does `late_ns` later
  /// than usual. `item` is of a kernel whose effect is not the operation. Unlocks.
  abi::Result launch(Call& call,
                     Context& context,
                     Timeline& timeline,
                     double late_ns,
                     Work work,
                     Item item = {});

  /// The same for the kernels of a library, whose call began at `begin_ns`.
  abi::Result launch(Lock& lock,
                     Context& context,
                     Timeline& timeline,
                     LibraryCaller caller,
                     double begin_ns,
                     std::vector<Work> works);

  abi::Result launch(Call& call, Context& context, Timeline& timeline, GraphExec& graph);

  /// Checks that the operation may access its memory, and applies it.
  void execute(Context& context, Operation operation);

  /// Gives back what a pool holds beyond `keep` and nothing uses at `now_ns`.
  void release_pool(Context& context, Pool& pool, unsigned long long keep, double now_ns);
  /// Of every pool: what is beyond its threshold.
  void release_pools(Context& context, double now_ns);

  abi::PhysicalMemory next_physical_memory() { return ++last_physical_memory_; }
  std::uint32_t next_context_id() { return ++last_context_id_; }

 private:
  /// Executes what the entry waits for, the entry, and returns when it is over or given up.
  void execute_until(Lock& lock, Context& context, const ItemPointer& item, unsigned flags);
  /// CUDA_LAUNCH_BLOCKING=1, or a node that serialises: what was launched is over before the call
  /// returns.
  abi::Result wait_if_blocking(Lock& lock, Context& context, const Timeline& timeline);
  Turn take_turn(Lock& lock, Context& context, Timeline& timeline, double begin_ns);
  abi::Result wait_for_room(Lock& lock, Context& context, Timeline& timeline, double& begin_ns);
  /// None when launching calls do not wait for each other.
  double* launches_free_ns(Context& context, Timeline& timeline);
  /// Enqueues what has its turn; the call returns at `return_ns`.
  void enqueue(Context& context, Timeline& timeline, const Turn& turn, Item item, double return_ns);
  void set_effect(Context& context, Item& item, Work& work);
  static abi::Result capture(Call& call,
                             Context& context,
                             CapturePoint& point,
                             double late_ns,
                             Work work);

  double process_free_ns_ = 0;  // of launching calls that wait for each other, the last one's end
  std::pair<const Context*, std::uint32_t> last_launched_;  // the stream, by number
  std::uint32_t last_context_id_ = 0;
  abi::PhysicalMemory last_physical_memory_ = 0;
  bool initialized_ = false;
  LoadedNode node_;
  std::optional<long long> wrong_byte_;             // of what the library computes next
  std::vector<std::unique_ptr<Context>> contexts_;  // by ordinal
};

}  // namespace launchgap::fake
