#include "base/program_imports.hpp"

#include <elf.h>
#include <link.h>

#include <cstdint>

namespace penstock {
namespace {

// The dynamic section's entries that say where the symbols are, in memory.
struct Symbols {
  const ElfW(Sym) * table = nullptr;
  const char* names = nullptr;
  uint32_t count = 0;  // from the beginning of the table: all that are not defined here
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

Symbols symbols_of(const dl_phdr_info& program) {
  Symbols s;
  const ElfW(Dyn)* entry = dynamic_section(program);
  if (entry == nullptr) return s;
  for (; entry->d_tag != DT_NULL; ++entry) {
    const ElfW(Addr) where = entry->d_un.d_ptr;
    if (entry->d_tag == DT_SYMTAB) s.table = at<ElfW(Sym)>(program, where);
    if (entry->d_tag == DT_STRTAB) s.names = at<char>(program, where);
    // Both kinds of hash table: {buckets, first hashed symbol, ..} and {buckets, symbols, ..}.
    if (entry->d_tag == DT_GNU_HASH || entry->d_tag == DT_HASH)
      s.count = at<uint32_t>(program, where)[1];
  }
  return s;
}

struct Question {
  const std::function<bool(std::string_view)>& wanted;
  bool found = false;
};

// Called for the program first; 1 ends the walk there.
int ask_program(dl_phdr_info* program, size_t, void* data) {
  auto& question = *static_cast<Question*>(data);
  const Symbols s = symbols_of(*program);
  if (s.table == nullptr || s.names == nullptr) return 1;
  for (uint32_t i = 1; i < s.count && !question.found; ++i)
    if (s.table[i].st_shndx == SHN_UNDEF)
      question.found = question.wanted(s.names + s.table[i].st_name);
  return 1;
}

}  // namespace

bool program_imports(const std::function<bool(std::string_view)>& wanted) {
  Question question{wanted};
  ::dl_iterate_phdr(&ask_program, &question);
  return question.found;
}

}  // namespace penstock
