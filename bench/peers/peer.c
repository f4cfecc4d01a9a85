/* Errors that all ranks agree on, and the line of JSON of the peers' programs. */
#include "peer.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "peer_internal.h"

/* ---- stdout belongs to the line of JSON: what libraries say there goes to stderr ---- */

static int real_stdout = -1;

void peer_divert_stdout(void) {
  fflush(stdout);
  real_stdout = dup(STDOUT_FILENO);
  dup2(STDERR_FILENO, STDOUT_FILENO);
}

static void restore_stdout(void) {
  fflush(stdout);
  dup2(real_stdout, STDOUT_FILENO);
  close(real_stdout);
}

/* ---- errors ---- */

void peer_fail(struct Peer* peer, const char* where, const char* error_class, const char* format,
               ...) {
  if (peer->error.failed) return;
  va_list list;
  va_start(list, format);
  peer->error.failed = true;
  snprintf(peer->error.where, sizeof peer->error.where, "%s", where);
  snprintf(peer->error.error_class, sizeof peer->error.error_class, "%s", error_class);
  vsnprintf(peer->error.text, sizeof peer->error.text, format, list);
  va_end(list);
}

static const char* class_name(int error_class) {
  switch (error_class) {
    case MPI_ERR_NO_SPACE:
      return "MPI_ERR_NO_SPACE";
    case MPI_ERR_QUOTA:
      return "MPI_ERR_QUOTA";
    case MPI_ERR_IO:
      return "MPI_ERR_IO";
    case MPI_ERR_ACCESS:
      return "MPI_ERR_ACCESS";
    case MPI_ERR_NO_SUCH_FILE:
      return "MPI_ERR_NO_SUCH_FILE";
    case MPI_ERR_READ_ONLY:
      return "MPI_ERR_READ_ONLY";
    case MPI_ERR_ARG:
      return "MPI_ERR_ARG";
    default:
      return "MPI_ERR_OTHER";
  }
}

bool peer_ok_mpi(struct Peer* peer, const char* where, int code) {
  if (code == MPI_SUCCESS) return true;
  char text[MPI_MAX_ERROR_STRING];
  int length, error_class;
  MPI_Error_string(code, text, &length);
  MPI_Error_class(code, &error_class);
  peer_fail(peer, where, class_name(error_class), "%s", text);
  return false;
}

/* Whoever failed cannot know whether the others are waiting for it inside a library that it has
 * left. It gives them some seconds; then it says alone what it knows, and ends the job. The wait
 * grows with the rank, so that one of several speaks. */
static void wait_or_give_up(struct Peer* peer, MPI_Request* request) {
  const struct timespec pause = {.tv_nsec = 1000000};
  const double patience_s = 3 + peer->rank;
  int done = 0;
  for (double begin_s = MPI_Wtime(); !done && MPI_Wtime() - begin_s < patience_s;) {
    MPI_Test(request, &done, MPI_STATUS_IGNORE);
    if (!done) nanosleep(&pause, NULL);
  }
  if (!done) peer_give_up(peer);
}

bool peer_any_failed(struct Peer* peer) {
  int mine = peer->error.failed, any;
  MPI_Request request;
  MPI_Iallreduce(&mine, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &request);
  if (mine)
    wait_or_give_up(peer, &request);
  else
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  return any != 0;
}

void peer_verified(struct Peer* peer, int64_t bytes, int64_t wrong, const char* first) {
  if (wrong > 0 && peer->wrong_bytes == 0 && first)
    snprintf(peer->first_wrong, sizeof peer->first_wrong, "%s", first);
  peer->checked_bytes += bytes;
  peer->wrong_bytes += wrong;
}

/* ---- the line ---- */

void peer_print_text(const char* text) {
  putchar('"');
  for (const unsigned char* p = (const unsigned char*)text; *p; ++p) {
    if (*p == '"' || *p == '\\')
      printf("\\%c", *p);
    else if (*p < 0x20)
      printf("\\u%04x", *p);
    else
      putchar(*p);
  }
  putchar('"');
}

static void print_mpi(void) {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length;
  MPI_Get_library_version(text, &length);
  text[strcspn(text, "\n,")] = '\0';
  char* words = strstr(text, "Version:"); /* "MPICH Version:<tab>4.0.2" */
  const char* number = words ? words + strlen("Version:") : "";
  if (words) *words = '\0';
  printf("\"mpi\": ");
  number += strspn(number, " \t");
  char full[MPI_MAX_LIBRARY_VERSION_STRING + 1];
  snprintf(full, sizeof full, "%s%s", text, number);
  peer_print_text(full);
  printf(", \"mpi_flavour\": \"" PENSTOCK_FLAVOUR "\", ");
}

/* The slowest rank's times, the sums of bytes, and the worst error, on rank 0. */
struct Totals {
  double application_s, first_s, actual_s, phase_s[PEER_PHASES];
  int64_t bytes, checked_bytes, wrong_bytes;
};

