#include "harness/injected/recorder.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dlfcn.h>
#include <exception>
#include <fcntl.h>
#include <sched.h>
#include <span>
#include <string_view>
#include <unistd.h>
#include <vector>

#include "harness/injected/own_process.h"
#include "harness/trace/cupti/traced_calls.h"

namespace launchgap::injected {
namespace {

using namespace cupti::abi;

/// What is not written when a program is killed is at most as old as this.
constexpr long kFlushNs = 200'000'000;
/// Where buffers are scarce: threads that end leave theirs at CUPTI until it is flushed.
constexpr long kFlushWhereScarceNs = 20'000'000;

/// How long a program's end waits for what was recorded: CUPTI may hang, the program must not.
constexpr int kMostEndS = 10;

constexpr std::uint32_t kLaunches = 0, kKernels = 1;  // of kRawLevels; above is all

std::atomic<Recorder*> instance = nullptr;
pid_t owner = 0;

std::int64_t ns_of(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

timespec after(clockid_t clock, std::int64_t ns) {
  const std::int64_t until = ns_of(clock) + ns;
  return {until / 1'000'000'000, until % 1'000'000'000};
}

template <std::size_t n>
void copy_text(char (&to)[n], std::string_view text) {
  const std::size_t length = std::min(text.size(), n - 1);
  std::memcpy(to, text.data(), length);
  to[length] = '\0';
}

/// The first `n - 1` bytes of a file of /proc, with spaces for zeroes and line ends.
template <std::size_t n>
void copy_file(char (&to)[n], const char* path) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  const ssize_t got = read(file, to, n - 1);
  close(file);
  for (ssize_t i = 0; i < got; ++i) {
    if (to[i] == '\0' || to[i] == '\n') to[i] = ' ';
  }
}

}  // namespace

Recorder* Recorder::get() {
  return instance.load(std::memory_order_acquire);
}

void Recorder::start() noexcept {
  if (instance.load()) return;
  const std::int64_t begin_ns = ns_of(CLOCK_MONOTONIC);
  const FileLimitIgnored ignored;
  Recorder* recorder = nullptr;
  try {
    const auto settings = Settings::of_environment();
    if (!settings) return;
    recorder = new Recorder(*settings);
    if (!recorder->file_.create(recorder->settings_.folder)) return;
    recorder->file_.limit(settings->limit_bytes);
    // Callbacks and ranges find it from here on.
    owner = getpid();
    instance.store(recorder, std::memory_order_release);
    recorder->describe_process();
    RawHeader& header = recorder->file_.header;
    const bool alone = settings->level == kClockAlone;
    if (alone) {
      header.state = RawState::recording;
      recorder->file_.write_header();
      recorder->wait_for_end();
    }
    const bool ready = alone || recorder->prepare();
    // From here on the header is the writer's.
    recorder->started_ns_ = ns_of(CLOCK_MONOTONIC);
    header.startup_ns = recorder->started_ns_ - begin_ns;
    if (ready && (alone || recorder->start_thread())) return;
    recorder->disable();
    header.state = RawState::stopped;
    recorder->file_.write_header();
  } catch (const std::exception&) {
    // There is no memory for it.
  }
  instance.store(nullptr, std::memory_order_release);
}

void Recorder::describe_process() {
  RawHeader& header = file_.header;
  header.level = settings_.level;
  header.pid = static_cast<std::uint64_t>(getpid());
  header.rank = rank_of_environment();
  header.begin_ns = ns_of(CLOCK_REALTIME);
  copy_file(header.command, "/proc/self/cmdline");
  copy_file(header.driver, "/proc/driver/nvidia/version");
}

bool Recorder::prepare() {
  RawHeader& header = file_.header;
  if (!find_driver()) return false;
  std::string reason;
  if (!cupti_.load(static_cast<int>(header.cuda_version), settings_.cupti_folders, reason)) {
    copy_text(header.reason, reason);
    return false;
  }
  header.cupti_version = cupti_.version;
  copy_text(header.cupti_path, cupti_.path);
  file_.write_header();
  if (!buffers_.begin()) {
    copy_text(header.reason, "there is no memory for CUPTI's records");
    return false;
  }
  if (!subscribe() || !enable()) return false;
  header.state = RawState::recording;
  file_.write_header();
  return true;
}

bool Recorder::find_driver() {
  RawHeader& header = file_.header;
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  auto* const version =
      driver ? reinterpret_cast<int (*)(int*)>(dlsym(driver, "cuDriverGetVersion")) : nullptr;
  int cuda = 0;
  if (!version || version(&cuda) != 0) {
    copy_text(header.reason, "the driver does not tell its version");
    return false;
  }
  header.cuda_version = static_cast<std::uint32_t>(cuda);
  header.simulated = dlsym(driver, "launchgap_fake_library") ? 1 : 0;
  DriverFunctions functions;
  const auto find = [&]<class Function>(Function*& function, const char* name) {
    if (!function) function = reinterpret_cast<Function*>(dlsym(driver, name));
  };
  find(functions.get, "cuDeviceGet");
  find(functions.name, "cuDeviceGetName");
  find(functions.attribute, "cuDeviceGetAttribute");
  find(functions.memory, "cuDeviceTotalMem_v2");
  find(functions.uuid, "cuDeviceGetUuid_v2");
  find(functions.uuid, "cuDeviceGetUuid");
  encoder_.set_driver(functions);
  return true;
}

bool Recorder::refuse(Result code, const char* call) {
  std::string reason =
      std::string(call) + " answered " + std::to_string(code) + ": " + cupti_.describe(code);
  if (code == kNotInitialized || code == kUnknown)
    reason += "; this CUPTI may be newer than the driver";
  if (code == kInsufficientPrivileges || code == kVirtualisedInsufficientPrivileges)
    reason += "; https://developer.nvidia.com/ERR_NVGPUCTRPERM tells how to allow it";
  copy_text(file_.header.reason, reason);
  return false;
}

bool Recorder::subscribe() {
  const auto ignore = [](void*, int, std::uint32_t, const void*) {};
  const Result code = cupti_.cuptiSubscribe(&subscriber_, ignore, nullptr);
  if (code == kSuccess) return true;
  if (code != kMultipleSubscribers) return refuse(code, "cuptiSubscribe");
  std::array<char, 128> name{};
  if (cupti_.cuptiSubscribe_v2) {
    SubscriberParameters more{sizeof more, "launchgap", name.data(), name.size() - 1};
    Subscriber asked = nullptr;
    if (cupti_.cuptiSubscribe_v2(&asked, ignore, nullptr, &more) == kSuccess)
      cupti_.cuptiUnsubscribe(asked);
  }
  copy_text(file_.header.reason,
            std::string("another tool has CUPTI in the process, and only one can: ") +
                (name[0] ? name.data() : "it does not tell its name"));
  return false;
}

bool Recorder::enable() {
  if (cupti_.version < kFirstThatTakesNoBuffer) {
    scratch_ = static_cast<std::uint8_t*>(std::aligned_alloc(4096, RecordBuffers::kBytes));
    if (!scratch_) {
      copy_text(file_.header.reason, "there is no memory for CUPTI's records");
      return false;
    }
    std::memset(scratch_, 0, RecordBuffers::kBytes);
  }
  if (cupti_.cuptiActivitySetAttribute) {
    std::uint8_t yes = 1;
    std::size_t bytes = sizeof yes;
    cupti_.cuptiActivitySetAttribute(kZeroedOutBuffer, &bytes, &yes);
  }
  // Ranges know their threads by the system's ids.
  if (cupti_.cuptiSetThreadIdType) cupti_.cuptiSetThreadIdType(kThreadIdSystem);
  if (const Result code = cupti_.cuptiActivityRegisterCallbacks(buffer_requested, buffer_completed))
    return refuse(code, "cuptiActivityRegisterCallbacks");
  if (!enable_calls()) return false;
  if (settings_.level == kLaunches) return true;
  if (const Result code = cupti_.cuptiActivityEnable(kConcurrentKernel))
    return refuse(code, "cuptiActivityEnable");
  // An older library may lack one of these.
  for (const Kind kind : {kMemcpy, kMemset, kOverhead}) cupti_.cuptiActivityEnable(kind);
  if (settings_.level == kKernels) return true;
  for (const Kind kind : {kSynchronization, kMemory2}) cupti_.cuptiActivityEnable(kind);
  return true;
}

bool Recorder::enable_calls() {
  using Calls = std::span<const std::uint32_t>;
  const auto enable = [&](auto function, Kind domain, auto keep, const std::vector<Calls>& sets) {
    bool each = true;
    for (const Calls& set : sets) {
      for (const std::uint32_t call : set) (encoder_.*keep)(call);
      each = cupti::enable_each(function, set) && each;
    }
    return each ? kSuccess : cupti_.cuptiActivityEnable(domain);
  };
  const auto driver = &RecordEncoder::keep_driver_call;
  const auto runtime = &RecordEncoder::keep_runtime_call;
  auto* const driver_api = cupti_.cuptiActivityEnableDriverApi;
  auto* const runtime_api = cupti_.cuptiActivityEnableRuntimeApi;
  std::vector<Calls> driver_calls = {cupti::kDriverLaunches, cupti::kDriverCaptures};
  std::vector<Calls> runtime_calls = {cupti::kRuntimeLaunches, cupti::kRuntimeCaptures};
  if (settings_.level > kKernels) {
    driver_calls.insert(driver_calls.end(), {cupti::kDriverAllocations, cupti::kOtherDriverCalls});
    runtime_calls.emplace_back(cupti::kOtherRuntimeCalls);
  }
  Result code = enable(driver_api, kDriverApi, driver, driver_calls);
  if (code == kSuccess) code = enable(runtime_api, kRuntimeApi, runtime, runtime_calls);
  return code == kSuccess || refuse(code, "cuptiActivityEnable");
}

bool Recorder::start_thread() {
  sem_init(&work_, 0, 0);
  sem_init(&done_, 0, 0);
  // The program's signals are its own threads'; and a file that becomes too large is no reason to
  // end it.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  // Not in the class of a program that runs in real time.
  pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
  const int failed = pthread_create(&thread_, &attributes, run_thread, this);
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (failed != 0) {
    copy_text(file_.header.reason,
              std::string("no thread can be started: ") + std::strerror(failed));
    return false;
  }
  pthread_detach(thread_);
  wait_for_end();
  return true;
}

void Recorder::wait_for_end() {
  static bool registered = false;
  if (registered) return;
  registered = true;
  pthread_atfork(nullptr, nullptr, in_forked_child);
  std::atexit(at_exit);
  std::at_quick_exit(at_exit);
}

// --- The thread that writes ---

void* Recorder::run_thread(void* recorder) {
  auto* const self = static_cast<Recorder*>(recorder);
  pthread_setname_np(pthread_self(), "launchgap");
  // Where the program's thread keeps to one CPU, this one leaves it.
  cpu_set_t cpus;
  if (sched_getaffinity(0, sizeof cpus, &cpus) == 0 && CPU_COUNT(&cpus) == 1) {
    std::memset(&cpus, 0xFF, sizeof cpus);
    sched_setaffinity(0, sizeof cpus, &cpus);
  }
  try {
    self->run();
  } catch (const std::exception&) {
    // Of the few that are possible here, all are of memory.
    self->disable();
    copy_text(self->file_.header.reason, "there is no memory for what is recorded");
    self->file_.header.state = RawState::stopped;
    self->file_.write_header();
  }
  sem_post(&self->done_);
  return nullptr;
}

void Recorder::run() {
  const std::int64_t begin_ns = ns_of(CLOCK_MONOTONIC);
  std::int64_t flushed_ns = begin_ns;
  while (!asked_to_end_) {
    const timespec until = after(CLOCK_MONOTONIC, kFlushNs);
    sem_clockwait(&work_, CLOCK_MONOTONIC, &until);
    if (asked_to_end_) break;
    const std::int64_t now = ns_of(CLOCK_MONOTONIC);
    const bool flushes = now - flushed_ns >= (buffers_.scarce() ? kFlushWhereScarceNs : kFlushNs);
    if (flushes) flushed_ns = now;
    if (flushes && is_last_thread()) break;
    collect(flushes, false);
    if (stopped_) continue;
    if (const char* const failure = file_.failure()) stop(failure);
    const double ran_s = static_cast<double>(now - begin_ns) * 1e-9;
    if (settings_.seconds > 0 && ran_s >= settings_.seconds) {
      collect(true, false);
      stop("the time that it was asked for is over");
    }
  }
  end();
}

void Recorder::collect(bool flushed, bool forced) {
  if (flushed && !stopped_) cupti_.cuptiActivityFlushAll(forced ? kFlushForced : kFlushCompleted);
  for (;;) {
    const RecordBuffers::Full full = buffers_.next_full();
    if (!full.data) break;
    if (!stopped_) encoder_.encode(full.data, full.valid_bytes);
    buffers_.recycle(full);
  }
  rings_.drain([&](const EndedRange& range) {
    if (!stopped_)
      encoder_.range(range.begin_ns, range.end_ns, range.thread, range.name, range.length);
  });
  if (stopped_ || !flushed) return;
  std::size_t dropped = 0;
  if (cupti_.cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped) == kSuccess)
    file_.header.dropped += dropped;
  file_.header.dropped += scratched_.exchange(0);
  file_.header.lost_ranges += lost_ranges_.exchange(0);
  file_.flush();
  file_.header.writing_ns = ns_of(CLOCK_THREAD_CPUTIME_ID);
  file_.write_header();
}

