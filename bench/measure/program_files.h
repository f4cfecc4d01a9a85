/* The files that a program consists of, read into memory before it is measured. */
#ifndef PENSTOCK_BENCH_PROGRAM_FILES_H
#define PENSTOCK_BENCH_PROGRAM_FILES_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Reads every file that this process has mapped, and every library (*.so) that lies beside one of
 * them in a directory of at most 256 entries: what an MPI library, or Penstock, loads with the
 * first file. A machine that pages out what was not used lately reads them from a disk else, in
 * some samples and not in others (docs/decisions/0076). Gives the bytes read; what can't be read
 * is left out. */
int64_t read_program_files(void);

#ifdef __cplusplus
}
#endif

#endif
