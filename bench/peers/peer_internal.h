/* Between peer.c and peer_options.c. */
#ifndef PENSTOCK_PEER_INTERNAL_H
#define PENSTOCK_PEER_INTERNAL_H

#include "peer.h"

/* From here on stdout is stderr, until the line is printed. */
void peer_divert_stdout(void);
/* A JSON string. */
void peer_print_text(const char* text);
/* "parameters": {...}, */
void peer_print_parameters(struct Peer* peer);

#endif
