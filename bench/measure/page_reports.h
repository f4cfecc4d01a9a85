/* When a virtual machine gives free memory back to its host: not while something is measured. */
#ifndef PENSTOCK_BENCH_PAGE_REPORTS_H
#define PENSTOCK_BENCH_PAGE_REPORTS_H

#ifdef __cplusplus
extern "C" {
#endif

/* What this kernel has told its host of so far, in KiB. Not every kernel has it. */
#define PENSTOCK_REPORTED "/sys/module/page_reporting/parameters/reported_kib"

/* The kernel tells the host of a part of its free blocks every two seconds, as long as there are
 * any. That takes a quarter of a second, in which whoever touches a page for the first time waits
 * (docs/decisions/0076). Comes back when it has told of some, so that what begins now has until the
 * next time; after 2.2 s where it tells of nothing, and at once where there is no file `reported`.
 * Gives whether it has told of some. Memory that is freed only afterwards stays warm until then. */
int wait_for_page_reports(const char* reported);

#ifdef __cplusplus
}
#endif

#endif
