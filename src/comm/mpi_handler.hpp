// MPI's own error handlers, and those that are to be given back.
#pragma once

#include <mpi.h>

namespace penstock::comm {

inline bool never_comes_back(MPI_Errhandler handler) {
#ifdef MPI_ERRORS_ABORT
  if (handler == MPI_ERRORS_ABORT) return true;
#endif
  return handler == MPI_ERRORS_ARE_FATAL;
}

inline bool is_built_in(MPI_Errhandler handler) {
#ifdef MPIR_ERRORS_THROW_EXCEPTIONS
  if (handler == MPIR_ERRORS_THROW_EXCEPTIONS) return true;
#endif
  return handler == MPI_ERRORS_RETURN || never_comes_back(handler);
}

// What a get_errhandler gave. Those that MPI has itself are not given back.
inline void give_back(MPI_Errhandler handler) {
  if (!is_built_in(handler)) PMPI_Errhandler_free(&handler);
}

// The program's handler is for what the program does: by default it ends the job.
class CommHandlerAside {
 public:
  explicit CommHandlerAside(MPI_Comm comm) : comm_(comm) {
    int level = MPI_THREAD_MULTIPLE;  // other threads may need it, or set another
    if (PMPI_Query_thread(&level) != MPI_SUCCESS || level == MPI_THREAD_MULTIPLE) return;
    if (PMPI_Comm_get_errhandler(comm, &given_) != MPI_SUCCESS) return;
    PMPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    set_ = true;
  }
  ~CommHandlerAside() {
    if (!set_) return;
    PMPI_Comm_set_errhandler(comm_, given_);
    give_back(given_);
  }
  CommHandlerAside(const CommHandlerAside&) = delete;

 private:
  const MPI_Comm comm_;
  MPI_Errhandler given_ = MPI_ERRORS_RETURN;
  bool set_ = false;
};

}  // namespace penstock::comm