void Recorder::stop(const std::string& reason) {
  collect(true, true);
  stopped_ = true;
  disable();
  copy_text(file_.header.reason, reason);
  file_.header.state = RawState::stopped;
  file_.write_header();
}

void Recorder::disable() {
  if (!subscriber_) return;
  for (const Kind kind : {kConcurrentKernel,
                          kMemcpy,
                          kMemset,
                          kOverhead,
                          kSynchronization,
                          kMemory2,
                          kDriverApi,
                          kRuntimeApi})
    cupti_.cuptiActivityDisable(kind);
  cupti_.cuptiUnsubscribe(subscriber_);
  subscriber_ = nullptr;
}

void Recorder::end() {
  const std::int64_t begin_ns = ns_of(CLOCK_MONOTONIC);
  if (stopped_) return;
  collect(true, false);
  collect(true, true);
  file_.header.ending_ns = ns_of(CLOCK_MONOTONIC) - begin_ns;
  if (const char* const failure = file_.failure()) {
    copy_text(file_.header.reason, failure);
    file_.header.state = RawState::stopped;
  } else {
    file_.header.state = RawState::ended;
  }
  file_.write_header();
  // Some drivers crash in a process that ends while it is recorded.
  disable();
}

// --- On the program's threads ---

std::int64_t Recorder::now_ns() const {
  std::uint64_t now = 0;
  if (cupti_.cuptiGetTimestamp && cupti_.cuptiGetTimestamp(&now) == kSuccess)
    return static_cast<std::int64_t>(now);
  return ns_of(CLOCK_REALTIME);
}

