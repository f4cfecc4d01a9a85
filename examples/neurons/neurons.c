/* A network of Hodgkin-Huxley neurons whose membrane voltages go to one shared file.
 *
 * Each rank owns a contiguous share of the neurons. Spikes take 1 ms to arrive, so ranks exchange
 * them once per millisecond. Every few steps all ranks append one record, the voltages of all
 * neurons in order, with MPI_File_write_all. The file is the same for any number of ranks.
 *
 *   mpiexec -n 4 ./neurons --neurons 100000 --steps 400 --every 4 --output voltages.dat --check
 *
 * The file: a header of 64 bytes (struct header), then records of 8 * neurons bytes.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"
#include "options.h"

struct header {
  char magic[8];
  int64_t neurons, records, every, delay_steps;
  double step_ms, reserved[2];
};
_Static_assert(sizeof(struct header) == 64, "the views below begin behind 64 bytes");

struct share { /* of the neurons: [begin, begin + count) */
  int64_t begin;
  int count;
};

struct spike {
  int64_t neuron;
  int64_t step;
};

struct network {
  struct options options;
  struct share mine;
  int rank, ranks;
  struct neuron* cells;
  struct synapses* inputs;
  double* voltages;      /* a contiguous copy, unless --strided */
  int64_t* edge_begin;   /* per source neuron: its edges, into `edge_target` */
  int32_t* edge_target;  /* local index of the neuron it excites or inhibits */
  uint16_t* arriving[2]; /* [excite, inhibit][slot * count + neuron]: spikes due at a step */
  struct spike* fired;   /* since the last exchange */
  int fired_count, fired_room;
  int64_t spikes;
  uint64_t digest; /* of all that this rank wrote */
  double compute_s, exchange_s, write_s;
};

