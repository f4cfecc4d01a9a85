/* Reads the needed libraries of an ELF file (DT_NEEDED), and of those libraries, one level down:
 * a Fortran or a library-based program may name MPI only there. */
#include "exec_elf.h"

#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct image {
  const unsigned char* bytes;
  size_t size;
};

static const void* at(const struct image* image, uint64_t offset, uint64_t n) {
  if (offset > image->size || n > image->size - offset) return NULL;
  return image->bytes + offset;
}

static struct image map_file(const char* path) {
  struct image image = {NULL, 0};
  struct stat st;
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return image;
  if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size >= (off_t)sizeof(Elf64_Ehdr)) {
    void* bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes != MAP_FAILED) image = (struct image){bytes, (size_t)st.st_size};
  }
  close(fd);
  return image;
}

static const Elf64_Ehdr* header(const struct image* image) {
  const Elf64_Ehdr* h = at(image, 0, sizeof *h);
  if (h == NULL || memcmp(h->e_ident, ELFMAG, SELFMAG) != 0) return NULL;
  return h->e_ident[EI_CLASS] == ELFCLASS64 && h->e_phentsize == sizeof(Elf64_Phdr) ? h : NULL;
}

static const Elf64_Phdr* segment(const struct image* image, const Elf64_Ehdr* h, unsigned type) {
  for (unsigned i = 0; i < h->e_phnum; ++i) {
    const Elf64_Phdr* p = at(image, h->e_phoff + i * sizeof *p, sizeof *p);
    if (p != NULL && p->p_type == type) return p;
  }
  return NULL;
}

/* The file offset of a virtual address; UINT64_MAX when no segment holds it. */
static uint64_t offset_of(const struct image* image, const Elf64_Ehdr* h, uint64_t address) {
  for (unsigned i = 0; i < h->e_phnum; ++i) {
    const Elf64_Phdr* p = at(image, h->e_phoff + i * sizeof *p, sizeof *p);
    if (p != NULL && p->p_type == PT_LOAD && address >= p->p_vaddr &&
        address - p->p_vaddr < p->p_filesz) {
      return address - p->p_vaddr + p->p_offset;
    }
  }
  return UINT64_MAX;
}

/* The string at `offset`, when it ends inside the file. */
static const char* string_at(const struct image* image, uint64_t offset) {
  const char* s = at(image, offset, 1);
  return s != NULL && memchr(s, '\0', image->size - offset) != NULL ? s : NULL;
}

typedef int (*visit)(const char* name, void* context); /* 0: stop */

static void for_each_needed(const struct image* image, visit f, void* context) {
  const Elf64_Ehdr* h = header(image);
  const Elf64_Phdr* dynamic = h != NULL ? segment(image, h, PT_DYNAMIC) : NULL;
  if (dynamic == NULL) return;
  const size_t n = dynamic->p_filesz / sizeof(Elf64_Dyn);
  const Elf64_Dyn* entries = at(image, dynamic->p_offset, n * sizeof *entries);
  uint64_t strings = UINT64_MAX;
  for (size_t i = 0; entries != NULL && i < n; ++i) {
    if (entries[i].d_tag == DT_STRTAB) strings = offset_of(image, h, entries[i].d_un.d_ptr);
  }
  for (size_t i = 0; entries != NULL && strings != UINT64_MAX && i < n; ++i) {
    if (entries[i].d_tag != DT_NEEDED) continue;
    const char* name = string_at(image, strings + entries[i].d_un.d_val);
    if (name != NULL && !f(name, context)) return;
  }
}

/* Open MPI's C library has the name of its own version; MPICH's is libmpich.so.12, and libmpi.so.12
 * where it is built for its ABI initiative. */
static enum mpi_flavour flavour_of_name(const char* name) {
  if (strncmp(name, "libmpich", 8) == 0 || strcmp(name, "libmpi.so.12") == 0 ||
      strcmp(name, "libmpifort.so.12") == 0) {
    return FLAVOUR_MPICH;
  }
  if (strcmp(name, "libmpi.so.40") == 0 || strncmp(name, "libmpi_mpifh", 12) == 0 ||
      strncmp(name, "libmpi_usempi", 13) == 0 || strncmp(name, "libopen-rte", 11) == 0) {
    return FLAVOUR_OPENMPI;
  }
  return FLAVOUR_UNKNOWN;
}

static int look_at_name(const char* name, void* context) {
  enum mpi_flavour* flavour = context;
  *flavour = flavour_of_name(name);
  return *flavour == FLAVOUR_UNKNOWN;
}

/* One level down, in the directories where libraries mostly are: an answer here is a convenience,
 * since the launcher's variables are asked next. */
static int look_inside(const char* name, void* context) {
  static const char* const directories[] = {"/usr/lib/x86_64-linux-gnu",
                                            "/usr/lib/aarch64-linux-gnu", "/usr/lib64",
                                            "/usr/local/lib", "/usr/lib"};
  enum mpi_flavour* flavour = context;
  for (size_t i = 0; i < sizeof directories / sizeof *directories; ++i) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", directories[i], name);
    struct image image = map_file(path);
    if (image.bytes == NULL) continue;
    for_each_needed(&image, &look_at_name, flavour);
    munmap((void*)image.bytes, image.size);
    break;
  }
  return *flavour == FLAVOUR_UNKNOWN;
}

struct program_file inspect_program(const char* path) {
  struct program_file file = {0, 0, FLAVOUR_UNKNOWN};
  struct image image = map_file(path);
  const Elf64_Ehdr* h = image.bytes != NULL ? header(&image) : NULL;
  if (h != NULL) {
    file.is_elf = 1;
    file.is_static = segment(&image, h, PT_INTERP) == NULL;
    for_each_needed(&image, &look_at_name, &file.flavour);
    if (file.flavour == FLAVOUR_UNKNOWN) for_each_needed(&image, &look_inside, &file.flavour);
  }
  if (image.bytes != NULL) munmap((void*)image.bytes, image.size);
  return file;
}
