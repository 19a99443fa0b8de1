! Calls by the Fortran interfaces: the module mpi, and the module mpi_f08.
program calls
  use mpi
  implicit none
  integer :: rank, size, ierr, k
  double precision :: a(1000), b(1000)
  call MPI_Init_thread(MPI_THREAD_FUNNELED, k, ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)
  a = 1
  b = 1
  do k = 1, 20
    call MPI_Bcast(a, 1000, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD, ierr)
    call MPI_Allreduce(MPI_IN_PLACE, b, 2, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD, ierr)
    call MPI_Sendrecv(a, 25, MPI_DOUBLE_PRECISION, mod(rank + 1, size), 0, &
      b, 25, MPI_DOUBLE_PRECISION, mod(rank + size - 1, size), 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
    call modern()
  end do
  call MPI_Finalize(ierr)
end program

subroutine modern()
  use mpi_f08
  implicit none
  double precision :: a(50), b(50)
  a = 1
  call MPI_Reduce(a, b, 50, MPI_DOUBLE_PRECISION, MPI_SUM, 0, MPI_COMM_WORLD)
  call MPI_Barrier(MPI_COMM_WORLD)
end subroutine
