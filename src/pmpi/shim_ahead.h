/* A library that will be loaded, asked of the disk or the network before anybody waits for it. */
#ifndef PENSTOCK_PMPI_SHIM_AHEAD_H
#define PENSTOCK_PMPI_SHIM_AHEAD_H

/* As far as the loader maps it: not what is there for debuggers. Returns before it has come; only a
 * hint, and nothing where it cannot be read. */
__attribute__((visibility("hidden"))) void penstock_read_ahead(const char* path);

#endif
