/* The same program, not position-independent, with a call that a rank could take to the library
 * alone, by its address. `unspared FILE`. */
#define COMES_ALONE
#include "spared.c"
