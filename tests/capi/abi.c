/* Struct layouts and codes of penstock.h as they were promised: what programs were compiled with
 * must go on to work. New members and codes add lines here; no line changes. */
#include <penstock/penstock.h>

#define AT(type, member, offset) \
  _Static_assert(offsetof(type, member) == (offset), #type "." #member " has moved")

_Static_assert(sizeof(void*) == 8, "the promise is for 64-bit machines");

_Static_assert(sizeof(penstock_extent) == 16, "penstock_extent never grows");
AT(penstock_extent, offset_bytes, 0);
AT(penstock_extent, bytes, 8);

_Static_assert(sizeof(penstock_options) >= 32, "penstock_options only grows");
AT(penstock_options, size, 0);
AT(penstock_options, flags, 8);
AT(penstock_options, permissions, 12);
AT(penstock_options, method, 16);
AT(penstock_options, config, 24);

_Static_assert(sizeof(penstock_stats) >= 128, "penstock_stats only grows");
AT(penstock_stats, size, 0);
AT(penstock_stats, written_bytes, 8);
AT(penstock_stats, collective_calls, 16);
AT(penstock_stats, independent_calls, 24);
AT(penstock_stats, sync_calls, 32);
AT(penstock_stats, failed_calls, 40);
AT(penstock_stats, file_writes, 48);
AT(penstock_stats, cycles, 56);
AT(penstock_stats, messages, 64);
AT(penstock_stats, message_bytes, 72);
AT(penstock_stats, call_s, 80);
AT(penstock_stats, plan_s, 88);
AT(penstock_stats, pack_s, 96);
AT(penstock_stats, exchange_s, 104);
AT(penstock_stats, write_s, 112);
AT(penstock_stats, sync_s, 120);

_Static_assert(PENSTOCK_CREATE == 1 && PENSTOCK_EXCLUSIVE == 2 && PENSTOCK_TRUNCATE == 4, "flags");
_Static_assert(PENSTOCK_OK == 0 && PENSTOCK_EARGUMENT == -1 && PENSTOCK_EUNSUPPORTED == -2 &&
                   PENSTOCK_ENOFILE == -3 && PENSTOCK_EACCESS == -4 && PENSTOCK_EREADONLY == -5 &&
                   PENSTOCK_ENOSPACE == -6 && PENSTOCK_EQUOTA == -7 && PENSTOCK_ETOOLARGE == -8 &&
                   PENSTOCK_EIO == -9 && PENSTOCK_ENOMEMORY == -10 &&
                   PENSTOCK_ECOMMUNICATION == -11 && PENSTOCK_EINTERNAL == -12 &&
                   PENSTOCK_EEXISTS == -13,
               "codes");
