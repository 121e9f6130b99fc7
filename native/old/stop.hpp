// How work in progress hears that it should end.
#pragma once

#include <atomic>
#include <exception>

namespace lhtree {

/// Raised inside the core when the caller asked to stop.
struct Stopped : std::exception {
  const char* what() const noexcept override { return "stopped"; }
};

using StopFlag = std::atomic<bool>;

inline void check_stop(const StopFlag& stop) {
  if (stop.load(std::memory_order_relaxed)) throw Stopped();
}

}  // namespace lhtree