void Recorder::buffer_requested(std::uint8_t** buffer, std::size_t* bytes, std::size_t* records) {
  *records = 0;  // as many as fit
  *bytes = RecordBuffers::kBytes;
  Recorder* const self = get();
  *buffer = self ? self->buffers_.take() : nullptr;
  if (self && self->buffers_.scarce()) sem_post(&self->work_);
  if (*buffer) return;
  if (self && self->scratch_) {
    // CUPTI does not count what is lost in there.
    self->scratched_.fetch_add(1, std::memory_order_relaxed);
    *buffer = self->scratch_;
  } else {
    *bytes = 0;  // it counts what it drops
  }
}

void Recorder::buffer_completed(Context,
                                std::uint32_t,
                                std::uint8_t* buffer,
                                std::size_t,
                                std::size_t valid_bytes) {
  Recorder* const self = get();
  if (!self || !buffer || buffer == self->scratch_) return;
  if (self->buffers_.give_back_full(buffer, valid_bytes)) sem_post(&self->work_);
}

namespace {

/// The calling thread's ring of ranges, of the recorder that it is for.
struct OwnRing {
  Recorder* of = nullptr;
  RangeRing* ring = nullptr;
};
thread_local OwnRing own_ring;

/// By which a thread that ends gives its ring away; what it does after that is lost. False if a
/// program has all keys there are.
bool ring_key(pthread_key_t& key) {
  static pthread_key_t made{};
  static const bool ok = pthread_key_create(&made, [](void* ring) {
                           own_ring.ring = nullptr;
                           static_cast<RangeRing*>(ring)->abandoned = true;
                         }) == 0;
  key = made;
  return ok;
}

}  // namespace

