/* The command line of the peers' programs: what every one has, and what each adds. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peer.h"
#include "peer_internal.h"

static const char* const kHint = "hint";

static struct PeerOption* common_options(struct Peer* peer, int* count) {
  static struct PeerOption options[16];
  const struct PeerOption all[] = {
      {"iters", PEER_COUNT, &peer->iters, NULL, "iterations: how often everybody writes"},
      {"bufsize", PEER_BYTES, &peer->bufsize, NULL, "bytes per worker and iteration"},
      {"file", PEER_TEXT, &peer->file, NULL, "the file to write; an old one is removed"},
      {"end", PEER_CHOICE, &peer->end, "sync|close",
       "the clock stops after sync and close, or close"},
      {"regime", PEER_CHOICE, &peer->regime, "warm|cold|asis", "the memory before the clock"},
      {"warm-memory", PEER_BYTES, &peer->warm_memory, NULL,
       "regime warm: memory of a node that is touched before the clock; cold: by runs before"},
      {"page-reports", PEER_CHOICE, &peer->page_reports, "asis|wait",
       "begin whenever, or right after this machine has told its host of free memory"},
      {"warm-disk", PEER_BYTES, &peer->warm_disk, NULL, "scratch bytes written before the clock"},
      {"verify", PEER_CHOICE, &peer->verify, "all|none", "read back and compare, after the clock"},
      {"seed", PEER_COUNT, &peer->seed, NULL, "of the contents and of random patterns"},
      {"spoil", PEER_BYTES, &peer->spoil, NULL,
       "worker 0 writes this byte of its buffer wrong, to test the verification; -1: none"},
  };
  *count = (int)(sizeof all / sizeof *all);
  memcpy(options, all, sizeof all);
  const int left_out = peer->own_amount ? 2 : 0; /* the first two */
  *count -= left_out;
  return options + left_out;
}

static void set_defaults(struct Peer* peer) {
  peer->iters = 4;
  peer->bufsize = INT64_C(4) << 20;
  peer->end = "sync";
  peer->regime = "warm";
  peer->page_reports = "asis";
  peer->verify = "all";
  peer->seed = 1;
  peer->warm_memory = INT64_C(3) << 30;
  peer->warm_disk = INT64_C(1) << 20;
  peer->spoil = -1;
}

/* "4MiB" is 2^22 and "4MB" 4 * 10^6; a bare number is bytes. */
static bool parse_number(const char* text, enum PeerKind kind, int64_t* out) {
  static const struct {
    const char* name;
    int64_t factor;
  } units[] = {{"", 1},
               {"B", 1},
               {"KiB", INT64_C(1) << 10},
               {"MiB", INT64_C(1) << 20},
               {"GiB", INT64_C(1) << 30},
               {"kB", 1000},
               {"KB", 1000},
               {"MB", 1000000},
               {"GB", 1000000000}};
  char* rest;
  errno = 0;
  const long long value = strtoll(text, &rest, 10);
  if (rest == text || errno != 0 || value < -1) return false;
  if (kind == PEER_COUNT) return *out = value, *rest == '\0';
  for (size_t i = 0; i < sizeof units / sizeof *units; ++i) {
    if (strcmp(rest, units[i].name) == 0)
      return !__builtin_mul_overflow((int64_t)value, units[i].factor, out);
  }
  return false;
}

static bool among(const char* choices, const char* value) {
  const size_t length = strlen(value);
  for (const char* p = choices; p != NULL; p = strchr(p, '|') ? strchr(p, '|') + 1 : NULL) {
    if (strncmp(p, value, length) == 0 && (p[length] == '|' || p[length] == '\0'))
      return length > 0 && strchr(value, '|') == NULL;
  }
  return false;
}

static const char* set_option(const struct PeerOption* option, const char* value) {
  static char problem[256];
  problem[0] = '\0';
  if (option->kind == PEER_TEXT) {
    *(const char**)option->to = value;
  } else if (option->kind == PEER_CHOICE) {
    *(const char**)option->to = value;
    if (!among(option->choices, value))
      snprintf(problem, sizeof problem, "--%s must be one of %s, got %s", option->name,
               option->choices, value);
  } else if (!parse_number(value, option->kind, option->to)) {
    snprintf(problem, sizeof problem, "--%s must be a %s, got %s", option->name,
             option->kind == PEER_BYTES ? "number of bytes such as 4MiB" : "whole number", value);
  }
  return problem[0] ? problem : NULL;
}

static const struct PeerOption* find_option(const struct PeerOption* options, int count,
                                            const char* name, size_t length) {
  for (int i = 0; i < count; ++i) {
    if (strlen(options[i].name) == length && memcmp(options[i].name, name, length) == 0)
      return &options[i];
  }
  return NULL;
}

static const char* add_hint(struct Peer* peer, const char* pair) {
  const char* equals = strchr(pair, '=');
  if (equals == NULL || equals == pair) return "--hint must be KEY=VALUE";
  if (peer->hints == PEER_MAX_HINTS) return "--hint may be given 32 times";
  peer->hint_keys[peer->hints] = strndup(pair, (size_t)(equals - pair));
  peer->hint_values[peer->hints++] = equals + 1;
  return NULL;
}

enum Wish { MEASURE, HELP, VERSION };

