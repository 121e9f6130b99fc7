// Threads that share the steps of one task, such as the passes over the rows of a node.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "old/parallel.hpp"

namespace lhtree::base {

/// A caller and its helpers. Steps are short, so a thread that waits spins for a while before it
/// sleeps.
class Team {
 public:
  Team(std::int64_t n_threads, const StopFlag& stop) : stop_(stop) {
    try {
      for (std::int64_t k = 1; k < n_threads; ++k) helpers_.emplace_back([this] { help(); });
    } catch (...) {  // the system refuses a thread: go on with those that started
    }
  }
  ~Team() {
    is_over_ = true;
    start();
  }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  std::int64_t size() const { return static_cast<std::int64_t>(helpers_.size()) + 1; }

  /// Run step(i) for i = 0 ... n - 1; the first exception is thrown here once all have ended.
  /// Steps that have not begun when the work is to stop are left out, and Stopped is thrown.
  template <class Step>
  void run(std::int64_t n, const Step& step) {
    if (helpers_.empty() || n < 2) {
      for (std::int64_t i = 0; i < n; ++i) {
        check_stop(stop_);
        step(i);
      }
      return;
    }
    step_ = [this, &step](std::int64_t i) {
      try {
        if (!stop_) step(i);
      } catch (...) {
        const std::lock_guard lock(mutex_);
        if (!failure_) failure_ = std::current_exception();
      }
    };
    n_steps_ = n;
    next_.store(0, std::memory_order_relaxed);
    n_busy_.store(static_cast<std::int64_t>(helpers_.size()), std::memory_order_relaxed);
    start();
    take_steps();
    for (std::int64_t busy = spin(n_busy_, is_busy); busy > 0;
         busy = n_busy_.load(std::memory_order_acquire))
      n_busy_.wait(busy, std::memory_order_acquire);
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
    check_stop(stop_);
  }

 private:
  static constexpr int patience = 1000;  // spins before a thread sleeps: some ten microseconds

  static void pause() {
#if defined(__x86_64__) && defined(__GNUC__)
    __builtin_ia32_pause();
#else
    std::this_thread::yield();
#endif
  }

  static bool is_busy(std::int64_t n) { return n > 0; }

  /// Spin while a number says to wait, but not for long; returns the number.
  template <class T, class IsWaiting>
  static T spin(const std::atomic<T>& number, const IsWaiting& is_waiting) {
    T value = number.load(std::memory_order_acquire);
    for (int k = 0; k < patience && is_waiting(value); ++k) {
      pause();
      value = number.load(std::memory_order_acquire);
    }
    return value;
  }

  void start() {
    turn_.fetch_add(1, std::memory_order_release);
    turn_.notify_all();
  }

  void take_steps() {
    for (std::int64_t i = next_++; i < n_steps_; i = next_++) step_(i);
  }

  void help() {
    const StandardArithmetic standard;
    for (std::uint32_t seen = 0;; ++seen) {
      spin(turn_, [seen](std::uint32_t turn) { return turn == seen; });
      turn_.wait(seen, std::memory_order_acquire);
      if (is_over_) return;
      take_steps();
      if (n_busy_.fetch_sub(1, std::memory_order_acq_rel) == 1) n_busy_.notify_one();
    }
  }

  const StopFlag& stop_;
  std::function<void(std::int64_t)> step_;
  std::int64_t n_steps_ = 0;
  std::atomic<std::int64_t> next_{0}, n_busy_{0};
  std::atomic<std::uint32_t> turn_{0};
  std::atomic<bool> is_over_{false};
  std::mutex mutex_;
  std::exception_ptr failure_;         // guarded by mutex_ while steps run
  std::vector<std::jthread> helpers_;  // last: they end before the rest goes
};

}  // namespace lhtree::base
