// Threads of our own: tasks by number, a caller that stays responsive.
#pragma once

#include <algorithm>
#include <atomic>
#include <cfenv>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "stop.hpp"

namespace lhtree {

/// Arithmetic as the standard has it while this lives. Other libraries may have
/// switched the thread to flush tiny numbers to zero, and then next(0) is 0.
class StandardArithmetic {
 public:
  StandardArithmetic() {
    std::fegetenv(&before_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~StandardArithmetic() { std::fesetenv(&before_); }
  StandardArithmetic(const StandardArithmetic&) = delete;
  StandardArithmetic& operator=(const StandardArithmetic&) = delete;

 private:
  std::fenv_t before_;
};

/// Called by the waiting thread every few milliseconds with the number of tasks
/// done; what it throws stops the work and reaches the caller.
using Poll = std::function<void(std::int64_t n_done)>;

/// Work that is not worth a thread: a few milliseconds, too short for an interrupt.
constexpr std::int64_t small_work = 1 << 20;  // values to be read once

/// Run task(i, stop) for i = 0 ... n_tasks - 1 on `n_threads` threads.
///
/// Tasks are taken in order and may end in any. The first exception of a task
/// or of `poll` stops the others and is thrown here once all have ended.
template <class Task>
void run_tasks(std::int64_t n_tasks, std::int64_t n_threads, const Task& task, const Poll& poll) {
  constexpr auto poll_interval = std::chrono::milliseconds(50);
  StopFlag stop{false};
  std::atomic<std::int64_t> next{0}, n_done{0};
  std::mutex mutex;
  std::condition_variable finished;
  std::int64_t n_running = std::max<std::int64_t>(1, std::min(n_threads, n_tasks));
  std::exception_ptr failure;  // guarded by mutex

  const auto fail = [&] {
    const std::lock_guard lock(mutex);
    if (!failure) failure = std::current_exception();
    stop = true;
  };
  const auto work = [&] {
    const StandardArithmetic standard;
    try {
      for (std::int64_t i = next++; i < n_tasks && !stop; i = next++) {
        task(i, stop);
        ++n_done;
      }
    } catch (const Stopped&) {
    } catch (...) {
      fail();
    }
    const std::lock_guard lock(mutex);
    if (--n_running == 0) finished.notify_all();
  };

  {
    std::vector<std::jthread> threads;
    const std::int64_t n_wanted = n_running;
    try {
      for (std::int64_t k = 0; k < n_wanted; ++k) threads.emplace_back(work);
    } catch (...) {  // the system refuses a thread: go on with those that started
      const std::lock_guard lock(mutex);
      n_running -= n_wanted - static_cast<std::int64_t>(threads.size());
      if (threads.empty()) throw;
    }
    std::unique_lock lock(mutex);
    while (!finished.wait_for(lock, poll_interval, [&] { return n_running == 0; })) {
      lock.unlock();
      try {
        if (!stop) poll(n_done);
      } catch (...) {
        fail();
      }
      lock.lock();
    }
  }
  if (failure) std::rethrow_exception(failure);
  poll(n_done);
}

}  // namespace lhtree
