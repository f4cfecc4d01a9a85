#include "engine/expected_syncs.hpp"

#include <gtest/gtest.h>

namespace penstock::engine::expected_syncs_test {
namespace {

TEST(ExpectedSyncs, KnowsTheSpellingsOfCAndFortran) {
  for (const char* name :
       {"MPI_File_sync", "PMPI_File_sync", "mpi_file_sync_", "mpi_file_sync_f08_", "H5Fflush",
        "__h5f_MOD_h5fflush_f", "nc_sync", "__netcdf_MOD_nf90_sync", "ncmpi_sync", "penstock_sync"})
    EXPECT_TRUE(is_sync_function(name)) << name;
}

TEST(ExpectedSyncs, LeavesOthersAlone) {
  for (const char* name : {"MPI_File_write_at_all", "fsync", "sync", "H5Fclose", ""})
    EXPECT_FALSE(is_sync_function(name)) << name;
}

}  // namespace
}  // namespace penstock::engine::expected_syncs_test
