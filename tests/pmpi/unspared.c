/* The same program, with a call that a rank could take to the library alone. `unspared FILE`. */
#define COMES_ALONE
#include "spared.c"