/* What is wrong with the command line, or NULL; *wish is what it asks for. */
static const char* parse(struct Peer* peer, int argc, char** argv, enum Wish* wish) {
  static char problem[256];
  int count;
  const struct PeerOption* common = common_options(peer, &count);
  for (int i = 1; i < argc; ++i) {
    const char* word = argv[i];
    if (!strcmp(word, "--help")) return *wish = HELP, NULL;
    if (!strcmp(word, "--version")) return *wish = VERSION, NULL;
    const bool dashes = strncmp(word, "--", 2) == 0;
    const char* name = dashes ? word + 2 : "";
    const size_t length = strcspn(name, "=");
    const bool hint = length == strlen(kHint) && memcmp(name, kHint, length) == 0;
    const struct PeerOption* option = find_option(common, count, name, length);
    if (!option) option = find_option(peer->own, peer->own_count, name, length);
    if (!hint && !option) {
      snprintf(problem, sizeof problem, "%s is no option; --help lists them", word);
      return problem;
    }
    const char* value = name[length] == '=' ? name + length + 1 : i + 1 < argc ? argv[++i] : NULL;
    if (value == NULL) {
      snprintf(problem, sizeof problem, "%s needs a value", word);
      return problem;
    }
    const char* wrong = hint ? add_hint(peer, value) : set_option(option, value);
    if (wrong) return wrong;
  }
  if (peer->file == NULL) return "--file PATH is needed: the file to write";
  if (peer->iters < 1) return "--iters must be at least 1";
  if (peer->bufsize < 8) return "--bufsize must be at least 8 bytes";
  return NULL;
}

static void print_option(const struct PeerOption* option) {
  char value[64] = "";
  if (option->kind == PEER_TEXT || option->kind == PEER_CHOICE) {
    const char* text = *(const char**)option->to;
    snprintf(value, sizeof value, "%s", text ? text : "");
  } else {
    snprintf(value, sizeof value, "%" PRId64, *(int64_t*)option->to);
  }
  printf("  --%-12s %s%s%s%s%s%s\n", option->name, option->help, option->choices ? ": " : "",
         option->choices ? option->choices : "", value[0] ? " [" : "", value, value[0] ? "]" : "");
}

static void print_help(struct Peer* peer) {
  int count;
  const struct PeerOption* common = common_options(peer, &count);
  printf("%s: %s\n\nOptions [default]:\n", peer->program, peer->summary);
  for (int i = 0; i < count; ++i) print_option(&common[i]);
  for (int i = 0; i < peer->own_count; ++i) print_option(&peer->own[i]);
  printf("  --%-12s KEY=VALUE, repeatable: a setting of the library\n", kHint);
  printf("  --%-12s of what is measured\n", "version");
  printf(
      "\nOne line of JSON on stdout (schema penstock.measure/1). Exit code 0: measured; 1: an I/O\n"
      "call failed or bytes are wrong; 2: wrong usage.\n");
}

static void find_ranks(struct Peer* peer) {
  MPI_Comm_rank(MPI_COMM_WORLD, &peer->rank);
  MPI_Comm_size(MPI_COMM_WORLD, &peer->ranks);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &peer->node);
  MPI_Comm_rank(peer->node, &peer->node_rank);
  MPI_Comm_size(peer->node, &peer->node_ranks);
  int leader = peer->node_rank == 0;
  MPI_Allreduce(&leader, &peer->nodes, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

int peer_start(struct Peer* peer, int argc, char** argv, const struct PeerOption* own, int count) {
  MPI_Init(&argc, &argv);
  find_ranks(peer);
  set_defaults(peer);
  peer->own = own;
  peer->own_count = count;
  enum Wish wish = MEASURE;
  const char* problem = parse(peer, argc, argv, &wish);
  if (problem) return peer_usage(peer, "%s", problem);
  if (wish == MEASURE) {
    peer_divert_stdout();
    return -1;
  }
  set_defaults(peer);
  if (peer->rank == 0 && wish == HELP) print_help(peer);
  if (peer->rank == 0 && wish == VERSION) printf("%s: %s\n", peer->program, peer->version);
  MPI_Comm_free(&peer->node);
  MPI_Finalize();
  return 0;
}

int peer_usage(struct Peer* peer, const char* format, ...) {
  if (peer->rank == 0) {
    va_list list;
    va_start(list, format);
    fprintf(stderr, "%s: ", peer->program);
    vfprintf(stderr, format, list);
    fprintf(stderr, "\n");
    va_end(list);
  }
  MPI_Comm_free(&peer->node);
  MPI_Finalize();
  return PEER_USAGE;
}

MPI_Info peer_info(const struct Peer* peer) {
  MPI_Info info = MPI_INFO_NULL;
  if (peer->hints > 0) MPI_Info_create(&info);
  for (int i = 0; i < peer->hints; ++i)
    MPI_Info_set(info, peer->hint_keys[i], peer->hint_values[i]);
  return info;
}

/* ---- for the line ---- */

static void print_name(const char* name) {
  putchar('"');
  for (; *name; ++name) putchar(*name == '-' ? '_' : *name);
  printf("\": ");
}

static void print_parameters(const struct PeerOption* options, int count) {
  for (int i = 0; i < count; ++i) {
    print_name(options[i].name);
    if (options[i].kind == PEER_TEXT || options[i].kind == PEER_CHOICE)
      peer_print_text(*(const char**)options[i].to);
    else
      printf("%" PRId64, *(int64_t*)options[i].to);
    printf(", ");
  }
}

void peer_print_parameters(struct Peer* peer) {
  int count;
  const struct PeerOption* common = common_options(peer, &count);
  printf("\"parameters\": {");
  print_parameters(common, count);
  print_parameters(peer->own, peer->own_count);
  printf("\"hint\": [");
  for (int i = 0; i < peer->hints; ++i) {
    char pair[512];
    snprintf(pair, sizeof pair, "%s=%s", peer->hint_keys[i], peer->hint_values[i]);
    if (i > 0) printf(", ");
    peer_print_text(pair);
  }
  printf("]}, ");
}
