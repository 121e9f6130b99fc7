// Threads that share the steps of one task, such as the passes over the rows of a node.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "old/parallel.hpp"

namespace lhtree::base {

/// A caller and its helpers. Steps are short, so a thread that waits spins for a while before it
/// sleeps. The caller never waits for a helper that has not begun a step: to wake one can take
/// longer than to do its work. Each thread has a range of its own, and takes steps of others when
/// that is done: what it wrote in one run it mostly reads in the next, from a cache nearby.
class Team {
 public:
  Team(std::int64_t n_threads, const StopFlag& stop)
      : stop_(stop), range_(std::max<std::int64_t>(1, n_threads)) {
    try {
      for (std::int64_t k = 1; k < n_threads; ++k) helpers_.emplace_back([this, k] { help(k); });
    } catch (...) {  // the system refuses a thread: go on with those that started
    }
  }
  ~Team() {
    is_over_ = true;
    wake();
  }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  std::int64_t size() const { return static_cast<std::int64_t>(helpers_.size()) + 1; }

  /// Run step(i) for i = 0 ... n - 1; the first exception is thrown here once all have ended.
  /// Steps that have not begun when the work is to stop are left out, and Stopped is thrown.
  template <class Step>
  void run(std::int64_t n, const Step& step) {
    share(n, [&](std::int64_t i, std::int64_t) { step(i); });
  }

  /// Run step(i, thread) for i = 0 ... n - 1, where `thread` is below the size of the team.
  template <class Step>
  void share(std::int64_t n, const Step& step) {
    if (helpers_.empty() || n < 2) {
      for (std::int64_t i = 0; i < n; ++i) {
        check_stop(stop_);
        step(i, 0);
      }
      return;
    }
    step_ = &step;
    call_ = [](const void* each, std::int64_t i, std::int64_t thread) {
      (*static_cast<const Step*>(each))(i, thread);
    };
    n_open_.store(n, std::memory_order_relaxed);
    for (std::int64_t k = 0; k < size(); ++k)
      range_[k].steps.store(pack(n * k / size(), n * (k + 1) / size()), std::memory_order_release);
    wake();
    take_steps(0);
    wait_until_done();
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
    check_stop(stop_);
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr auto patience = std::chrono::microseconds(200);

  /// Steps that nobody has taken yet: from the high half of a word to the low one.
  struct alignas(64) Range {
    std::atomic<std::uint64_t> steps{0};
  };
  static std::uint64_t pack(std::int64_t begin, std::int64_t end) {
    return static_cast<std::uint64_t>(begin) << 32 | static_cast<std::uint64_t>(end);
  }

  static void pause() {
#if defined(__x86_64__) && defined(__GNUC__)
    __builtin_ia32_pause();
#else
    std::this_thread::yield();
#endif
  }

  /// Spin while there is nothing to do, but not for long; returns whether there is something.
  template <class IsReady>
  static bool spin(const IsReady& is_ready) {
    for (const Clock::time_point start = Clock::now(); Clock::now() - start < patience;) {
      for (int k = 0; k < 500; ++k) {
        if (is_ready()) return true;
        pause();
      }
      std::this_thread::yield();  // to a thread of the team, if it waits for this processor
    }
    return is_ready();
  }

  /// A helper counts itself asleep before it looks at the turn for the last time, so that it sees
  /// this turn or is seen here.
  void wake() {
    turn_.fetch_add(1);
    if (n_asleep_.load() > 0) turn_.notify_all();
  }

  /// Take the first step of one's own range, or the last of another's; -1 if none is left.
  static std::int64_t take(Range& range, bool is_own) {
    std::uint64_t steps = range.steps.load(std::memory_order_acquire);
    for (;;) {
      const auto begin = static_cast<std::int64_t>(steps >> 32);
      const auto end = static_cast<std::int64_t>(steps & 0xFFFFFFFFu);
      if (begin >= end) return -1;
      const std::uint64_t rest = is_own ? pack(begin + 1, end) : pack(begin, end - 1);
      if (range.steps.compare_exchange_weak(steps, rest, std::memory_order_acq_rel))
        return is_own ? begin : end - 1;
    }
  }

  void take_steps(std::int64_t thread) {
    for (std::int64_t k = 0; k < size();) {
      const std::int64_t i = take(range_[(thread + k) % size()], k == 0);
      i < 0 ? static_cast<void>(++k) : run_step(i, thread);
    }
  }

  /// Run a step that was taken. Until it is done the caller waits, and `step_` stays.
  void run_step(std::int64_t i, std::int64_t thread) {
    try {
      if (!stop_) call_(step_, i, thread);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
    }
    if (n_open_.fetch_sub(1) == 1 && is_caller_asleep_.load()) n_open_.notify_one();
  }

  void wait_until_done() {
    if (spin([this] { return n_open_.load(std::memory_order_acquire) == 0; })) return;
    is_caller_asleep_ = true;
    for (std::int64_t open = n_open_.load(); open > 0; open = n_open_.load()) n_open_.wait(open);
    is_caller_asleep_ = false;
  }

  void help(std::int64_t thread) {
    const StandardArithmetic standard;
    for (std::uint32_t seen = 0;;) {
      if (!spin([&] { return turn_.load(std::memory_order_acquire) != seen; })) {
        ++n_asleep_;
        turn_.wait(seen);
        --n_asleep_;
      }
      seen = turn_.load(std::memory_order_acquire);
      if (is_over_) return;
      take_steps(thread);
    }
  }

  const StopFlag& stop_;
  const void* step_ = nullptr;
  void (*call_)(const void*, std::int64_t, std::int64_t) = nullptr;
  std::vector<Range> range_;                         // of each thread
  alignas(64) std::atomic<std::int64_t> n_open_{0};  // steps that are not done
  std::atomic<bool> is_caller_asleep_{false};
  alignas(64) std::atomic<std::uint32_t> turn_{0};
  std::atomic<std::int64_t> n_asleep_{0};
  std::atomic<bool> is_over_{false};
  std::mutex mutex_;
  std::exception_ptr failure_;         // guarded by mutex_ while steps run
  std::vector<std::jthread> helpers_;  // last: they end before the rest goes
};

}  // namespace lhtree::base
