! The heat equation in a cube, by explicit finite differences on a three-dimensional grid of ranks.
!
! Each rank owns a block of the grid, with one layer of its neighbours' cells around it. Snapshots of
! the whole grid are appended to one shared file, in the order a serial program would write them,
! through a subarray file view; the memory side is a subarray too (the block without its halo).
! The start is one sine mode, of which the exact decay is known, so the program says how far off
! it is: from the heat equation itself, and from what the scheme must give to the last few bits.
!
!   mpiexec -n 4 ./heat --cells 128 --steps 40 --every 4 --output heat.dat --check
!
! The file: a header of 64 bytes (eight 8-byte integers: magic, cells, snapshots, every, 0...), then
! snapshots of 8 * cells**3 bytes, x fastest.
module settings
  use, intrinsic :: iso_fortran_env, only: int64, real64, error_unit
  implicit none
  integer, parameter :: dp = real64
  integer(int64), parameter :: magic = 4921953907261516104_int64
  integer, parameter :: header_bytes = 64
  real(dp), parameter :: pi = acos(-1.0_dp)
  real(dp), parameter :: courant = 0.15_dp  ! dt / h**2; stable below 1/6
  integer :: cells = 64, steps = 40, every = 4
  character(len=1024) :: output = 'heat.dat'
  logical :: check = .false.
contains

  subroutine usage(talkative)
    logical, intent(in) :: talkative
    if (.not. talkative) return
    write (*, '(a)') 'usage: mpiexec -n RANKS heat [options]', &
      '  --cells N      interior cells along each side (default 64)', &
      '  --steps N      time steps (default 40)', &
      '  --every N      steps between snapshots (default 4)', &
      '  --output PATH  the file (default heat.dat)', &
      '  --check        read the file back and compare'
  end subroutine usage

  ! Returns -1 to go on, else the exit code to stop with.
  integer function parse_command_line(talkative) result(stop_code)
    logical, intent(in) :: talkative
    character(len=1024) :: word
    integer :: i
    stop_code = -1
    i = 1
    do while (i <= command_argument_count() .and. stop_code < 0)
      call get_command_argument(i, word)
      select case (word)
      case ('--check')
        check = .true.
      case ('--help')
        call usage(talkative)
        stop_code = 0
      case ('--output')
        i = i + 1
        call get_command_argument(i, output)
      case ('--cells')
        call parse_count(word, i, cells, talkative, stop_code)
      case ('--steps')
        call parse_count(word, i, steps, talkative, stop_code)
      case ('--every')
        call parse_count(word, i, every, talkative, stop_code)
      case default
        if (talkative) write (error_unit, '(2a)') 'heat: unknown option ', trim(word)
        stop_code = 2
      end select
      i = i + 1
    end do
  end function parse_command_line

  subroutine parse_count(name, i, value, talkative, stop_code)
    character(len=*), intent(in) :: name
    integer, intent(inout) :: i, value, stop_code
    logical, intent(in) :: talkative
    character(len=1024) :: text
    integer :: status, number
    i = i + 1
    call get_command_argument(i, text)
    read (text, *, iostat=status) number
    if (status == 0 .and. len_trim(text) > 0) then
      if (number >= 1 .and. number <= 1000000) then
        value = number
        return
      end if
    end if
    if (talkative) write (error_unit, '(4a)') 'heat: ', trim(name), &
      ' must be from 1 to 1000000, got ', trim(text)
    stop_code = 2
  end subroutine parse_count
end module settings

! This rank's block of the grid and its neighbours.
module grid
  use mpi_f08
  use settings
  implicit none
  type(MPI_Comm) :: cartesian
  type(MPI_Datatype) :: block_in_file, block_in_memory, faces(3)
  integer :: rank, ranks, dims(3), coordinates(3), neighbours(2, 3)
  integer :: first(3), extent(3)  ! this rank owns first .. first + extent - 1, from 0