static void check(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  fprintf(stderr, "neurons: %s: %s\n", what, text);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void* allocate(size_t count, size_t size) {
  void* memory = calloc(count ? count : 1, size);
  if (memory == NULL) {
    fprintf(stderr, "neurons: no memory for %zu x %zu bytes; use fewer --neurons\n", count, size);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return memory;
}

static struct share share_of(int rank, int ranks, int64_t neurons) {
  const int64_t begin = neurons * rank / ranks, end = neurons * (rank + 1) / ranks;
  return (struct share){begin, (int)(end - begin)};
}

/* Sums over a set of (position, value) pairs, so the order in which they are met does not matter.
 */
static uint64_t digest(const double* values, size_t stride, int count, int64_t position) {
  uint64_t sum = 0;
  for (int i = 0; i < count; ++i) {
    uint64_t bits;
    memcpy(&bits, values + (size_t)i * stride, sizeof bits);
    bits ^= (uint64_t)(position + i) * 0x9e3779b97f4a7c15u;
    bits *= 0xff51afd7ed558ccdu;
    sum += bits ^ (bits >> 32);
  }
  return sum;
}

/* ---- the network ---- */

static void wire(struct network* net) {
  const int64_t neurons = net->options.neurons;
  net->edge_begin = allocate((size_t)neurons + 2, sizeof *net->edge_begin);
  net->edge_target = allocate((size_t)net->mine.count * kFanIn, sizeof *net->edge_target);
  int64_t* next = net->edge_begin + 1; /* counting sort by source */
  for (int i = 0; i < net->mine.count; ++i)
    for (int k = 0; k < kFanIn; ++k) ++next[model_source(net->mine.begin + i, k, neurons) + 1];
  for (int64_t n = 1; n <= neurons; ++n) next[n] += next[n - 1];
  for (int i = 0; i < net->mine.count; ++i)
    for (int k = 0; k < kFanIn; ++k)
      net->edge_target[next[model_source(net->mine.begin + i, k, neurons)]++] = i;
}

static void network_create(struct network* net) {
  const size_t count = (size_t)net->mine.count;
  net->cells = allocate(count, sizeof *net->cells);
  net->inputs = allocate(count, sizeof *net->inputs);
  net->voltages = allocate(count, sizeof *net->voltages);
  for (int i = 0; i < 2; ++i)
    net->arriving[i] = allocate(count * kDelaySteps, sizeof *net->arriving[i]);
  for (int i = 0; i < net->mine.count; ++i)
    model_init(net->mine.begin + i, &net->cells[i], &net->inputs[i]);
  wire(net);
}

static void network_free(struct network* net) {
  free(net->cells);
  free(net->inputs);
  free(net->voltages);
  free(net->edge_begin);
  free(net->edge_target);
  free(net->arriving[0]);
  free(net->arriving[1]);
  free(net->fired);
}

static void remember_spike(struct network* net, int64_t neuron, int64_t step) {
  if (net->fired_count == net->fired_room) {
    net->fired_room = net->fired_room ? 2 * net->fired_room : 1024;
    net->fired = realloc(net->fired, (size_t)net->fired_room * sizeof *net->fired);
    if (net->fired == NULL) check(MPI_ERR_NO_MEM, "spikes");
  }
  net->fired[net->fired_count++] = (struct spike){neuron, step};
}

static void advance(struct network* net, int64_t step) {
  const double start = MPI_Wtime();
  const size_t slot = (size_t)(step % kDelaySteps) * (size_t)net->mine.count;
  uint16_t *excited = net->arriving[0] + slot, *inhibited = net->arriving[1] + slot;
  for (int i = 0; i < net->mine.count; ++i) {
    if (model_step(&net->cells[i], &net->inputs[i], excited[i], inhibited[i]))
      remember_spike(net, net->mine.begin + i, step);
  }
  memset(excited, 0, (size_t)net->mine.count * sizeof *excited);
  memset(inhibited, 0, (size_t)net->mine.count * sizeof *inhibited);
  net->compute_s += MPI_Wtime() - start;
}

/* A spike of step s is due at step s + kDelaySteps, whose slot is that of s again. Counts are
 * integers, so the order in which spikes arrive changes nothing. */
static void deliver(struct network* net, struct spike spike) {
  uint16_t* due = net->arriving[model_is_inhibitory(spike.neuron)] +
                  (size_t)(spike.step % kDelaySteps) * (size_t)net->mine.count;
  for (int64_t e = net->edge_begin[spike.neuron]; e < net->edge_begin[spike.neuron + 1]; ++e)
    ++due[net->edge_target[e]];
}

static void exchange_spikes(struct network* net) {
  const double start = MPI_Wtime();
  int *counts = allocate(2 * (size_t)net->ranks, sizeof *counts), *starts = counts + net->ranks;
  const int mine = net->fired_count * (int)sizeof(struct spike);
  check(MPI_Allgather(&mine, 1, MPI_INT, counts, 1, MPI_INT, MPI_COMM_WORLD), "exchange");
  int total = 0;
  for (int r = 0; r < net->ranks; total += counts[r++]) starts[r] = total;
  struct spike* all = allocate((size_t)total, 1);
  check(MPI_Allgatherv(net->fired, mine, MPI_BYTE, all, counts, starts, MPI_BYTE, MPI_COMM_WORLD),
        "exchange");
  for (size_t i = 0; i < (size_t)total / sizeof *all; ++i) deliver(net, all[i]);
  net->spikes += net->fired_count;
  net->fired_count = 0;
  free(all);
  free(counts);
  net->exchange_s += MPI_Wtime() - start;
}

/* ---- the file ---- */

static void write_header(const struct network* net, MPI_File file) {
  if (net->rank != 0) return;
  struct header header = {"NEURONS",
                          net->options.neurons,
                          net->options.steps / net->options.every,
                          net->options.every,
                          kDelaySteps,
                          kStepMs,
                          {0, 0}};
  check(MPI_File_write_at(file, 0, &header, (int)sizeof header, MPI_BYTE, MPI_STATUS_IGNORE),
        "write header");
}

/* Every record begins where the last one ended; each rank sees its own part of all of them. */
static void set_record_view(const struct network* net, MPI_File file, struct share share) {
  MPI_Datatype part, record;
  MPI_Type_contiguous(share.count, MPI_DOUBLE, &part);
  MPI_Type_create_resized(part, 0, net->options.neurons * (MPI_Aint)sizeof(double), &record);
  MPI_Type_commit(&record);
  const MPI_Offset begin =
      (MPI_Offset)sizeof(struct header) + share.begin * (MPI_Offset)sizeof(double);
  check(MPI_File_set_view(file, begin, MPI_DOUBLE, record, "native", MPI_INFO_NULL), "set_view");
  MPI_Type_free(&record);
  MPI_Type_free(&part);
}

static MPI_File open_file(const struct network* net) {
  if (net->rank == 0) MPI_File_delete(net->options.output, MPI_INFO_NULL); /* it may not exist */
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File file;
  check(MPI_File_open(MPI_COMM_WORLD, net->options.output, MPI_MODE_CREATE | MPI_MODE_RDWR,
                      MPI_INFO_NULL, &file),
        net->options.output);
  return file;
}

static MPI_Datatype memory_type(const struct network* net) {
  MPI_Datatype type;
  const MPI_Aint stride =
      net->options.strided ? (MPI_Aint)sizeof(struct neuron) : (MPI_Aint)sizeof(double);
  MPI_Type_create_resized(MPI_DOUBLE, 0, stride, &type);
  MPI_Type_commit(&type);
  return type;
}

static void write_record(struct network* net, MPI_File file, MPI_Datatype type, int64_t record) {
  const double start = MPI_Wtime();
  const double* memory = net->options.strided ? &net->cells[0].voltage : net->voltages;
  if (!net->options.strided)
    for (int i = 0; i < net->mine.count; ++i) net->voltages[i] = net->cells[i].voltage;
  MPI_Status status;
  int written = 0;
  check(MPI_File_write_all(file, memory, net->mine.count, type, &status), "write record");
  MPI_Get_count(&status, type, &written);
  if (written != net->mine.count) check(MPI_ERR_IO, "write record: fewer values than asked for");
  net->write_s += MPI_Wtime() - start;
  if (net->options.check)
    net->digest += digest(&net->cells[0].voltage, sizeof(struct neuron) / sizeof(double),
                          net->mine.count, record * net->options.neurons + net->mine.begin);
}

/* Reads the file back, each rank the share of its neighbour, and compares digests and the header.
 */
static int check_file(struct network* net) {
  const struct share share =
      share_of((net->rank + 1) % net->ranks, net->ranks, net->options.neurons);
  const int64_t records = net->options.steps / net->options.every;
  MPI_File file;
  check(MPI_File_open(MPI_COMM_WORLD, net->options.output, MPI_MODE_RDONLY, MPI_INFO_NULL, &file),
        "open to check");
  struct header header;
  check(MPI_File_read_at_all(file, 0, &header, (int)sizeof header, MPI_BYTE, MPI_STATUS_IGNORE),
        "read header");
  set_record_view(net, file, share);
  double* values = allocate((size_t)share.count, sizeof *values);
  uint64_t sums[2] = {net->digest, 0}, all[2];
  for (int64_t r = 0; r < records; ++r) {
    check(MPI_File_read_all(file, values, share.count, MPI_DOUBLE, MPI_STATUS_IGNORE), "read");
    sums[1] += digest(values, 1, share.count, r * net->options.neurons + share.begin);
  }
  free(values);
  check(MPI_File_close(&file), "close");
  MPI_Allreduce(sums, all, 2, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  return all[0] == all[1] && memcmp(header.magic, "NEURONS", 8) == 0 && header.records == records;
}

/* ---- the run ---- */

static void simulate(struct network* net, MPI_File file) {
  MPI_Datatype type = memory_type(net);
  for (int64_t step = 0; step < net->options.steps; ++step) {
    advance(net, step);
    if ((step + 1) % kDelaySteps == 0) exchange_spikes(net);
    if ((step + 1) % net->options.every == 0)
      write_record(net, file, type, (step + 1) / net->options.every - 1);
  }
  exchange_spikes(net); /* the last, incomplete millisecond still counts */
  MPI_Type_free(&type);
}

static void report(struct network* net, double total_s) {
  int64_t spikes = 0;
  double times[4] = {net->compute_s, net->exchange_s, net->write_s, total_s}, slowest[4];
  MPI_Reduce(&net->spikes, &spikes, 1, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
  MPI_Reduce(times, slowest, 4, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (net->rank != 0) return;
  const double simulated_s = (double)net->options.steps * kStepMs * 1e-3;
  const int64_t records = net->options.steps / net->options.every;
  printf("neurons: %lld neurons, %lld steps, %lld records, %d ranks\n",
         (long long)net->options.neurons, (long long)net->options.steps, (long long)records,
         net->ranks);
  printf("spikes %lld, mean rate %.4f Hz\n", (long long)spikes,
         (double)spikes / ((double)net->options.neurons * simulated_s));
  printf("compute_s %.6f exchange_s %.6f write_s %.6f total_s %.6f bytes %lld\n", slowest[0],
         slowest[1], slowest[2], slowest[3], (long long)(64 + records * net->options.neurons * 8));
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  struct network net = {0};
  MPI_Comm_rank(MPI_COMM_WORLD, &net.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &net.ranks);
  const int stop = parse_options(argc, argv, net.rank == 0, &net.options);
  if (stop >= 0) {
    MPI_Finalize();
    return stop;
  }
  net.mine = share_of(net.rank, net.ranks, net.options.neurons);
  network_create(&net);

  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  MPI_File file = open_file(&net);
  write_header(&net, file);
  set_record_view(&net, file, net.mine);
  simulate(&net, file);
  const double close_start = MPI_Wtime();
  check(MPI_File_close(&file), "close");
  net.write_s += MPI_Wtime() - close_start;
  report(&net, MPI_Wtime() - start);

  int good = 1;
  if (net.options.check) {
    good = check_file(&net);
    if (net.rank == 0)
      printf("check %s\n", good ? "passed: the file holds what was computed" : "FAILED");
  }
  network_free(&net);
  MPI_Finalize();
  return good ? 0 : 1;
}
