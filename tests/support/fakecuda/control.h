// What a test says to the fake driver besides CUDA calls: which driver to be, what to break, what
// was left behind. Exported from the fake libcuda.so.1 beside the driver's entry point, so a test
// that loads it by path finds these by dlsym; processes that only inherit it are configured by the
// environment variable FAKECUDA, which holds the same words.
// Words (separated by blanks):
//   version=12040|12080|13000   which symbols there are, and what cuDriverGetVersion says
//   seed=N                      order and lateness of asynchronous work
//   late_us=N                   asynchronous work waits up to so long (default 300)
//   vram=BYTES taken=BYTES      memory of the device; what "another process" has of it
//   devices=N mig=1             how many; whether they are MIG instances
//   mode=default|exclusive|prohibited mps=1
//   no_device=1 no_vmm=1 no_posix_fd=1
//   without=SYMBOL              the driver does not have it
//   fail=CALL:N:RESULT          the Nth call of CALL answers RESULT (a CUresult number)
//   sticky=CALL:N               the Nth call of CALL breaks the context for good (700)
//   skip=CALL                   a wait (cuEventSynchronize, cuStreamSynchronize) that does not
//   wait:
//                               what a program would be that forgot it
//   report=FILE                 at exit a line of JSON is appended: what is left, and all calls
// Thread: any. Not here: the driver's own calls (fake.h).
#pragma once

#include <stdint.h>

extern "C" {

// The file that this driver was loaded from.
const char* fakecuda_path(void);
// Starts over with these words; all objects must be gone. Null, or what is wrong with them.
const char* fakecuda_configure(const char* words);
// What is alive that a program should have given back, and rules it broke; empty: nothing.
// Valid until the next call.
const char* fakecuda_leaks(void);
// Gives back whatever is left, and forgets broken rules: after a test that breaks things on
// purpose.
void fakecuda_forget(void);
// How often a call was made since fakecuda_configure.
uint64_t fakecuda_calls(const char* name);
// "cuMemMap 3\ncuMemUnmap 3\n": all of them, by name.
const char* fakecuda_call_table(void);

}  // extern "C"