contains

  subroutine make_grid()
    integer :: d
    call MPI_Comm_size(MPI_COMM_WORLD, ranks)
    dims = 0
    call MPI_Dims_create(ranks, 3, dims)
    call MPI_Cart_create(MPI_COMM_WORLD, 3, dims, [.false., .false., .false.], .false., cartesian)
    call MPI_Comm_rank(cartesian, rank)
    call MPI_Cart_coords(cartesian, rank, 3, coordinates)
    do d = 1, 3
      call MPI_Cart_shift(cartesian, d - 1, 1, neighbours(1, d), neighbours(2, d))
      first(d) = int(int(cells, int64) * coordinates(d) / dims(d))
      extent(d) = int(int(cells, int64) * (coordinates(d) + 1) / dims(d)) - first(d)
    end do
    call make_types()
  end subroutine make_grid

  subroutine make_types()
    integer :: d, face(3)
    call MPI_Type_create_subarray(3, [cells, cells, cells], extent, first, MPI_ORDER_FORTRAN, &
                                  MPI_REAL8, block_in_file)
    call MPI_Type_create_subarray(3, extent + 2, extent, [1, 1, 1], MPI_ORDER_FORTRAN, &
                                  MPI_REAL8, block_in_memory)
    call MPI_Type_commit(block_in_file)
    call MPI_Type_commit(block_in_memory)
    do d = 1, 3
      face = extent
      face(d) = 1
      call MPI_Type_create_subarray(3, extent + 2, face, [0, 0, 0], MPI_ORDER_FORTRAN, &
                                    MPI_REAL8, faces(d))
      call MPI_Type_commit(faces(d))
    end do
  end subroutine make_types

  subroutine free_grid()
    integer :: d
    do d = 1, 3
      call MPI_Type_free(faces(d))
    end do
    call MPI_Type_free(block_in_file)
    call MPI_Type_free(block_in_memory)
    call MPI_Comm_free(cartesian)
  end subroutine free_grid

  subroutine must(code, what)
    integer, intent(in) :: code
    character(len=*), intent(in) :: what
    character(len=MPI_MAX_ERROR_STRING) :: text
    integer :: length
    if (code == MPI_SUCCESS) return
    call MPI_Error_string(code, text, length)
    write (error_unit, '(4a)') 'heat: ', what, ': ', text(1:length)
    call MPI_Abort(MPI_COMM_WORLD, 1)
  end subroutine must
end module grid

! The equation: u_t = laplacian(u) in the unit cube, u = 0 on its surface.
module physics
  use mpi_f08
  use settings
  use grid
  implicit none
  real(dp), allocatable :: sines(:)  ! of the mode along one side
contains

  pure real(dp) function h()  ! the distance between cells
    h = 1.0_dp / real(cells + 1, dp)
  end function h

  pure real(dp) function time_of(step)
    integer, intent(in) :: step
    time_of = real(step, dp) * courant * h()**2
  end function time_of

  ! Tabulated over the whole side on every rank: compilers may take sines four at a time and the rest
  ! one by one, with other last bits, so a rank's own range would make the bits depend on its bounds.
  subroutine make_sines()
    integer :: i
    allocate (sines(cells))
    do i = 1, cells
      sines(i) = sin(pi * i * h())
    end do
  end subroutine make_sines

  pure real(dp) function mode(i, j, k)  ! indices within this rank's block
    integer, intent(in) :: i, j, k
    mode = (sines(first(1) + i) * sines(first(2) + j)) * sines(first(3) + k)
  end function mode

  ! What one sine mode is multiplied by: by the equation, and by this scheme.
  pure real(dp) function exact_decay(step)
    integer, intent(in) :: step
    exact_decay = exp(-3.0_dp * pi**2 * time_of(step))
  end function exact_decay

  pure real(dp) function scheme_decay(step)
    integer, intent(in) :: step
    scheme_decay = (1.0_dp - 12.0_dp * courant * sin(pi * h() / 2.0_dp)**2)**step
  end function scheme_decay

  subroutine start(u)
    real(dp), intent(out) :: u(0:, 0:, 0:)
    integer :: i, j, k
    u = 0.0_dp
    do k = 1, extent(3)
      do j = 1, extent(2)
        do i = 1, extent(1)
          u(i, j, k) = mode(i, j, k)
        end do
      end do
    end do
  end subroutine start

  subroutine exchange_halo(u)
    real(dp), intent(inout), asynchronous :: u(0:, 0:, 0:)
    call swap(u(1, 1, 1), u(extent(1) + 1, 1, 1), u(extent(1), 1, 1), u(0, 1, 1), 1)
    call swap(u(1, 1, 1), u(1, extent(2) + 1, 1), u(1, extent(2), 1), u(1, 0, 1), 2)
    call swap(u(1, 1, 1), u(1, 1, extent(3) + 1), u(1, 1, extent(3)), u(1, 1, 0), 3)
  end subroutine exchange_halo

  ! Both directions along axis d. The face type starts at the cell that is handed over.
  subroutine swap(low, beyond_high, high, beyond_low, d)
    real(dp), intent(inout), asynchronous :: low, beyond_high, high, beyond_low
    integer, intent(in) :: d
    call MPI_Sendrecv(low, 1, faces(d), neighbours(1, d), 0, &
                      beyond_high, 1, faces(d), neighbours(2, d), 0, cartesian, MPI_STATUS_IGNORE)
    call MPI_Sendrecv(high, 1, faces(d), neighbours(2, d), 1, &
                      beyond_low, 1, faces(d), neighbours(1, d), 1, cartesian, MPI_STATUS_IGNORE)
  end subroutine swap

  ! Sums in one fixed order, so that the bits do not depend on the grid of ranks.
  subroutine advance(u, next)
    real(dp), intent(in) :: u(0:, 0:, 0:)
    real(dp), intent(inout) :: next(0:, 0:, 0:)
    integer :: i, j, k
    do k = 1, extent(3)
      do j = 1, extent(2)
        do i = 1, extent(1)
          next(i, j, k) = u(i, j, k) + courant * &
            (((((u(i-1, j, k) + u(i+1, j, k)) + (u(i, j-1, k) + u(i, j+1, k))) + &
               (u(i, j, k-1) + u(i, j, k+1))) - 6.0_dp * u(i, j, k)))
        end do
      end do
    end do
  end subroutine advance

  ! The largest distance of this rank's block from a decayed sine mode, over the mode's height.
  real(dp) function distance(u, decay)
    real(dp), intent(in) :: u(0:, 0:, 0:), decay
    integer :: i, j, k
    distance = 0.0_dp
    do k = 1, extent(3)
      do j = 1, extent(2)
        do i = 1, extent(1)
          distance = max(distance, abs(u(i, j, k) / decay - mode(i, j, k)))
        end do
      end do
    end do
  end function distance
