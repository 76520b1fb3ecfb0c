// The fake libnccl: sums over the fake driver's devices, of which none is ready before all have
// begun. A part that never comes keeps the others waiting for ever, as the real one does.
#include "harness/device/cuda/abi/nccl.h"

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "tests/fake_cuda/meeting.h"
#include "tests/fake_cuda/operation.h"

namespace launchgap::fake {
namespace {

using namespace cuda::abi;

/// One sum: what each gives, of FP32, is copied when all have begun.
struct Sum {
  explicit Sum(std::size_t parties) : meeting(std::make_shared<Meeting>(parties)), given(parties) {}

  std::shared_ptr<Meeting> meeting;
  std::vector<std::vector<float>> given;
  std::size_t joined = 0;
};

/// The devices that sum together.
struct Clique {
  std::vector<int> devices;
  std::map<std::uint64_t, std::shared_ptr<Sum>> open;  // by number, some of whose parts are missing
  bool aborted = false;
};

struct Communicator {
  std::shared_ptr<Clique> clique;
  std::size_t rank = 0;
  std::uint64_t sums = 0;  // so far
};

/// Of all cliques.
std::mutex& mutex() {
  static auto& mutex = *new std::mutex;
  return mutex;
}

/// The device of a communicator, as cudaSetDevice makes it the thread's, and back.
class OnDevice {
 public:
  explicit OnDevice(int device) : before_(find_driver()->set_device(device)) {}
  ~OnDevice() { find_driver()->set_device(before_); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  int before_;
};

struct Call {
  Communicator* communicator;
  const void* from;
  void* to;
  std::size_t count;
  Stream stream;
};
thread_local int group_depth = 0;
thread_local std::vector<Call> grouped;

NcclResult enter(const char* call) {
  Driver* const driver = find_driver();
  return driver == nullptr ? NcclResult{kNcclUnhandledCudaError}
                           : driver->enter(Library::nccl, call);
}

NcclResult launch(const Call& call) {
  const double begin_ns = now_ns();
  Communicator& communicator = *call.communicator;
  Clique& clique = *communicator.clique;
  const std::size_t rank = communicator.rank, parties = clique.devices.size();
  std::shared_ptr<Sum> sum;
  {
    const std::lock_guard lock(mutex());
    const std::uint64_t number = communicator.sums++;
    auto& open = clique.open[number];
    if (!open) open = std::make_shared<Sum>(parties);
    sum = open;
    if (clique.aborted) sum->meeting->give_up();
    if (++sum->joined == parties) clique.open.erase(number);
  }
  const OnDevice on(clique.devices[rank]);
  Operation operation;
  const std::size_t bytes = call.count * sizeof(float);
  operation.reads = {range_of(call.from, bytes)};
  operation.writes = {range_of(call.to, bytes)};
  operation.compute = [sum, to = static_cast<float*>(call.to), count = call.count](std::size_t,
                                                                                   std::size_t) {
    for (std::size_t i = 0; i < count; ++i) {
      float total = 0;
      for (const auto& given : sum->given) total += i < given.size() ? given[i] : 0;
      to[i] = total;
    }
  };
  const auto give = [sum, rank, from = static_cast<const float*>(call.from), count = call.count] {
    sum->given[rank].assign(from, from + count);
  };
  const KernelShape shape{
      "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", {}, {544, 1, 1}};
  const Result result = find_driver()->meet(
      {sum->meeting, rank, give}, call.stream, begin_ns, shape, std::move(operation));
  return result == kSuccess ? kNcclSuccess : kNcclUnhandledCudaError;
}

NcclResult destroy(const char* name, NcclCommunicator handle, bool abort) {
  if (const NcclResult result = enter(name)) return result;
  if (handle == nullptr) return kNcclSuccess;
  auto* const communicator = as<Communicator>(handle);
  if (abort) {
    const std::lock_guard lock(mutex());
    communicator->clique->aborted = true;
    for (const auto& [number, sum] : communicator->clique->open) sum->meeting->give_up();
  }
  delete communicator;
  return kNcclSuccess;
}

}  // namespace

EXPORT NcclResult ncclGetVersion(int* version) {
  if (const NcclResult result = enter("ncclGetVersion")) return result;
  return put(version, find_driver()->node()->nccl.version, kNcclInvalidArgument);
}

EXPORT const char* ncclGetErrorString(NcclResult result) {
  static constexpr std::pair<int, const char*> kTexts[] = {
      {kNcclSuccess, "no error"},
      {kNcclUnhandledCudaError, "unhandled cuda error (run with NCCL_DEBUG=INFO for details)"},
      {kNcclInvalidArgument, "invalid argument (run with NCCL_DEBUG=WARN for details)"},
      {kNcclInvalidUsage, "invalid usage (run with NCCL_DEBUG=WARN for details)"}};
  return found_in(kTexts, result).value_or("unknown result code");
}

EXPORT const char* ncclGetLastError(NcclCommunicator) {
  return "";
}

EXPORT NcclResult ncclCommInitAll(NcclCommunicator* communicators, int count, const int* devices) {
  if (const NcclResult result = enter("ncclCommInitAll")) return result;
  if (communicators == nullptr || count < 1) return kNcclInvalidArgument;
  const auto clique = std::make_shared<Clique>();
  for (int i = 0; i < count; ++i) clique->devices.push_back(devices == nullptr ? i : devices[i]);
  // A device has one rank.
  if (std::set(clique->devices.begin(), clique->devices.end()).size() != clique->devices.size())
    return kNcclInvalidUsage;
  for (const int device : clique->devices) {
    const OnDevice on(device);
    if (current_device() == nullptr) return kNcclUnhandledCudaError;
  }
  for (int i = 0; i < count; ++i) {
    auto* const made = new Communicator{clique, static_cast<std::size_t>(i)};
    communicators[i] = reinterpret_cast<NcclCommunicator>(made);
  }
  return kNcclSuccess;
}

EXPORT NcclResult ncclCommDestroy(NcclCommunicator communicator) {
  return destroy("ncclCommDestroy", communicator, false);
}

EXPORT NcclResult ncclCommAbort(NcclCommunicator communicator) {
  return destroy("ncclCommAbort", communicator, true);
}

EXPORT NcclResult ncclGroupStart() {
  if (const NcclResult result = enter("ncclGroupStart")) return result;
  ++group_depth;
  return kNcclSuccess;
}

EXPORT NcclResult ncclGroupEnd() {
  if (const NcclResult result = enter("ncclGroupEnd")) return result;
  if (group_depth == 0) return kNcclInvalidUsage;
  if (--group_depth > 0) return kNcclSuccess;
  NcclResult result = kNcclSuccess;
  for (const Call& call : std::exchange(grouped, {})) {
    if (result == kNcclSuccess) result = launch(call);
  }
  return result;
}

EXPORT NcclResult ncclAllReduce(const void* from,
                                void* to,
                                std::size_t count,
                                NcclDataType type,
                                NcclReduction reduction,
                                NcclCommunicator communicator,
                                Stream stream) {
  if (communicator == nullptr) return enter("ncclAllReduce") ?: NcclResult{kNcclInvalidArgument};
  const Call call{as<Communicator>(communicator), from, to, count, stream};
  {
    const Communicator& own = *call.communicator;
    const OnDevice on(own.clique->devices[own.rank]);
    if (const NcclResult result = enter("ncclAllReduce")) return result;
  }
  // More than launchgap asks for is not here.
  if (from == nullptr || to == nullptr || type != kNcclFloat32 || reduction != kNcclSum)
    return kNcclInvalidArgument;
  if (group_depth == 0) return launch(call);
  grouped.push_back(call);
  return kNcclSuccess;
}

}  // namespace launchgap::fake

namespace launchgap::cuda::abi {
LAUNCHGAP_NCCL_FUNCTIONS(LAUNCHGAP_SAME_SIGNATURE)
}  // namespace launchgap::cuda::abi
