// The fake driver as the other fakes see it.
#include <set>

#include "tests/fake_cuda/entry.h"

namespace launchgap::fake {
namespace {

class ProcessDriver : public Driver {
 public:
  const Node* node() override {
    const Lock lock(Process::instance().mutex);
    return Process::instance().node();
  }

  Result current_device(const DeviceDescription** device) override {
    Process& process = Process::instance();
    const Lock lock(process.mutex);
    if (!process.initialized()) return kNotInitialized;
    const Context* const context = process.current();
    if (context == nullptr) return kInvalidContext;
    *device = &context->description;
    return context->references == 0 ? Result{kContextIsDestroyed} : context->sticky;
  }

  int enter(Library library, const char* call) override {
    Process& process = Process::instance();
    Lock lock(process.mutex);
    return process.fault(lock, library, call, process.current());
  }

  void load_library(Library library) override {
    Process& process = Process::instance();
    double until_ns = 0;
    {
      const Lock lock(process.mutex);
      Context* const context = process.current();
      if (context == nullptr || !loaded_.insert(library).second) return;
      until_ns = now_ns() + context->description.launch.first_handle_ns(context->random_at_times);
    }
    spin_until(until_ns);
  }

  double pace(const std::string& uuid) override {
    Process& process = Process::instance();
    const Lock lock(process.mutex);
    for (const auto& context : process.contexts()) {
      if (context->description.uuid != uuid) continue;
      const auto& ramp = context->description.launch.ramp;
      return ramp && !context->risen_from_ns ? ramp->factor : context->pace;
    }
    return 1;
  }

  Result launch(LibraryCaller caller,
                Stream stream,
                double begin_ns,
                const std::vector<LibraryKernel>& kernels,
                double work_ns,
                Operation operation) override {
    Process& process = Process::instance();
    Lock lock(process.mutex);
    if (!process.initialized()) return kNotInitialized;
    Context* const context = process.current();
    if (context == nullptr || context->references == 0) return kInvalidContext;
    if (context->sticky != kSuccess) return context->sticky;
    Timeline* const timeline = context->find(stream);
    if (timeline == nullptr) return kInvalidHandle;
    std::vector<Work> works(kernels.size());
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      works[i].kernel = kernels[i].shape;
      works[i].share = kernels[i].share;
      works[i].work_ns = kernels[i].share * work_ns;
    }
    if (caller == LibraryCaller::library) process.spoil(operation);
    works.back().operation = std::move(operation);
    return process.launch(lock, *context, *timeline, caller, begin_ns, std::move(works));
  }

  Result meet(Attendance attendance,
              Stream stream,
              double begin_ns,
              const KernelShape& shape,
              Operation operation) override {
    Process& process = Process::instance();
    Lock lock(process.mutex);
    if (!process.initialized()) return kNotInitialized;
    Context* const context = process.current();
    if (context == nullptr || context->references == 0) return kInvalidContext;
    if (context->sticky != kSuccess) return context->sticky;
    Timeline* const timeline = context->find(stream);
    if (timeline == nullptr) return kInvalidHandle;
    // What it gives may not be computed yet, or be nobody's.
    attendance.give = [&process, context, read = operation.reads.front(), give = attendance.give] {
      if (!process.addresses.accessible(read, context->index))
        return context->fail(kIllegalAddress);
      context->results.before_read(read);
      give();
    };
    Work work;
    work.kernel = shape;
    work.share = 0;
    work.work_ns = process.node()->nccl.all_reduce_ns(context->random_at_times);
    work.attendance = std::move(attendance);
    process.spoil(operation);
    work.operation = std::move(operation);
    std::vector<Work> works;
    works.push_back(std::move(work));
    return process.launch(
        lock, *context, *timeline, LibraryCaller::library, begin_ns, std::move(works));
  }

  int set_device(int ordinal) override {
    Process& process = Process::instance();
    const Lock lock(process.mutex);
    const Context* const before = process.current();
    Context* const context = process.device(ordinal);
    process.set_current(context != nullptr && context->references > 0 ? context : nullptr);
    return before == nullptr ? -1 : before->ordinal;
  }

  void listen(Listener* listener) override {
    installed_listener.store(listener, std::memory_order_release);
  }

  Result wait() override {
    Process& process = Process::instance();
    Lock lock(process.mutex);
    Context* const context = process.current();
    if (context == nullptr) return kInvalidContext;
    return process.wait(lock, *context, context->all_ends());
  }

  void look() override {
    Process& process = Process::instance();
    const Lock lock(process.mutex);
    for (const auto& context : process.contexts()) {
      if (context->sticky == kSuccess) process.look(*context);
    }
  }

 private:
  std::set<Library> loaded_;
};

}  // namespace

EXPORT Driver* launchgap_fake_driver() {
  static auto* const driver = new ProcessDriver;
  return driver;
}

}  // namespace launchgap::fake
