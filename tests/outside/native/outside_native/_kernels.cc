// Tridiagonal systems by elimination without pivoting, one after the other.

#include <cstdint>
#include <vector>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

// Row i of a system: below[i] x[i - 1] + middle[i] x[i] + above[i] x[i + 1] = b[i]; x may be the memory of b.
template <typename T>
static void SolveAll(const T* below, const T* middle, const T* above, const T* b, T* x, int64_t systems, int64_t n) {
  std::vector<T> factors(n);
  for (int64_t s = 0; s < systems; ++s, below += n, middle += n, above += n, b += n, x += n) {
    T factor = 0, before = 0;
    for (int64_t i = 0; i < n; ++i) {
      T pivot = middle[i] - (i ? below[i] * factor : 0);
      factors[i] = factor = above[i] / pivot;
      x[i] = before = (b[i] - (i ? below[i] * before : 0)) / pivot;
    }
    for (int64_t i = n - 2; i >= 0; --i) x[i] -= factors[i] * x[i + 1];
  }
}

static ffi::Error Run(ffi::AnyBuffer below, ffi::AnyBuffer middle, ffi::AnyBuffer above, ffi::AnyBuffer b,
                      ffi::Result<ffi::AnyBuffer> x) {
  int64_t n = b.dimensions().back(), systems = n ? b.element_count() / n : 0;
  if (b.element_type() == ffi::F64) {
    SolveAll(below.typed_data<double>(), middle.typed_data<double>(), above.typed_data<double>(),
             b.typed_data<double>(), x->typed_data<double>(), systems, n);
  } else {
    SolveAll(below.typed_data<float>(), middle.typed_data<float>(), above.typed_data<float>(),
             b.typed_data<float>(), x->typed_data<float>(), systems, n);
  }
  return ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(Solve, Run,
                              ffi::Ffi::Bind()
                                  .Arg<ffi::AnyBuffer>()
                                  .Arg<ffi::AnyBuffer>()
                                  .Arg<ffi::AnyBuffer>()
                                  .Arg<ffi::AnyBuffer>()
                                  .Ret<ffi::AnyBuffer>());
