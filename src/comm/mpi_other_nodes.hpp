// Whether a job has nodes that the ranks of a file are not on. Those may write the file by handles
// of their own, and no rank of this one hears of it.
#pragma once

namespace penstock::comm {

// Of the environment; nullptr: not set.
using Variable = const char* (*)(const char* name);

// Of a communicator of so many processes, on so many nodes. Local: by what the launcher told this
// process, and by the communicators of the whole world that were asked about before. True where
// neither tells.
bool may_have_other_nodes(int processes, int nodes, Variable variable);

}  // namespace penstock::comm
