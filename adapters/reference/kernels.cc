// Which implementation of the kernels runs on this processor; asked once a decoder, never cached.
#include "adapters/reference/kernels.h"

namespace memdecay::reference {

bool processor_has_avx2() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("f16c");
#else
  return false;
#endif
}

const Kernels& choose_kernels(KernelChoice choice) {
#if defined(__x86_64__)
  if (choice == KernelChoice::kBest && processor_has_avx2()) return avx2_kernels();
#else
  (void)choice;
#endif
  return portable_kernels();
}

}  // namespace memdecay::reference
