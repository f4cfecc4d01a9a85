#include "base/program_imports.hpp"

#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstdint>

namespace penstock {
namespace {

// The dynamic section's entries that say where the symbols are, in memory.
struct Symbols {
  const ElfW(Sym) * table = nullptr;
  const char* names = nullptr;
  uint32_t count = 0;
};

// The C library has relocated some addresses already, others are relative to where the program is.
template <class T>
const T* at(const dl_phdr_info& program, ElfW(Addr) address) {
  if (address < program.dlpi_addr) address += program.dlpi_addr;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): ELF says addresses as numbers
  return reinterpret_cast<const T*>(address);
}

const ElfW(Dyn) * dynamic_section(const dl_phdr_info& program) {
  for (int i = 0; i < program.dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = program.dlpi_phdr[i];
    if (header.p_type == PT_DYNAMIC)
      // NOLINTNEXTLINE(performance-no-int-to-ptr): likewise
      return reinterpret_cast<const ElfW(Dyn)*>(program.dlpi_addr + header.p_vaddr);
  }
  return nullptr;
}

// How many the hash table {buckets, first hashed symbol, words of a filter, ..} knows, which the
// filter, the buckets, and a word for each hashed symbol follow; its lowest bit ends a bucket. What
// is not defined here may be hashed, too: a function whose address a program takes that is not
// position-independent. Where nothing is hashed it may say that nothing else is there either.
uint32_t symbols_in(const uint32_t* table) {
  const uint32_t buckets = table[0], first = table[1], filter = table[2];
  const auto* bucket =
      reinterpret_cast<const uint32_t*>(reinterpret_cast<const ElfW(Addr)*>(table + 4) + filter);
  const uint32_t* ends = bucket + buckets;
  uint32_t last = 0;
  for (uint32_t i = 0; i < buckets; ++i) last = std::max(last, bucket[i]);
  if (last < first) return first;
  while ((ends[last - first] & 1) == 0) ++last;
  return last + 1;
}

// Relocations, each of a symbol.
struct Relocations {
  const ElfW(Rela) * first = nullptr;
  size_t bytes = 0;

  uint32_t last_symbol() const {
    uint32_t last = 0;
    for (size_t i = 0; first != nullptr && i < bytes / sizeof *first; ++i)
      last = std::max(last, uint32_t(ELF64_R_SYM(first[i].r_info)));
    return last;
  }
};

Symbols symbols_of(const dl_phdr_info& program) {
  Symbols s;
  Relocations calls, others;
  const ElfW(Dyn)* entry = dynamic_section(program);
  if (entry == nullptr) return s;
  for (; entry->d_tag != DT_NULL; ++entry) {
    const ElfW(Addr) where = entry->d_un.d_ptr;
    if (entry->d_tag == DT_SYMTAB) s.table = at<ElfW(Sym)>(program, where);
    if (entry->d_tag == DT_STRTAB) s.names = at<char>(program, where);
    if (entry->d_tag == DT_GNU_HASH) s.count = symbols_in(at<uint32_t>(program, where));
    if (entry->d_tag == DT_HASH) s.count = at<uint32_t>(program, where)[1];  // {buckets, symbols}
    if (entry->d_tag == DT_JMPREL) calls.first = at<ElfW(Rela)>(program, where);
    if (entry->d_tag == DT_PLTRELSZ) calls.bytes = entry->d_un.d_val;
    if (entry->d_tag == DT_RELA) others.first = at<ElfW(Rela)>(program, where);
    if (entry->d_tag == DT_RELASZ) others.bytes = entry->d_un.d_val;
  }
  if (s.count <= 1) s.count = 1 + std::max(calls.last_symbol(), others.last_symbol());
  return s;
}

struct Question {
  const std::function<bool(std::string_view)>* skipped = nullptr;  // nullptr: only the program
  const std::function<bool(std::string_view)>* wanted = nullptr;
  bool found = false;
};

bool imports(const dl_phdr_info& program, const std::function<bool(std::string_view)>& wanted) {
  const Symbols s = symbols_of(program);
  if (s.table == nullptr || s.names == nullptr) return false;
  for (uint32_t i = 1; i < s.count; ++i)
    if (s.table[i].st_shndx == SHN_UNDEF && wanted(s.names + s.table[i].st_name)) return true;
  return false;
}

// Without its folder; of the program itself, nothing.
std::string_view file_name(const dl_phdr_info& program) {
  const std::string_view path = program.dlpi_name != nullptr ? program.dlpi_name : "";
  return path.substr(path.rfind('/') + 1);
}

// Called for the program first; 1 ends the walk there.
int ask(dl_phdr_info* program, size_t, void* data) {
  auto& question = *static_cast<Question*>(data);
  const bool skip = question.skipped != nullptr && (*question.skipped)(file_name(*program));
  question.found = !skip && imports(*program, *question.wanted);
  return question.found || question.skipped == nullptr ? 1 : 0;
}

int count_loaded(dl_phdr_info* program, size_t, void* data) {
  *static_cast<uint64_t*>(data) = program->dlpi_adds;
  return 1;
}

}  // namespace

bool program_imports(const std::function<bool(std::string_view)>& wanted) {
  Question question{nullptr, &wanted};
  ::dl_iterate_phdr(&ask, &question);
  return question.found;
}

bool anything_imports(const std::function<bool(std::string_view)>& skipped,
                      const std::function<bool(std::string_view)>& wanted) {
  Question question{&skipped, &wanted};
  ::dl_iterate_phdr(&ask, &question);
  return question.found;
}

uint64_t libraries_loaded() {
  uint64_t loaded = 0;
  ::dl_iterate_phdr(&count_loaded, &loaded);
  return loaded;
}

}  // namespace penstock
