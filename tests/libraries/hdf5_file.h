/* Parallel HDF5: a file, its datasets, and calls on them. */
#ifndef PENSTOCK_TESTS_LIBRARIES_HDF5_FILE_H
#define PENSTOCK_TESTS_LIBRARIES_HDF5_FILE_H

#include <hdf5.h>

#include "cases.h"

enum { UNTOUCHED = -7 }; /* an element that nobody wrote */

static inline hid_t access_list(void) {
  hid_t list = H5Pcreate(H5P_FILE_ACCESS);
  CHECK(H5Pset_fapl_mpio(list, MPI_COMM_WORLD, MPI_INFO_NULL) >= 0);
  return list;
}

static inline hid_t create_file(const char* path) {
  hid_t list = access_list();
  hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, list);
  CHECK(file >= 0);
  H5Pclose(list);
  return file;
}

static inline hid_t open_file(const char* path, unsigned flags) {
  hid_t list = access_list();
  hid_t file = H5Fopen(path, flags, list);
  CHECK(file >= 0);
  H5Pclose(list);
  return file;
}

static inline void close_file(hid_t file) { CHECK(H5Fclose(file) >= 0); }

static inline hid_t transfer(H5FD_mpio_xfer_t mode) {
  hid_t list = H5Pcreate(H5P_DATASET_XFER);
  CHECK(H5Pset_dxpl_mpio(list, mode) >= 0);
  return list;
}

/* Without times, so that two runs make the same file. */
static inline hid_t creation_list(int dimensions, const hsize_t* chunk) {
  hid_t list = H5Pcreate(H5P_DATASET_CREATE);
  const int fill = UNTOUCHED;
  CHECK(H5Pset_obj_track_times(list, 0) >= 0);
  CHECK(H5Pset_fill_value(list, H5T_NATIVE_INT, &fill) >= 0);
  if (chunk != NULL) CHECK(H5Pset_chunk(list, dimensions, chunk) >= 0);
  return list;
}

static inline hid_t create_dataset(hid_t file, const char* name, int dimensions,
                                   const hsize_t* sizes, const hsize_t* chunk) {
  hid_t list = creation_list(dimensions, chunk);
  hid_t space = H5Screate_simple(dimensions, sizes, NULL);
  hid_t dataset = H5Dcreate2(file, name, H5T_NATIVE_INT, space, H5P_DEFAULT, list, H5P_DEFAULT);
  CHECK(dataset >= 0);
  H5Sclose(space);
  H5Pclose(list);
  return dataset;
}

/* The whole dataset on every rank, read collectively. */
static inline int* read_whole(hid_t file, const char* name, hsize_t count) {
  int* all = allocate(count * sizeof *all);
  hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT);
  hid_t list = transfer(H5FD_MPIO_COLLECTIVE);
  CHECK(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, list, all) >= 0);
  H5Pclose(list);
  H5Dclose(dataset);
  return all;
}

/* Every element of the one dataset "data" is as value_at says. */
static inline void check_whole(const char* path, hsize_t count) {
  hid_t file = open_file(path, H5F_ACC_RDONLY);
  int* all = read_whole(file, "data", count);
  for (hsize_t i = 0; i < count; ++i) CHECK(all[i] == value_at(0, (long)i));
  free(all);
  close_file(file);
}

/* What is selected in memory, to where it is selected in the dataset; both selections are given up.
 */
static inline void write_selected(hid_t dataset, hid_t type, hid_t memory, hid_t space,
                                  H5FD_mpio_xfer_t mode, const void* data) {
  hid_t list = transfer(mode);
  CHECK(H5Dwrite(dataset, type, memory, space, list, data) >= 0);
  H5Pclose(list);
  H5Sclose(memory);
  H5Sclose(space);
}

#endif
