/* Between peer.c, peer_clock.c and peer_options.c. */
#ifndef PENSTOCK_PEER_INTERNAL_H
#define PENSTOCK_PEER_INTERNAL_H

#include "peer.h"

/* From here on stdout is stderr, until the line is printed. */
void peer_divert_stdout(void);
/* A JSON string. */
void peer_print_text(const char* text);
/* "parameters": {...}, */
void peer_print_parameters(struct Peer* peer);
/* A rank alone prints the line with its error, and ends the job. */
void peer_give_up(struct Peer* peer);

#endif
