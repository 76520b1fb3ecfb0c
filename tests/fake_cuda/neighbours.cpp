// The fake driver as the other fakes see it.
#include <set>

#include "tests/fake_cuda/entry.h"

namespace launchgap::fake {
namespace {

class ProcessDriver : public Driver {
 public:
  const Node* node() override {
    const Lock lock(process_.mutex);
    return process_.node();
  }

  Result current_device(const DeviceDescription** device) override {
    const Lock lock(process_.mutex);
    if (!process_.initialized()) return kNotInitialized;
    const Context* const context = process_.current();
    if (context == nullptr) return kInvalidContext;
    *device = &context->description;
    return context->references == 0 ? Result{kContextIsDestroyed} : context->sticky;
  }

  int enter(Library library, const char* call) override {
    Lock lock(process_.mutex);
    return process_.fault(lock, library, call, process_.current());
  }

  void load_library(Library library) override {
    double until_ns = 0;
    {
      const Lock lock(process_.mutex);
      Context* const context = process_.current();
      if (context == nullptr || !loaded_.insert(library).second) return;
      until_ns = now_ns() + context->description.launch.first_handle_ns(context->random_at_times);
    }
    spin_until(until_ns);
  }

  double pace(const std::string& uuid) override {
    const Lock lock(process_.mutex);
    for (const auto& context : process_.contexts()) {
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
    return with_stream(stream, [&](Lock& lock, Context& context, Timeline& timeline) {
      std::vector<Work> works(kernels.size());
      for (std::size_t i = 0; i < kernels.size(); ++i) {
        works[i].kernel = kernels[i].shape;
        works[i].share = kernels[i].share;
        works[i].work_ns = kernels[i].share * work_ns;
      }
      if (caller == LibraryCaller::library) process_.spoil(operation);
      works.back().operation = std::move(operation);
      return process_.launch(lock, context, timeline, caller, begin_ns, std::move(works));
    });
  }

  Result meet(Attendance attendance,
              Stream stream,
              double begin_ns,
              const KernelShape& shape,
              Operation operation) override {
    return with_stream(stream, [&](Lock& lock, Context& context, Timeline& timeline) {
      // What it gives may not be computed yet, or be nobody's.
      attendance.give = [this, &context, read = operation.reads.front(), give = attendance.give] {
        if (!process_.addresses.accessible(read, context.index))
          return context.fail(kIllegalAddress);
        context.results.before_read(read);
        give();
      };
      std::vector<Work> works(1);
      works[0].kernel = shape;
      works[0].share = 0;
      works[0].work_ns = process_.node()->nccl.all_reduce_ns(context.random_at_times);
      works[0].attendance = std::move(attendance);
      process_.spoil(operation);
      works[0].operation = std::move(operation);
      return process_.launch(
          lock, context, timeline, LibraryCaller::library, begin_ns, std::move(works));
    });
  }

  int set_device(int ordinal) override {
    const Lock lock(process_.mutex);
    const Context* const before = process_.current();
    Context* const context = process_.device(ordinal);
    process_.set_current(context != nullptr && context->references > 0 ? context : nullptr);
    return before == nullptr ? -1 : before->ordinal;
  }

  void listen(Listener* listener) override {
    installed_listener.store(listener, std::memory_order_release);
  }

  Result wait() override {
    Lock lock(process_.mutex);
    Context* const context = process_.current();
    if (context == nullptr) return kInvalidContext;
    return process_.wait(lock, *context, context->all_ends());
  }

  void look() override {
    const Lock lock(process_.mutex);
    for (const auto& context : process_.contexts()) {
      if (context->sticky == kSuccess) process_.look(*context);
    }
  }

 private:
  /// Work of a library: body(lock, context, timeline).
  template <typename Body>
  Result with_stream(Stream stream, Body body) {
    Lock lock(process_.mutex);
    if (!process_.initialized()) return kNotInitialized;
    Context* const context = process_.current();
    if (context == nullptr || context->references == 0) return kInvalidContext;
    if (context->sticky != kSuccess) return context->sticky;
    Timeline* const timeline = context->find(stream);
    return timeline != nullptr ? body(lock, *context, *timeline) : Result{kInvalidHandle};
  }

  Process& process_ = Process::instance();
  std::set<Library> loaded_;
};

}  // namespace

EXPORT Driver* launchgap_fake_driver() {
  static auto* const driver = new ProcessDriver;
  return driver;
}

}  // namespace launchgap::fake
