// Which implementation of the kernels runs on this processor; asked once a decoder, never cached.
#include "adapters/reference/kernels.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace memdecay::reference {

bool processor_has_avx2() {
#if defined(__x86_64__)
  // Clang's builtin does not know the name f16c; without AVX enabled by the system the others fail.
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  const bool f16c = __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
  __builtin_cpu_init();
  return f16c && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
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
