// Loops in the widest registers that the machine has.
//
// A build is for every machine of its kind; loops that are worth it are compiled for wider
// registers, too. Integers do not care, and doubles are added up one by one in the loops that
// use this, so the width never changes a bit. LHTREE_INSTRUCTIONS=baseline or avx2 holds it back.
#pragma once

#include <cstdlib>
#include <string_view>

namespace lhtree::base {

/// Functions that become part of the loops that call them.
#if defined(__GNUC__)
#define LHTREE_INLINED inline __attribute__((always_inline))
#else
#define LHTREE_INLINED inline
#endif

#if defined(__x86_64__) && defined(__GNUC__) && (defined(__clang__) || __GNUC__ >= 12)
#define LHTREE_FLAT __attribute__((always_inline))

enum class Instructions { baseline, avx2, avx512 };

inline Instructions detect_instructions() {
  const char* text = std::getenv("LHTREE_INSTRUCTIONS");
  const std::string_view most = text ? text : "";
  __builtin_cpu_init();
  if (most == "baseline" || !__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("bmi2"))
    return Instructions::baseline;
  const bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return most == "avx2" || !has_avx512 ? Instructions::avx2 : Instructions::avx512;
}

inline Instructions instructions() {
  static const Instructions found = detect_instructions();
  return found;
}

template <class Loop>
__attribute__((target("avx2,bmi,bmi2"), noinline)) void run_avx2(Loop loop) {
  loop();
}
template <class Loop>
__attribute__((target("avx2,bmi,bmi2,avx512f,avx512bw,avx512dq,avx512vl"), noinline)) void
run_avx512(Loop loop) {
  loop();
}

/// Run a loop, written as `[=]() LHTREE_FLAT { ... }`: copies of pointers and sizes are known not
/// to be changed by what the loop writes.
template <class Loop>
void run_wide(Loop loop) {
  switch (instructions()) {
    case Instructions::avx512:
      return run_avx512(loop);
    case Instructions::avx2:
      return run_avx2(loop);
    default:
      return loop();
  }
}
#else
#define LHTREE_FLAT
template <class Loop>
void run_wide(Loop loop) {
  loop();
}
#endif

/// Ask for memory that will be read soon.
inline void prefetch([[maybe_unused]] const void* address) {
#if defined(__GNUC__)
  __builtin_prefetch(address);
#endif
}

}  // namespace lhtree::base
