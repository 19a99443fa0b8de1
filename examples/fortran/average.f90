! Adaptive collectives from Fortran.
!
!     mpifort average.f90 -o average $(pkg-config --cflags --libs collwise)
!     mpirun -n 8 ./average policy.toml
program average
    use mpi
    implicit none
    include 'collwise.fh'
    integer :: ierror, rank, ranks, count, k
    double precision :: total
    character(len=1024) :: policy

    call MPI_Init(ierror)
    ! blanks stand for the policy of COLLWISE_POLICY
    call get_command_argument(1, policy)
    call collwise_init(policy, ierror)
    if (ierror /= MPI_SUCCESS) call MPI_Abort(MPI_COMM_WORLD, 1, ierror)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)

    ! rank 0 knows how many values there are
    count = merge(1000, 0, rank == 0)
    call collwise_bcast(count, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, ierror)

    total = 0
    do k = 0, count - 1
        total = total + rank + k
    end do
    call collwise_allreduce(MPI_IN_PLACE, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierror)

    if (rank == 0) print '(a, f0.1)', 'average ', total / ranks / count
    call collwise_finalize(ierror)
    call MPI_Finalize(ierror)
end program average
