! A Fortran program that knows nothing of Penstock. Compiled three times: with mpif.h (USE_MPIF),
! `use mpi` (USE_MPI) and `use mpi_f08`; each reaches the library by names of its own.
program fortran
#if defined(USE_MPI)
  use mpi
#elif !defined(USE_MPIF)
  use mpi_f08
#endif
  implicit none
#if defined(USE_MPIF)
  include 'mpif.h'
#endif
#if defined(USE_MPI) || defined(USE_MPIF)
#define HANDLE(kind) integer
  integer :: status(MPI_STATUS_SIZE)
#else
#define HANDLE(kind) type(kind)
  type(MPI_Status) :: status
#endif
  integer, parameter :: n = 40
  HANDLE(MPI_File) :: fh
  HANDLE(MPI_Datatype) :: tile
  integer :: rank, ranks, error, count, i, j, unit
  integer(kind=MPI_OFFSET_KIND) :: zero = 0, position
  double precision :: field(n, n), got
  character(len=4096) :: path
  ! In capital letters it is the same to the libraries.
#if defined(USE_MPIF)
  character(len=*), parameter :: datarep = 'NATIVE'
#else
  character(len=*), parameter :: datarep = 'native'
#endif

  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  call get_command_argument(1, path)
  do j = 1, n
    do i = 1, n
      field(i, j) = rank*10000 + j*100 + i
    end do
  end do

  ! The ranks' columns side by side in one (n*ranks) x n array: each column is cut by rows.
  call MPI_Type_create_subarray(2, [n*ranks, n], [n, n], [n*rank, 0], MPI_ORDER_FORTRAN, &
                                MPI_DOUBLE_PRECISION, tile, error)
  call MPI_Type_commit(tile, error)
  call MPI_File_open(MPI_COMM_WORLD, trim(path), ior(MPI_MODE_CREATE, MPI_MODE_RDWR), &
                     MPI_INFO_NULL, fh, error)
  call check(error == MPI_SUCCESS, 'open')
  call MPI_File_set_view(fh, zero, MPI_DOUBLE_PRECISION, tile, datarep, MPI_INFO_NULL, error)
  call check(error == MPI_SUCCESS, 'set_view')
  call MPI_File_write_all(fh, field, n*n, MPI_DOUBLE_PRECISION, status, error)
  call check(error == MPI_SUCCESS, 'write_all')
  call MPI_Get_count(status, MPI_DOUBLE_PRECISION, count, error)
  call check(count == n*n, 'count of write_all')
  call MPI_File_get_position(fh, position, error)
  call check(position == n*n, 'position after write_all')
  field = -field
  call MPI_File_write_at(fh, zero, field, n, MPI_DOUBLE_PRECISION, MPI_STATUS_IGNORE, error)
  call check(error == MPI_SUCCESS, 'write_at')
  call MPI_File_sync(fh, error)
  call MPI_File_close(fh, error)
  call check(error == MPI_SUCCESS, 'close')
  call MPI_Type_free(tile, error)

  open (newunit=unit, file=trim(path), access='stream', form='unformatted', status='old')
  do j = 1, n
    do i = 1, n
      read (unit, pos=1 + 8*((j - 1)*n*ranks + n*rank + (i - 1))) got
      ! The first n elements of the view are the first column.
      call check(got == -field(i, j) .or. (j == 1 .and. got == field(i, j)), 'bytes of the file')
    end do
  end do
  close (unit)
  if (rank == 0) print '(a,i0)', 'written ', ranks*8*(n*n + n)
  call MPI_Finalize(error)

contains

  subroutine check(holds, what)
    logical, intent(in) :: holds
    character(len=*), intent(in) :: what
    integer :: ignored
    if (holds) return
    print *, 'does not hold: ', what
    call MPI_Abort(MPI_COMM_WORLD, 3, ignored)
  end subroutine check
end program fortran
