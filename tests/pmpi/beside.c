/* What the library writes together for some ranks, in atomic mode and through a view that Penstock
 * does not serve, must not undo what Penstock writes for others at the same time, who have the file
 * open through another communicator; nor must its preallocate. `beside FILE`, 4 ranks: the first
 * half is one group. */
#include "pieces.h"

static MPI_Comm group; /* of the first half, and of the second */
static MPI_File fh;    /* the group's */
static int first_half, one_node;
static long long written, passed;
static char bytes[turn_bytes];

typedef void (*Write)(int turn);

static MPI_Offset at(int turn) { return (MPI_Offset)turn * turn_bytes; }

static void alone(int turn) {
  CHECK(MPI_File_write_at(fh, at(turn), bytes, turn_bytes, MPI_BYTE, MPI_STATUS_IGNORE) ==
        MPI_SUCCESS);
}

static void together(int turn) {
  MPI_Status status;
  CHECK(MPI_File_write_at_all(fh, at(turn), bytes, turn_bytes, MPI_BYTE, &status) == MPI_SUCCESS);
  CHECK(bytes_of(&status) == turn_bytes);
}

static void at_pointer(int turn) {
  MPI_Offset position = -1;
  if (turn == 0) CHECK(MPI_File_seek(fh, 0, MPI_SEEK_SET) == MPI_SUCCESS);
  CHECK(MPI_File_write_all(fh, bytes, turn_bytes, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  CHECK(MPI_File_get_position(fh, &position) == MPI_SUCCESS && position == at(turn + 1));
}

static void split(int turn) {
  MPI_Status status;
  CHECK(MPI_File_write_at_all_begin(fh, at(turn), bytes, turn_bytes, MPI_BYTE) == MPI_SUCCESS);
  CHECK(MPI_File_write_at_all_end(fh, bytes, &status) == MPI_SUCCESS);
  CHECK(bytes_of(&status) == turn_bytes);
}

static void split_at_pointer(int turn) {
  MPI_Status status;
  MPI_Offset position = -1;
  if (turn == 0) CHECK(MPI_File_seek(fh, 0, MPI_SEEK_SET) == MPI_SUCCESS);
  CHECK(MPI_File_write_all_begin(fh, bytes, turn_bytes, MPI_BYTE) == MPI_SUCCESS);
  CHECK(MPI_File_write_all_end(fh, bytes, &status) == MPI_SUCCESS);
  CHECK(bytes_of(&status) == turn_bytes);
  CHECK(MPI_File_get_position(fh, &position) == MPI_SUCCESS && position == at(turn + 1));
}

static void nonblocking(int turn) {
  MPI_Request request;
  MPI_Status status;
  CHECK(MPI_File_iwrite_at_all(fh, at(turn), bytes, turn_bytes, MPI_BYTE, &request) == MPI_SUCCESS);
  CHECK(MPI_Wait(&request, &status) == MPI_SUCCESS);
  CHECK(bytes_of(&status) == turn_bytes);
}

/* Of a size that is there: no byte changes, whoever writes. */
static void preallocated(int turn) {
  CHECK(MPI_File_preallocate(fh, (MPI_Offset)pieces * ranks * piece_bytes) == MPI_SUCCESS);
  alone(turn);
}

/* Penstock's are what the second half writes, and of the first what `passes` does not say. */
static void rounds(const char* what, Write write, int passes) {
  for (int round = 0; round < 5; ++round) {
    memset(bytes, 10 * round + rank + 1, turn_bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int turn = 0; turn < turns; ++turn) (first_half ? write : alone)(turn);
    written += turns * turn_bytes;
    if (first_half && passes) passed += turns * turn_bytes;
    CHECK(MPI_File_sync(fh) == MPI_SUCCESS);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0 && !are_pieces(10 * round + 1)) {
      printf("%s: undone\n", what);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
  }
}

static void in_atomic_mode(void) {
  if (first_half) CHECK(MPI_File_set_atomicity(fh, 1) == MPI_SUCCESS);
  rounds("atomic write_at_all", together, !one_node);
  rounds("atomic write_all", at_pointer, !one_node);
  rounds("atomic split", split, !one_node);
  rounds("atomic split write_all", split_at_pointer, !one_node);
  if (first_half) CHECK(MPI_File_set_atomicity(fh, 0) == MPI_SUCCESS);
}

/* Where the library has no other representation, the view is the native one still. */
static void through_an_unserved_view(void) {
  const int passes = first_half && see_own_pieces(fh, "external32");
  rounds("unserved write_at_all", together, passes);
  rounds("unserved write_all", at_pointer, passes);
  rounds("unserved split", split, passes);
  rounds("unserved split write_all", split_at_pointer, passes);
  rounds("unserved iwrite_at_all", nonblocking, passes);
  if (first_half) CHECK(see_own_pieces(fh, "native"));
}

int main(int argc, char** argv) {
  start_job(argc, argv);
  MPI_Comm node;
  int node_ranks = 0;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  MPI_Comm_size(node, &node_ranks);
  MPI_Comm_free(&node);
  one_node = node_ranks == ranks;
  first_half = rank < ranks / 2;
  MPI_Comm_split(MPI_COMM_WORLD, !first_half, rank, &group);
  CHECK(MPI_File_open(group, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &fh) ==
        MPI_SUCCESS);
  CHECK(see_own_pieces(fh, "native"));
  rounds("beside", alone, 0);
  rounds("preallocate", preallocated, 0);
  in_atomic_mode();
  through_an_unserved_view();
  CHECK(MPI_File_close(&fh) == MPI_SUCCESS);
  MPI_Comm_free(&group);
  return end_job(written, passed);
}
