/* Whether a program gains privileges when it is executed: the loader then drops preloaded
 * libraries, and the environment is not to be trusted. */
#ifndef PENSTOCK_PMPI_EXEC_PRIVILEGES_H
#define PENSTOCK_PMPI_EXEC_PRIVILEGES_H

/* The words for what it is by which it does; NULL when it does not. As the kernel decides it: not
 * by marks that change nothing for this user, that its mount ignores, or that no child of this
 * process may use any more. */
const char* gains_privileges_as(const char* path);

#endif
