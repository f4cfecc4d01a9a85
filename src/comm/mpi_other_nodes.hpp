// Whether a job has nodes that the ranks of a file are not on. Those may write the file by handles
// of their own, and no rank of this one hears of it.
#pragma once

#include "comm/comm.hpp"

namespace penstock::pmpi {

// Local: by what the launcher told this process, and by the files that all ranks have opened. True
// where neither tells.
bool may_have_other_nodes(const comm::Comm& ranks);

}  // namespace penstock::pmpi
