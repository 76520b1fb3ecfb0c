// A program to record: it does what its arguments say, in their order, and says how many kernels it
// launched by how many calls. Everything goes through the driver, as a framework's work does.
//
//   launch N          N launches and a wait, in the process's only thread
//   threads T S N     T threads, of which each launches N times, in turns into S streams of its own
//   graph N M         a graph of N kernels, launched M times
//   devices N         N launches on each GPU
//   ranges N M        N ranges named step of M launches each, as NVTX tells them
//   copies N          N copies to the device and N fills
//   sleep MS          so that what was done is written
//   fork|exec|crash|kill|_exit   as they say; fork: the child launches nothing and goes on; exec:
//                     the words behind are the next program's
//   child N           a process of its own that launches N times
//   outlive MS        a process of its own that launches once, and again after this one has ended
//   leave             main ends by pthread_exit, which leaves the process to its other threads
//   limit BYTES       no file may be longer from here on
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <pthread.h>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "harness/device/backend.h"
#include "harness/device/device.h"
#include "harness/measure/nvtx.h"
#include "kernels/kernels.h"

namespace launchgap {
namespace {

struct Counts {
  long calls = 0, kernels = 0;
};

class Program {
 public:
  void run(std::vector<std::string> words) {
    for (std::size_t i = 0; i < words.size();) {
      const std::string& verb = words[i++];
      const auto number = [&] { return i < words.size() ? std::stol(words[i++]) : 1; };
      if (verb == "launch") launch(number());
      if (verb == "threads") {
        const long count = number(), streams = number();
        threads(count, streams, number());
      }
      if (verb == "graph") {
        const long nodes = number();
        graph(nodes, number());
      }
      if (verb == "devices") devices(number());
      if (verb == "ranges") {
        const long steps = number();
        ranges(steps, number());
      }
      if (verb == "copies") copies(number());
      if (verb == "sleep") usleep(static_cast<useconds_t>(1000 * number()));
      if (verb == "child") child(number());
      if (verb == "outlive") outlive(number());
      if (verb == "limit") limit_files(number());
      if (verb == "leave") {
        say();
        pthread_exit(nullptr);
      }
      if (verb == "fork") fork_once();
      if (verb == "exec") become({words.begin() + static_cast<std::ptrdiff_t>(i), words.end()});
      if (verb == "exec") return;
      say_before(verb);
    }
    say();
  }

 private:
  void say() const {
    std::printf("calls %ld kernels %ld\n", counts_.calls, counts_.kernels);
    std::fflush(stdout);
  }

  void say_before(const std::string& verb) const {
    if (verb != "crash" && verb != "kill" && verb != "_exit") return;
    say();
    if (verb == "crash") *static_cast<volatile int*>(nullptr) = 1;
    if (verb == "kill") kill(getpid(), SIGKILL);
    _exit(9);
  }

  Device& device() {
    if (!device_) {
      device_ = open_device("cuda", probe_devices("cuda").at(0).uuid);
      stream_ = device_->create_stream();
      kernel_ = device_->load(kernels::null_kernel);
    }
    return *device_;
  }

  void launch_on(Device& on, long n) {
    const auto stream = on.create_stream();
    const auto kernel = on.load(kernels::null_kernel);
    for (long i = 0; i < n; ++i) stream->launch(*kernel, {1, 1}, nullptr);
    stream->wait();
    counts_.calls += n;
    counts_.kernels += n;
  }

  void launch(long n) {
    device();
    for (long i = 0; i < n; ++i) {
      stream_->launch(*kernel_, {1, 1}, nullptr);
      if (i % 256 == 255) stream_->wait();
    }
    stream_->wait();
    counts_.calls += n;
    counts_.kernels += n;
  }

  void threads(long count, long streams, long n) {
    device();
    std::vector<std::thread> all;
    for (long t = 0; t < count; ++t) {
      all.emplace_back([&] {
        device_->use_on_this_thread();
        std::vector<std::unique_ptr<Stream>> own;
        for (long s = 0; s < streams; ++s) own.push_back(device_->create_stream());
        for (long i = 0; i < n; ++i)
          own[static_cast<std::size_t>(i % streams)]->launch(*kernel_, {1, 1}, nullptr);
        for (const auto& stream : own) stream->wait();
      });
    }
    for (std::thread& thread : all) thread.join();
    counts_.calls += count * n;
    counts_.kernels += count * n;
  }

  void graph(long nodes, long n) {
    device();
    const auto captured = device_->capture(*stream_, [&] {
      for (long i = 0; i < nodes; ++i) stream_->launch(*kernel_, {1, 1}, nullptr);
    });
    const auto executable = device_->instantiate(*captured);
    for (long i = 0; i < n; ++i) executable->launch(*stream_);
    stream_->wait();
    counts_.calls += n;
    counts_.kernels += n * nodes;
  }

  void devices(long n) {
    for (const DeviceFacts& facts : probe_devices("cuda"))
      launch_on(*open_device("cuda", facts.uuid), n);
  }

  void ranges(long steps, long n) {
    device();
    static const nvtx::Name name("step");
    for (long step = 0; step < steps; ++step) {
      const nvtx::Range range(name, static_cast<std::uint64_t>(step));
      launch(n);
    }
  }

  void copies(long n) {
    constexpr std::size_t kBytes = 4096;
    const auto buffer = device().allocate(kBytes);
    const auto host = device().allocate_shared(kBytes);
    for (long i = 0; i < n; ++i) {
      stream_->copy(buffer->address(), host->address(), kBytes, CopyDirection::host_to_device);
      stream_->fill_bytes(buffer->address(), 0, kBytes);
    }
    stream_->wait();
  }

  void child(long n) {
    std::fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0) {
      Program own;
      own.launch(n);
      std::exit(0);
    }
    waitpid(pid, nullptr, 0);
    counts_.calls += n;
    counts_.kernels += n;
  }

  void outlive(long ms) {
    std::fflush(stdout);
    if (fork() != 0) {
      constexpr useconds_t kUntilItHasBegun = 400'000;
      usleep(kUntilItHasBegun);
      return;
    }
    setsid();
    for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) close(descriptor);
    Program own;
    own.launch(1);
    usleep(static_cast<useconds_t>(1000 * ms));
    own.launch(1);
    std::exit(0);
  }

  static void limit_files(long bytes) {
    const rlimit limit{static_cast<rlim_t>(bytes), static_cast<rlim_t>(bytes)};
    setrlimit(RLIMIT_FSIZE, &limit);
  }

  /// A child that has its parent's CUDA, and cannot use it.
  static void fork_once() {
    std::fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0) std::exit(0);
    waitpid(pid, nullptr, 0);
  }

  static void become(std::vector<std::string> words) {
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    std::perror("exec");
    std::exit(1);
  }

  Counts counts_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Kernel> kernel_;
};

}  // namespace
}  // namespace launchgap

int main(int argc, char** argv) {
  try {
    launchgap::Program().run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "launching_program: %s\n", error.what());
    return 3;
  }
  return 0;
}
