#include "harness/device/cuda/abi/nccl.h"

#include <mutex>
#include <shared_mutex>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/device/cuda/libraries.h"
#include "harness/device/shared_library.h"

namespace launchgap::cuda {
namespace {

struct Nccl : abi::NcclFunctions {
  LoadedLibrary facts;

  static const Nccl& get() {
    static const Nccl library = load();
    return library;
  }

  /// Throws LibraryError with NCCL's words, and those of its last error.
  void check(abi::NcclResult result, const char* call) const {
    if (result == abi::kNcclSuccess) return;
    const std::string text(call);
    std::string words = ncclGetErrorString(result);
    const char* const detail = ncclGetLastError ? ncclGetLastError(nullptr) : nullptr;
    if (detail && *detail) words += fmt::format(": {}", detail);
    // As in cuBLAS, what became of a context only the driver tells.
    throw LibraryError(facts.name,
                       text.substr(0, text.find('(')),
                       result,
                       words,
                       result == abi::kNcclUnhandledCudaError);
  }

 private:
  static Nccl load() {
    const SharedLibrary file = SharedLibrary::open(
        {"NCCL", "LAUNCHGAP_NCCL", {"libnccl.so.2"}, {"libnccl.so"}},
        "Without it GPUs compute no sum together; `pip install nvidia-nccl-cu13` (or -cu12) brings "
        "it");
    Nccl library;
    LAUNCHGAP_NCCL_FUNCTIONS(LAUNCHGAP_TAKE)
    library.facts = file.facts();
    int version = 0;
    library.check(library.ncclGetVersion(&version), "ncclGetVersion");
    library.facts.version = nccl_version_text(version);
    note_loaded(library.facts);
    return library;
  }
};

#define CHECK_NCCL(library, call) (library).check((library).call, #call)

class NcclCollective : public Collective {
 public:
  explicit NcclCollective(std::span<Device* const> devices) : library_(Nccl::get()) {
    std::vector<int> numbers;
    for (const Device* device : devices) numbers.push_back(device->facts().index);
    communicators_.resize(devices.size());
    CHECK_NCCL(
        library_,
        ncclCommInitAll(communicators_.data(), static_cast<int>(numbers.size()), numbers.data()));
  }
  ~NcclCollective() override {
    if (aborted_) return;  // which has freed them
    for (const abi::NcclCommunicator communicator : communicators_)
      library_.ncclCommDestroy(communicator);
  }

  void all_reduce(std::span<const Part> parts, std::size_t count) override {
    const std::shared_lock lock(mutex_);
    check_alive();
    CHECK_NCCL(library_, ncclGroupStart());
    abi::NcclResult result = abi::kNcclSuccess;
    for (std::size_t i = 0; i < parts.size() && result == abi::kNcclSuccess; ++i)
      result = enqueue(i, parts[i], count);
    const abi::NcclResult ended = library_.ncclGroupEnd();  // also of one that failed
    library_.check(result, "ncclAllReduce");
    library_.check(ended, "ncclGroupEnd");
  }

  void all_reduce(std::size_t member, const Part& part, std::size_t count) override {
    const std::shared_lock lock(mutex_);
    check_alive();
    library_.check(enqueue(member, part, count), "ncclAllReduce");
  }

  void abort() noexcept override {
    // Not while another thread is in a call: an abort frees what the call uses. Calls return as
    // soon as their part is enqueued.
    const std::unique_lock lock(mutex_);
    if (std::exchange(aborted_, true)) return;
    for (const abi::NcclCommunicator communicator : communicators_)
      library_.ncclCommAbort(communicator);
  }

 private:
  void check_alive() const {
    if (aborted_) throw Error("NCCL: the sum was given up, since another device's part failed");
  }
  abi::NcclResult enqueue(std::size_t member, const Part& part, std::size_t count) {
    return library_.ncclAllReduce(part.from->address(),
                                  part.to->address(),
                                  count,
                                  abi::kNcclFloat32,
                                  abi::kNcclSum,
                                  communicators_[member],
                                  static_cast<CudaStream&>(*part.stream).handle);
  }

  const Nccl& library_;
  std::vector<abi::NcclCommunicator> communicators_;
  std::shared_mutex mutex_;
  bool aborted_ = false;
};

}  // namespace

std::unique_ptr<Collective> nccl_collective(std::span<Device* const> devices) {
  return std::make_unique<NcclCollective>(devices);
}

}  // namespace launchgap::cuda
