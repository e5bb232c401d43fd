// The kernels of corejax-native, as handlers of XLA's FFI.

#include <cstdint>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

// y[t] = x[t] + decay * y[t - 1] in each row; y may be the memory of x.
template <typename T>
static void DecayingSums(const T* x, T* y, int64_t rows, int64_t steps, T decay, bool reverse) {
  for (int64_t row = 0; row < rows; ++row, x += steps, y += steps) {
    T sum = 0;
    for (int64_t i = 0; i < steps; ++i) {
      int64_t t = reverse ? steps - 1 - i : i;
      y[t] = sum = x[t] + decay * sum;
    }
  }
}

static ffi::Error Run(ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> y, double decay, bool reverse) {
  auto sizes = x.dimensions();
  if (sizes.size() == 0) return ffi::Error::InvalidArgument("decaying_sum needs an axis");
  int64_t steps = sizes.back(), rows = steps == 0 ? 0 : x.element_count() / steps;
  switch (x.element_type()) {
    case ffi::F32:
      DecayingSums<float>(x.typed_data<float>(), y->typed_data<float>(), rows, steps, decay, reverse);
      return ffi::Error::Success();
    case ffi::F64:
      DecayingSums<double>(x.typed_data<double>(), y->typed_data<double>(), rows, steps, decay, reverse);
      return ffi::Error::Success();
    default:
      return ffi::Error::InvalidArgument("decaying_sum is for float32 and float64");
  }
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(DecayingSum, Run,
                              ffi::Ffi::Bind()
                                  .Arg<ffi::AnyBuffer>()
                                  .Ret<ffi::AnyBuffer>()
                                  .Attr<double>("decay")
                                  .Attr<bool>("reverse"));