end module physics

! The file of snapshots.
module snapshots
  use mpi_f08
  use settings
  use grid
  use physics
  implicit none
contains

  subroutine open_for_writing(file)
    type(MPI_File), intent(out) :: file
    integer(int64) :: header(8)
    integer :: code
    if (rank == 0) call MPI_File_delete(output, MPI_INFO_NULL, code)  ! it may not exist
    call MPI_Barrier(cartesian)
    call MPI_File_open(cartesian, trim(output), ior(MPI_MODE_CREATE, MPI_MODE_RDWR), MPI_INFO_NULL, &
                       file, code)
    call must(code, trim(output))
    if (rank == 0) then
      header = 0
      header(1:4) = [magic, int(cells, int64), int(steps / every, int64), int(every, int64)]
      call MPI_File_write_at(file, 0_MPI_OFFSET_KIND, header, header_bytes, MPI_BYTE, &
                             MPI_STATUS_IGNORE, code)
      call must(code, 'write header')
    end if
    call set_block_view(file)
  end subroutine open_for_writing

  subroutine set_block_view(file)
    type(MPI_File), intent(in) :: file
    integer :: code
    call MPI_File_set_view(file, int(header_bytes, MPI_OFFSET_KIND), MPI_REAL8, block_in_file, &
                           'native', MPI_INFO_NULL, code)
    call must(code, 'set_view')
  end subroutine set_block_view

  ! The view tiles the file, so the next write_all continues in the next snapshot.
  subroutine write_snapshot(file, u)
    type(MPI_File), intent(in) :: file
    real(dp), intent(in) :: u(0:, 0:, 0:)
    type(MPI_Status) :: status
    integer :: code, written
    call MPI_File_write_all(file, u, 1, block_in_memory, status, code)
    call must(code, 'write snapshot')
    call MPI_Get_elements(status, MPI_REAL8, written, code)
    if (written /= product(extent)) call must(MPI_ERR_IO, 'write snapshot: fewer values than asked for')
  end subroutine write_snapshot

  ! Every value of every snapshot against what the scheme must have given.
  logical function file_is_right(u) result(right)
    real(dp), intent(inout) :: u(0:, 0:, 0:)
    type(MPI_File) :: file
    integer(int64) :: header(8)
    integer :: code, s
    real(dp) :: mine, worst
    call MPI_File_open(cartesian, trim(output), MPI_MODE_RDONLY, MPI_INFO_NULL, file, code)
    call must(code, 'open to check')
    call MPI_File_read_at_all(file, 0_MPI_OFFSET_KIND, header, header_bytes, MPI_BYTE, &
                              MPI_STATUS_IGNORE, code)
    call must(code, 'read header')
    call set_block_view(file)
    mine = 0.0_dp
    do s = 1, steps / every
      u = 0.0_dp
      call MPI_File_read_all(file, u, 1, block_in_memory, MPI_STATUS_IGNORE, code)
      call must(code, 'read snapshot')
      mine = max(mine, distance(u, scheme_decay(s * every)))
    end do
    call MPI_File_close(file, code)
    call MPI_Allreduce(mine, worst, 1, MPI_REAL8, MPI_MAX, cartesian)
    right = worst < 1e-10_dp .and. header(1) == magic .and. header(3) == steps / every
  end function file_is_right
