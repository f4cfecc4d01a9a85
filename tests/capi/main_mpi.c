/* The C API on MPI ranks, or threads of MPI ranks: every case on one team.
 *
 *   mpiexec -n RANKS ./capi_mpi.LIBRARY THREADS DIRECTORY */
#include <penstock/penstock_mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

static void wrong_teams(void) {
  penstock_team* team = (penstock_team*)1;
  CODE(PENSTOCK_EARGUMENT, penstock_team_mpi(MPI_COMM_NULL, 1, &team));
  CHECK(team == NULL);
  SAYS("MPI_COMM_NULL");
  CODE(PENSTOCK_EARGUMENT, penstock_team_mpi(MPI_COMM_WORLD, 1, NULL));
  CODE(PENSTOCK_EARGUMENT, penstock_team_mpi(MPI_COMM_WORLD, 0, &team));
  SAYS("threads must be at least 1");
}

/* The program may do to its communicator what it likes, once the team is made. */
static penstock_team* team_of(int threads, int level) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  penstock_team* team = NULL;
  if (threads > 1 && level < MPI_THREAD_MULTIPLE) {
    CODE(PENSTOCK_EUNSUPPORTED, penstock_team_mpi(comm, threads, &team));
    SAYS("MPI_THREAD_MULTIPLE");
  } else {
    OK(penstock_team_mpi(comm, threads, &team));
  }
  MPI_Comm_free(&comm);
  return team;
}

static void places(const struct place* p) {
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  CHECK(p->ranks % ranks == 0);
  CHECK(p->number == rank * (p->ranks / ranks) + p->index);
}

static void run_cases(penstock_team* team, int threads, const char* directory, int rank) {
  run_on_team(team, threads, directory, places);
  for (const struct test_case* c = cases; c->name != NULL; ++c) {
    const int before = g_failures;
    run_on_team(team, threads, directory, c->body);
    if (g_failures != before) fprintf(stderr, "in %s on rank %d\n", c->name, rank);
  }
}

static void write_as(const struct place* p, penstock_file* file, int value) {
  unsigned char data[1000];
  memset(data, value, sizeof data);
  OK(penstock_write_at_all(file, (int64_t)p->number * 1000, data, sizeof data, NULL));
  OK(penstock_sync(file));
}

/* What another part of the job writes later is no damage. */
static void halves(const char* directory) {
  int rank, ranks, half;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  half = rank % 2;
  if (ranks < 4 || ranks % 2 != 0) return;
  MPI_Comm comm;
  MPI_Comm_split(MPI_COMM_WORLD, half, rank, &comm);
  penstock_team* team = NULL;
  struct place p = {NULL, rank / 2, ranks / 2, 0, directory};
  char path[4096];
  OK(penstock_team_mpi(comm, 1, &team));
  OK(penstock_team_rank(team, 0, &p.rank));
  name_in(&p, "halves", path);
  penstock_file* file = opened(&p, path, NULL, "verify = true\n");
  MPI_Barrier(MPI_COMM_WORLD);
  if (half == 0) write_as(&p, file, 'a');
  MPI_Barrier(MPI_COMM_WORLD);
  if (half == 1) write_as(&p, file, 'b');
  MPI_Barrier(MPI_COMM_WORLD);
  OK(penstock_close(file));
  OK(penstock_team_free(team));
  MPI_Comm_free(&comm);
}

int main(int argc, char** argv) {
  int level, rank;
  signal(SIGXFSZ, SIG_IGN);
  CODE(PENSTOCK_EARGUMENT, penstock_team_mpi(MPI_COMM_WORLD, 1, &(penstock_team*){NULL}));
  SAYS("MPI_Init");
  const int threads = argc > 1 ? atoi(argv[1]) : 0;
  MPI_Init_thread(&argc, &argv, threads > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc != 3 || threads < 1) MPI_Abort(MPI_COMM_WORLD, 2);
  wrong_teams();
  penstock_team* team = team_of(threads, level);
  if (team != NULL) run_cases(team, threads, argv[2], rank);
  OK(penstock_team_free(team));
  halves(argv[2]);
  int mine[2] = {g_checks, g_failures}, all[2] = {0, 0};
  MPI_Reduce(mine, all, 2, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("result {\"checks\": %d, \"failed\": %d}\n", all[0], all[1]);
  MPI_Finalize();
  return rank == 0 && all[1] != 0;
}
