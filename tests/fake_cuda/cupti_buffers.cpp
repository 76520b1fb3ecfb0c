#include "tests/fake_cuda/cupti_buffers.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <thread>

#include "tests/fake_cuda/operation.h"

namespace launchgap::fake {
namespace {

constexpr std::size_t kAlignment = 8;  // ACTIVITY_RECORD_ALIGNMENT of cupti_activity.h

thread_local bool calling_back = false;

/// Marks the calling thread as being in a callback.
class CallingBack {
 public:
  CallingBack() { calling_back = true; }
  ~CallingBack() { calling_back = false; }
  CallingBack(const CallingBack&) = delete;
  CallingBack& operator=(const CallingBack&) = delete;
};

}  // namespace

bool Buffers::in_callback() {
  return calling_back;
}

bool Buffers::Buffer::takes(const Record& record) const {
  return memory != nullptr && record.size <= bytes - used &&
         (most_records == 0 || records.size() < most_records);
}

void Buffers::Buffer::put(const Record& record) {
  if (record.kernel) kernels.emplace_back(used, record.kernel);
  std::memcpy(memory + used, record.bytes.data(), record.size);
  records.push_back(used);
  used += record.size;
}

void Buffers::Buffer::convert(double now_ns, std::size_t most) {
  for (; most > 0 && !kernels.empty() && kernels.front().second->complete(now_ns); --most) {
    complete_kernel(memory + kernels.front().first, *kernels.front().second, now_ns);
    kernels.pop_front();
  }
}

bool Buffers::Buffer::complete(double now_ns) const {
  return std::all_of(kernels.begin(), kernels.end(), [&](const auto& kernel) {
    return kernel.second->complete(now_ns);
  });
}

Buffers::Thread& Buffers::this_thread() {
  return of_this_thread(mutex_, threads_);
}

Buffers::Buffer Buffers::request() {
  Buffer buffer;
  const auto requested = requested_.load();
  if (requested == nullptr) return buffer;
  const CallingBack in_client;
  requested(&buffer.memory, &buffer.bytes, &buffer.most_records);
  return buffer;
}

bool Buffers::put(Thread& thread, const Record& record) {
  {
    const std::lock_guard lock(thread.mutex);
    if (thread.current.takes(record)) {
      thread.current.put(record);
      return true;
    }
    if (thread.current.memory != nullptr) thread.full.push_back(std::exchange(thread.current, {}));
  }
  Buffer fresh = request();
  if (fresh.memory == nullptr) return false;
  const bool usable =
      reinterpret_cast<std::uintptr_t>(fresh.memory) % kAlignment == 0 && fresh.takes(record);
  const std::lock_guard lock(thread.mutex);
  if (usable) {
    thread.current = std::move(fresh);
    thread.current.put(record);
  } else {
    thread.full.push_back(std::move(fresh));
  }
  return usable;
}

void Buffers::write(const std::vector<Record>& records) {
  Thread& thread = this_thread();
  for (const auto& record : records) {
    if (!calling_back && put(thread, record)) continue;
    std::free(record.owned);
    drop(1);
  }
  if (calling_back) return;
  const double now = now_ns();
  {
    constexpr std::size_t kMost = 4;
    const std::lock_guard lock(thread.mutex);
    (thread.full.empty() ? thread.current : thread.full.front()).convert(now, kMost);
  }
  give_back(take_complete(thread, false, false, now), now);
}

void Buffers::flush(bool forced) {
  std::vector<Thread*> threads;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& thread : threads_) threads.push_back(thread.get());
  }
  const double now = now_ns();
  for (Thread* const thread : threads) give_back(take_complete(*thread, true, forced, now), now);
}

std::vector<Buffers::Buffer> Buffers::take_complete(Thread& thread,
                                                    bool current_too,
                                                    bool forced,
                                                    double now_ns) {
  std::vector<Buffer> taken;
  const std::lock_guard lock(thread.mutex);
  const auto kept =
      std::stable_partition(thread.full.begin(), thread.full.end(), [&](const Buffer& buffer) {
        return forced || buffer.complete(now_ns);
      });
  std::move(thread.full.begin(), kept, std::back_inserter(taken));
  thread.full.erase(thread.full.begin(), kept);
  if (current_too && thread.current.memory != nullptr &&
      (forced || thread.current.complete(now_ns))) {
    taken.push_back(std::exchange(thread.current, {}));
  }
  return taken;
}

void Buffers::give_back(std::vector<Buffer> buffers, double now_ns) {
  if (buffers.empty()) return;
  for (auto& buffer : buffers) {
    for (const auto& [offset, kernel] : buffer.kernels) {
      complete_kernel(buffer.memory + offset, *kernel, now_ns);
    }
    if (manner_.shuffle) shuffle(buffer);
  }
  const auto completed = completed_.load();
  const auto call_back = [&] {
    const CallingBack in_client;
    for (const auto& buffer : buffers) {
      completed(nullptr, 0, buffer.memory, buffer.bytes, buffer.used);
    }
  };
  if (manner_.callback_thread) {
    std::thread(call_back).join();
  } else {
    call_back();
  }
}

void Buffers::shuffle(Buffer& buffer) {
  const std::vector<std::uint8_t> before(buffer.memory, buffer.memory + buffer.used);
  std::vector<std::pair<std::size_t, std::size_t>> records;  // begin and end
  for (std::size_t i = 0; i < buffer.records.size(); ++i) {
    const bool last = i + 1 == buffer.records.size();
    records.emplace_back(buffer.records[i], last ? buffer.used : buffer.records[i + 1]);
  }
  {
    const std::lock_guard lock(mutex_);
    std::shuffle(records.begin(), records.end(), random_);
  }
  std::uint8_t* to = buffer.memory;
  for (const auto& [begin, end] : records) {
    std::memcpy(to, before.data() + begin, end - begin);
    to += end - begin;
  }
}

}  // namespace launchgap::fake