end module snapshots

program heat
  use mpi_f08
  use settings
  use grid
  use physics
  use snapshots
  implicit none
  real(dp), allocatable, asynchronous :: u(:, :, :), next(:, :, :)
  real(dp) :: compute_s = 0, exchange_s = 0, write_s = 0, total_s
  type(MPI_File) :: file
  logical :: good
  integer :: stop_code

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  stop_code = parse_command_line(rank == 0)
  if (stop_code >= 0) then
    call MPI_Finalize()
    stop stop_code
  end if
  call make_grid()
  allocate (u(0:extent(1)+1, 0:extent(2)+1, 0:extent(3)+1), source=0.0_dp)
  allocate (next, source=u)

  call make_sines()
  call start(u)
  call MPI_Barrier(cartesian)
  total_s = MPI_Wtime()
  call open_for_writing(file)
  call simulate()
  call close_file()
  total_s = MPI_Wtime() - total_s
  call report()

  good = .true.
  if (check) then
    good = file_is_right(next)
    if (rank == 0) write (*, '(2a)') 'check ', trim(merge('passed: the file holds what was computed', &
                                                          'FAILED                                  ', good))
  end if
  call free_grid()
  call MPI_Finalize()
  if (.not. good) stop 1

contains

  subroutine simulate()
    real(dp), allocatable :: swapped(:, :, :)
    integer :: step
    real(dp) :: t(4)
    do step = 1, steps
      t(1) = MPI_Wtime()
      call exchange_halo(u)
      t(2) = MPI_Wtime()
      call advance(u, next)
      call move_alloc(u, swapped)
      call move_alloc(next, u)
      call move_alloc(swapped, next)
      t(3) = MPI_Wtime()
      if (mod(step, every) == 0) call write_snapshot(file, u)
      t(4) = MPI_Wtime()
      exchange_s = exchange_s + t(2) - t(1)
      compute_s = compute_s + t(3) - t(2)
      write_s = write_s + t(4) - t(3)
    end do
  end subroutine simulate

  subroutine close_file()
    integer :: code
    real(dp) :: began
    began = MPI_Wtime()
    call MPI_File_close(file, code)
    call must(code, 'close')
    write_s = write_s + MPI_Wtime() - began
  end subroutine close_file

  subroutine report()
    real(dp) :: mine(6), worst(6)
    mine = [compute_s, exchange_s, write_s, total_s, distance(u, exact_decay(steps)), &
            distance(u, scheme_decay(steps))]
    call MPI_Allreduce(mine, worst, 6, MPI_REAL8, MPI_MAX, cartesian)
    if (rank /= 0) return
    write (*, '(a,i0,a,i0,a,i0,a,3(i0,:,"x"))') 'heat: ', cells, '**3 cells, ', steps, ' steps, ', &
      steps / every, ' snapshots, ranks ', dims
    write (*, '(a,es9.2,a,es9.2)') 'error against the exact decay', worst(5), &
      ', against the decay of the scheme', worst(6)
    write (*, '(4(a,f0.6),a,i0)') 'compute_s ', worst(1), ' exchange_s ', worst(2), ' write_s ', &
      worst(3), ' total_s ', worst(4), ' bytes ', &
      header_bytes + 8_int64 * (steps / every) * int(cells, int64)**3
    if (worst(6) > 1e-10_dp) call must(MPI_ERR_OTHER, 'the scheme did not decay as it must')
  end subroutine report
end program heat
