/* How warm the memory is that a node hands out: for every program that is measured the same. */
#ifndef PENSTOCK_BENCH_NODE_MEMORY_H
#define PENSTOCK_BENCH_NODE_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Memory that was just used is handed out faster than memory that has gone cold. Touches and
 * releases a worker's share of `node_bytes` (huge pages asked for), or of half of what is available
 * where that is less, and releases it right `after_reports` of free pages (page_reports.h) where
 * that is asked for; by then this worker has read the program's files (program_files.h). Gives the
 * bytes touched. */
int64_t warm_node_memory(int64_t node_bytes, int workers_of_node, bool after_reports);

/* What is kept from a run so that it is given memory that has gone cold. */
struct KeptMemory {
  void *small, *recent;
  int64_t small_bytes, recent_bytes;
  int64_t left_bytes; /* that should have been kept, but for two thirds of what is available */
};

/* A virtual machine gives free blocks of 2 MiB and more back to its host. Which memory of a node is
 * cold is a matter of what ran before, and whoever asks for little at a time is given smaller
 * blocks, which stay warm (docs/decisions/0061): so this process takes and keeps those, and of the
 * larger ones those that were used last: 2 GiB, and the `warm_bytes` that a run before may have
 * warmed. Then it waits until what else was freed has gone cold: 8 s in all, and until
 * `after_reports`. For one worker of each node; the others wait for it. */
struct KeptMemory cool_node_memory(int64_t warm_bytes, bool after_reports);
/* Once it has been measured. More than once does nothing. */
void give_back_memory(struct KeptMemory* kept);

#ifdef __cplusplus
}
#endif

#endif