static struct Totals collect(const struct Peer* peer) {
  struct Totals t = {0};
  double slowest[2 + PEER_PHASES] = {peer->ended_s - peer->begun_s,
                                     peer->drained_s - peer->begun_s};
  memcpy(slowest + 2, peer->phase_s, sizeof peer->phase_s);
  double all[2 + PEER_PHASES], mine = slowest[0];
  int64_t sums[3] = {peer->bytes, peer->checked_bytes, peer->wrong_bytes}, summed[3];
  MPI_Allreduce(slowest, all, 2 + PEER_PHASES, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  MPI_Allreduce(&mine, &t.first_s, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
  MPI_Allreduce(sums, summed, 3, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  t.application_s = all[0];
  t.actual_s = all[1];
  memcpy(t.phase_s, all + 2, sizeof t.phase_s);
  t.bytes = summed[0];
  t.checked_bytes = summed[1];
  t.wrong_bytes = summed[2];
  return t;
}

/* The first failed rank's text on every rank; its rank, or -1. */
static int share_first(int failed, char* text, int size) {
  int mine = failed ? 1 : 0, rank, first;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int candidate = mine ? rank : INT32_MAX;
  MPI_Allreduce(&candidate, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (first == INT32_MAX) return -1;
  MPI_Bcast(text, size, MPI_CHAR, first, MPI_COMM_WORLD);
  return first;
}

static double rate(int64_t bytes, double seconds) {
  return seconds > 0 ? (double)bytes / seconds : 0;
}

static void print_times(const struct Totals* t) {
  printf("\"application\": {\"seconds\": %.9f, \"bytes_per_s\": %.1f}, ", t->application_s,
         rate(t->bytes, t->application_s));
  printf(
      "\"actual\": {\"seconds\": %.9f, \"bytes_per_s\": %.1f, \"source\": \"fsync\", \"why\": "
      "\"the first rank of each node calls fsync after the clock\"}, ",
      t->actual_s, rate(t->bytes, t->actual_s));
  printf(
      "\"phases\": {\"open_s\": %.9f, \"compute_s\": 0, \"write_s\": %.9f, \"sync_s\": %.9f, "
      "\"close_s\": %.9f, \"drain_s\": %.9f}, ",
      t->phase_s[PEER_OPEN], t->phase_s[PEER_WRITE], t->phase_s[PEER_SYNC], t->phase_s[PEER_CLOSE],
      t->actual_s - t->application_s);
  printf("\"workers_done\": {\"first_s\": %.9f, \"last_s\": %.9f}, ", t->first_s, t->application_s);
}

static void print_verified(struct Peer* peer, const struct Totals* t) {
  if (strcmp(peer->verify, "none") == 0) {
    printf("\"verified\": null, \"error\": ");
    return;
  }
  printf("\"verified\": {\"bytes\": %" PRId64 ", \"wrong_bytes\": %" PRId64 ", \"first_wrong\": ",
         t->checked_bytes, t->wrong_bytes);
  if (t->wrong_bytes > 0)
    peer_print_text(peer->first_wrong);
  else
    printf("null");
  printf("}, \"error\": ");
}

static void print_error(const struct PeerError* error, int worker) {
  if (worker < 0) {
    printf("null}\n");
    return;
  }
  printf("{\"worker\": %d, \"where\": ", worker);
  peer_print_text(error->where);
  printf(", \"class\": ");
  peer_print_text(error->error_class);
  printf(", \"text\": ");
  peer_print_text(error->text);
  printf("}}\n");
}

static void print_line(struct Peer* peer, const struct Totals* t, int failed_worker) {
  restore_stdout();
  printf("{\"schema\": \"penstock.measure/1\", \"program\": ");
  peer_print_text(peer->program);
  printf(", \"version\": ");
  peer_print_text(peer->version);
  printf(", ");
  print_mpi();
  peer_print_parameters(peer);
  printf("\"workers\": %d, \"ranks\": %d, \"threads\": 1, \"nodes\": %d, \"bytes\": %" PRId64 ", ",
         peer->ranks, peer->ranks, peer->nodes, t->bytes);
  print_times(t);
  if (peer->calls > 0) printf("\"calls\": %" PRId64 ", ", peer->calls);
  printf("\"engine\": null, \"notes\": [");
  if (peer->note[0] != '\0') peer_print_text(peer->note);
  printf("], ");
  print_verified(peer, t);
  print_error(&peer->error, failed_worker);
  fflush(stdout);
}

/* Not collective: what this rank knows, as the job's line. */
void peer_give_up(struct Peer* peer) {
  const struct timespec until_forwarded = {.tv_nsec = 300000000};
  const struct Totals t = {.bytes = peer->bytes};
  print_line(peer, &t, peer->rank);
  nanosleep(&until_forwarded, NULL);
  MPI_Abort(MPI_COMM_WORLD, PEER_FAILED);
}

/* Wrong bytes are an error like any other, unless a call has said why. */
static void add_wrong_bytes(struct Peer* peer, const struct Totals* t, int wrong_worker) {
  if (peer->rank != wrong_worker) return;
  peer_fail(peer, "verify", "wrong_bytes", "%" PRId64 " wrong bytes, the first: %s", t->wrong_bytes,
            peer->first_wrong);
}

/* Nothing may be read back without being counted: a verification that saw less than was written is
 * no verification. */
static void add_unverified(struct Peer* peer, const struct Totals* t, bool failed) {
  if (failed || strcmp(peer->verify, "none") == 0 || t->checked_bytes == t->bytes) return;
  if (peer->rank == 0)
    peer_fail(peer, "verify", "wrong_bytes", "%" PRId64 " bytes written, %" PRId64 " read back",
              t->bytes, t->checked_bytes);
}

int peer_finish(struct Peer* peer) {
  const struct Totals t = collect(peer);
  const bool failed = peer_any_failed(peer);
  const int wrong =
      share_first(peer->wrong_bytes > 0, peer->first_wrong, (int)sizeof peer->first_wrong);
  if (wrong >= 0) add_wrong_bytes(peer, &t, wrong);
  add_unverified(peer, &t, failed || wrong >= 0);
  const int worker = share_first(peer->error.failed, (char*)&peer->error, (int)sizeof peer->error);
  if (peer->rank == 0) print_line(peer, &t, worker);
  MPI_Comm_free(&peer->node);
  MPI_Finalize();
  return worker < 0 ? PEER_MEASURED : PEER_FAILED;
}