void Recorder::keep(const EndedRange& range) noexcept {
  if (own_ring.of != this) {
    pthread_key_t key{};
    own_ring = {this, ring_key(key) ? rings_.add() : nullptr};
    if (own_ring.ring) pthread_setspecific(key, own_ring.ring);
  }
  if (!own_ring.ring || !own_ring.ring->put(range)) {
    lose_range();
  } else if (own_ring.ring->half_full()) {
    sem_post(&work_);
  }
}

void Recorder::at_exit() {
  Recorder* const self = get();
  if (!self || getpid() != owner) return;
  self->file_.header.ran_ns = ns_of(CLOCK_MONOTONIC) - self->started_ns_;
  if (self->settings_.level == kClockAlone) {
    const FileLimitIgnored ignored;
    self->file_.header.state = RawState::ended;
    return self->file_.write_header();
  }
  self->asked_to_end_ = true;
  sem_post(&self->work_);
  const timespec until = after(CLOCK_MONOTONIC, std::int64_t{kMostEndS} * 1'000'000'000);
  while (sem_clockwait(&self->done_, CLOCK_MONOTONIC, &until) != 0 && errno == EINTR) {
  }
}

void Recorder::in_forked_child() {
  instance.store(nullptr, std::memory_order_release);
}

}  // namespace launchgap::injected

/// What the driver calls when it is initialised, if CUDA_INJECTION64_PATH names this library.
extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  launchgap::injected::Recorder::start();
  return 1;
}
