#include "amount.hpp"

#include "base/units.hpp"

namespace penstock::measure {
namespace {

int64_t share_of(int64_t total_bytes, int workers, int64_t chunk_bytes) {
  const int64_t share = total_bytes / workers;
  const int64_t whole = align_down(share, chunk_bytes);
  return share * workers == total_bytes || whole == 0 ? share : whole;
}

bool must_be_packed(const Parameters& p, const Part& part) {
  const bool by_datatype = p.dedicated && p.method.pack == exec::Pack::datatype;
  return by_datatype && !p.memory.contiguous() &&
         part.bytes_per_iteration % p.memory.len_bytes != 0;
}

}  // namespace

Amount amount_of(const Parameters& p, int workers) {
  const int computing = workers - (p.dedicated ? 1 : 0);
  const int64_t share = share_of(p.bufsize_bytes * workers, computing, p.memory.chunk_bytes());
  return {computing, share, p.iterations, p.seed};
}

std::vector<std::string> notes_of(const Parameters& p, int workers, const Amount& amount,
                                  const Part& part) {
  std::vector<std::string> notes;
  const int64_t asked = p.bufsize_bytes * workers, given = amount.bufsize_bytes * amount.workers;
  const std::string bytes = std::to_string(part.bytes_per_iteration) + " bytes ";
  if (given != asked)
    notes.push_back(p.strategy + ": the workers that compute write " + std::to_string(given) +
                    " bytes per iteration together, not " + std::to_string(asked));
  if (part.bytes_per_iteration != amount.bufsize_bytes)
    notes.push_back("bufsize " + std::to_string(amount.bufsize_bytes) + ": the pattern gives " +
                    bytes + "per iteration to a file's worker 0");
  if (must_be_packed(p, part))
    notes.push_back("pack=datatype: " + bytes + "are no whole chunks of " +
                    std::to_string(p.memory.len_bytes) + ", so they are packed");
  return notes;
}

}  // namespace penstock::measure
