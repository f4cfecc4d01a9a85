/* Reads the needed libraries of an ELF file (DT_NEEDED), and of those libraries, one level down:
 * a Fortran or a library-based program may name MPI only there. */
#include "exec_elf.h"

#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
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

static int begins(const char* name, const char* with) {
  return strncmp(name, with, strlen(with)) == 0;
}

/* Cray's MPICH has a library for each compiler: libmpi_gnu_91.so.12, libmpifort_cray.so.12. */
static int is_of_one_compiler(const char* name) {
  const char* end = strstr(name, ".so");
  return (begins(name, "libmpi_") || begins(name, "libmpifort_")) && end != NULL &&
         strcmp(end, ".so.12") == 0;
}

/* Open MPI's C library has the name of its own version; MPICH's is libmpich.so.12, and libmpi.so.12
 * where it is built for its ABI initiative, as Intel's is; libmpi_abi is the standard's. */
static enum mpi_flavour flavour_of_name(const char* name) {
  if (begins(name, "libmpi_abi.so") || begins(name, "libmpifort_abi")) return FLAVOUR_ABI;
  if (strcmp(name, "libmpi.so.40") == 0 || begins(name, "libmpi_mpifh") ||
      begins(name, "libmpi_usempi") || begins(name, "libopen-rte")) {
    return FLAVOUR_OPENMPI;
  }
  if (begins(name, "libmpi_ilp64.so")) return FLAVOUR_OTHER;
  if (begins(name, "libmpich") || strcmp(name, "libmpi.so.12") == 0 ||
      strcmp(name, "libmpifort.so.12") == 0 || is_of_one_compiler(name)) {
    return FLAVOUR_MPICH;
  }
  return begins(name, "libmpi.so") ? FLAVOUR_OTHER : FLAVOUR_UNKNOWN;
}

static int look_at_name(const char* name, void* context) {
  struct program_file* file = context;
  file->flavour = flavour_of_name(name);
  if (file->flavour != FLAVOUR_UNKNOWN) snprintf(file->library, sizeof file->library, "%s", name);
  return file->flavour == FLAVOUR_UNKNOWN;
}

static int look_for_asan(const char* name, void* context) {
  struct program_file* file = context;
  file->has_asan = begins(name, "libasan.so") || begins(name, "libclang_rt.asan");
  return !file->has_asan;
}

/* 0 when the directory does not have the library. */
static int look_in(const char* directory, int length, const char* name, struct program_file* file) {
  char path[4096];
  snprintf(path, sizeof path, "%.*s/%s", length, directory, name);
  struct image image = map_file(path);
  if (image.bytes == NULL) return 0;
  for_each_needed(&image, &look_at_name, file);
  munmap((void*)image.bytes, image.size);
  return 1;
}

static int look_in_search_path(const char* name, struct program_file* file) {
  const char* rest = getenv("LD_LIBRARY_PATH");
  while (rest != NULL && *rest != '\0') {
    const size_t n = strcspn(rest, ":");
    if (n > 0 && look_in(rest, (int)n, name, file)) return 1;
    rest += n + (rest[n] == ':');
  }
  return 0;
}

/* One level down, where the loader mostly finds libraries: an answer here is a convenience, since
 * the launcher's variables are asked next. */
static int look_inside(const char* name, void* context) {
  static const char* const directories[] = {"/usr/lib/x86_64-linux-gnu",
                                            "/usr/lib/aarch64-linux-gnu", "/usr/lib64",
                                            "/usr/local/lib", "/usr/lib"};
  struct program_file* file = context;
  int found = look_in_search_path(name, file);
  for (size_t i = 0; i < sizeof directories / sizeof *directories && !found; ++i) {
    found = look_in(directories[i], (int)strlen(directories[i]), name, file);
  }
  return file->flavour == FLAVOUR_UNKNOWN;
}

static int defines(const struct image* image, const Elf64_Shdr* symbols, const char* wanted) {
  const Elf64_Ehdr* h = header(image);
  const Elf64_Shdr* strings =
      at(image, h->e_shoff + (uint64_t)symbols->sh_link * sizeof *strings, sizeof *strings);
  const size_t n = symbols->sh_size / sizeof(Elf64_Sym);
  const Elf64_Sym* table = at(image, symbols->sh_offset, n * sizeof *table);
  for (size_t i = 0; strings != NULL && table != NULL && i < n; ++i) {
    if (table[i].st_shndx == SHN_UNDEF) continue;
    const char* name = string_at(image, strings->sh_offset + table[i].st_name);
    if (name != NULL && strcmp(name, wanted) == 0) return 1;
  }
  return 0;
}

/* Of a stripped program nothing is known. */
static int has_own_mpi(const struct image* image, const Elf64_Ehdr* h) {
  for (unsigned i = 0; i < h->e_shnum; ++i) {
    const Elf64_Shdr* section = at(image, h->e_shoff + i * sizeof *section, sizeof *section);
    if (section == NULL) return 0;
    const int is_table = section->sh_type == SHT_SYMTAB || section->sh_type == SHT_DYNSYM;
    if (is_table && defines(image, section, "PMPI_File_open")) return 1;
  }
  return 0;
}

/* Class, byte order and machine lie alike in headers of 32 and 64 bits. */
static int is_of_another_machine(const struct image* image, const struct image* ours) {
  const Elf64_Ehdr *its = at(image, 0, sizeof *its), *own = at(ours, 0, sizeof *own);
  if (its == NULL || own == NULL || memcmp(its->e_ident, ELFMAG, SELFMAG) != 0) return 0;
  return its->e_ident[EI_CLASS] != own->e_ident[EI_CLASS] ||
         its->e_ident[EI_DATA] != own->e_ident[EI_DATA] || its->e_machine != own->e_machine;
}

/* musl takes a library of glibc's for its own, and ends the program where it lacks a function. */
static int has_another_c_library(const struct image* image) {
  const Elf64_Ehdr* h = header(image);
  const Elf64_Phdr* loader = h != NULL ? segment(image, h, PT_INTERP) : NULL;
  const char* path = loader != NULL ? string_at(image, loader->p_offset) : NULL;
  return path != NULL && strstr(path, "/ld-musl") != NULL;
}

static int is_foreign(const struct image* image) {
  struct image ours = map_file("/proc/self/exe");
  if (ours.bytes == NULL) return 0;
  const int foreign = is_of_another_machine(image, &ours) || has_another_c_library(image);
  munmap((void*)ours.bytes, ours.size);
  return foreign;
}

struct program_file inspect_program(const char* path) {
  struct program_file file = {0};
  struct image image = map_file(path);
  const Elf64_Ehdr* h = image.bytes != NULL ? header(&image) : NULL;
  file.is_foreign = image.bytes != NULL && is_foreign(&image);
  if (h != NULL) {
    file.is_elf = 1;
    file.is_static = segment(&image, h, PT_INTERP) == NULL;
    file.has_own_mpi = has_own_mpi(&image, h);
    for_each_needed(&image, &look_for_asan, &file);
    for_each_needed(&image, &look_at_name, &file);
    if (file.flavour == FLAVOUR_UNKNOWN) for_each_needed(&image, &look_inside, &file);
  }
  if (image.bytes != NULL) munmap((void*)image.bytes, image.size);
  return file;
}
