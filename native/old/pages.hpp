// Large arrays that give their memory back at once.
//
// The general allocator keeps freed memory for later, so a model that is copied tree by
// tree would be resident twice, and arrays of many sizes leave gaps in its heap, which count
// in fits on small tables. Arrays of 64 kB and more therefore get pages of their own from the
// system where it can: what is reserved but not yet written takes no memory, and what is freed
// is gone. Small ones begin with a line of the cache.
#pragma once

#include <cstddef>
#include <cstdlib>  // defines __GLIBC__ where there is one
#include <limits>
#include <new>
#include <utility>
#include <vector>

#if defined(__unix__) || defined(__APPLE__)
#include <sys/mman.h>
#define LHTREE_HAS_PAGES
#endif
#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace lhtree {

template <class T>
struct PageAllocator {
  using value_type = T;

  PageAllocator() = default;
  template <class U>
  PageAllocator(const PageAllocator<U>&) {}

  T* allocate(std::size_t n) {
    if (n > std::numeric_limits<std::size_t>::max() / sizeof(T)) throw std::bad_array_new_length();
#ifdef LHTREE_HAS_PAGES
    if (is_large(n)) {
      void* pages = mmap(nullptr, n * sizeof(T), PROT_READ | PROT_WRITE, flags, -1, 0);
      if (pages == MAP_FAILED) throw std::bad_alloc();
      return static_cast<T*>(pages);
    }
#endif
    return static_cast<T*>(::operator new(n * sizeof(T), alignment));
  }

  void deallocate(T* values, std::size_t n) {
#ifdef LHTREE_HAS_PAGES
    if (is_large(n)) {
      munmap(values, n * sizeof(T));
      return;
    }
#endif
    ::operator delete(values, alignment);
  }

  /// What a vector is made or resized to is not filled, so that it is written once.
  template <class U>
  void construct(U* value) {
    ::new (static_cast<void*>(value)) U;
  }
  template <class U, class... Argument>
  void construct(U* value, Argument&&... argument) {
    ::new (static_cast<void*>(value)) U(std::forward<Argument>(argument)...);
  }

  friend bool operator==(const PageAllocator&, const PageAllocator&) { return true; }

 private:
  static constexpr std::align_val_t alignment{64};  // a line of a common cache

#ifdef LHTREE_HAS_PAGES
#ifdef MAP_NORESERVE
  static constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
#else
  static constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS;
#endif
#endif

  static bool is_large(std::size_t n) { return n * sizeof(T) >= std::size_t{1} << 16; }
};

template <class T>
using PageVector = std::vector<T, PageAllocator<T>>;

/// Give an array a size; what was in it is lost. Memory that does not do goes before more is taken.
template <class T>
void remake(PageVector<T>& array, std::size_t n) {
  if (array.capacity() < n) PageVector<T>().swap(array);
  array.resize(n);
}

/// Have large pages for the room of a large array, where the system can: what jumps about
/// in it then needs fewer translations of addresses.
template <class T>
void use_large_pages(PageVector<T>& array) {
#if defined(LHTREE_HAS_PAGES) && defined(MADV_HUGEPAGE)
  constexpr std::size_t least = std::size_t{1} << 24;
  const std::size_t n_bytes = array.capacity() * sizeof(T);
  if (n_bytes >= least) madvise(array.data(), n_bytes, MADV_HUGEPAGE);
#else
  (void)array;
#endif
}

/// Have the general allocator give back what it keeps of freed memory, where it can.
inline void trim_heap() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

}  // namespace lhtree
