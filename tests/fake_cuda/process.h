// The state of the fake driver in this process: devices, contexts, current contexts, and the rules
// that every call shares (initialised? context? fault? dead context?).
#pragma once

#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/kernel.h"
#include "tests/fake_cuda/call.h"
#include "tests/fake_cuda/faults.h"
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
};

struct Function {
  const kernels::KernelDescription* kernel = nullptr;
  int ptx_version = 0;
};

struct Module {
  int ptx_version = 0;  // 10 * major + minor of the virtual architecture
  std::map<std::string, std::unique_ptr<Function>> functions;
};

/// The primary context of a device.
struct Context {
  Context(const DeviceDescription& description,
          int index,
          int ordinal,
          std::uint64_t seed,
          const AddressMap& addresses);

  double draw(const Distribution& distribution) { return factor * distribution(random); }

  const DeviceDescription& description;
  const int index;  // in the description
  const int ordinal;
  std::mt19937_64 random;
  const double
      factor;  // of this process on this device: how its launches differ from other processes'
  unsigned references = 0;
  unsigned flags = 0;
  std::uint32_t id = 0;                // another every time that the device is retained anew
  abi::Result sticky = abi::kSuccess;  // survives the context: only a new process gets rid of it
  std::size_t used_bytes = 0;
  Pool pool;
  Results results;
  Timeline null_stream{true, kNullStreamId};
  std::uint32_t next_stream_id = kFirstStreamId;
  std::uint32_t next_event_id = 1;
  std::map<const void*, std::unique_ptr<Timeline>> streams;
  std::vector<std::unique_ptr<Timeline>> destroyed_streams;  // that still have work
  std::map<const void*, std::unique_ptr<Event>> events;
  std::map<const void*, std::unique_ptr<Module>> modules;

  /// Null when `stream` is none of this context's.
  Timeline* find(abi::Stream stream);
  const Function* find(abi::Function function) const;
  std::vector<Timeline*> timelines();

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

class Process {
 public:
  static Process& instance();

  Mutex mutex;
  AddressMap addresses;
  Worker worker{mutex};

  /// Loads the description once; null and one line on stderr when it is unusable.
  const Node* node();
  abi::Result initialize(unsigned flags);

  bool initialized() const { return !contexts_.empty(); }
  int device_count() const { return static_cast<int>(contexts_.size()); }
  Context* device(abi::Device ordinal);
  Context* context_of(abi::Context handle);
  Context* current() const;
  void set_current(Context* context);

  /// Counts the call; hangs or aborts if that is what the description wants. Returns the code that
  /// it must return.
  abi::Result fault(Lock& lock, Library library, const char* call, Context* context);

  /// Destroys what the context owns.
  void tear_down(Context& context);

  /// Runs what is due, as a device would have by now.
  void look(Context& context);

  /// Waits as the context's flags say until `items` are complete, then does what every
  /// synchronisation does.
  abi::Result wait(Lock& lock, Context& context, const std::vector<ItemPointer>& items);

  /// Enqueues a launch that takes `work_ns` beside the kernel's own time; returns when the call
  /// does. Null when it is no kernel. Unlocks.
  abi::Result launch(Lock& lock,
                     Context& context,
                     Timeline& timeline,
                     Call& call,
                     const KernelShape* kernel,
                     double work_ns,
                     Item item);

  /// The same for a library's kernels, of which the last one has the effect. The library's call
  /// began at `begin_ns`.
  abi::Result launch(Lock& lock,
                     Context& context,
                     Timeline& timeline,
                     double begin_ns,
                     const std::vector<LibraryKernel>& kernels,
                     double work_ns,
                     std::function<void()> work);

  /// Checks that the operation may access its memory, and applies it.
  void execute(Context& context, Operation operation);

  void release_pool(Context& context, unsigned long long keep);

  std::uint32_t next_context_id() { return ++last_context_id_; }

 private:
  std::uint32_t last_context_id_ = 0;
  bool load_attempted_ = false;
  bool initialized_ = false;
  std::unique_ptr<Node> node_;
  std::unique_ptr<Faults> faults_;
  std::vector<std::unique_ptr<Context>> contexts_;  // by ordinal
};

}  // namespace launchgap::fake
