! Every collective from Fortran, in place and not, beside the MPI library's own.
program every
    use mpi
    implicit none
    include 'collwise.fh'
    integer, parameter :: n = 50
    integer :: ierror, rank, ranks, k, round, root, wrong, code
    integer, allocatable, asynchronous :: from(:), into(:), expected(:), counts(:), places(:)
    integer(kind=MPI_ADDRESS_KIND) :: request, other
    logical :: over
    character(len=1024) :: policy

    call MPI_Init(ierror)
    call get_command_argument(1, policy)
    call collwise_init(policy, ierror)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
    allocate(from(n * ranks), into(n * ranks), expected(n * ranks), counts(ranks), places(ranks))
    counts = n - 3
    places = [(n * k, k = 0, ranks - 1)]
    wrong = merge(0, 1, ierror == MPI_SUCCESS)
    do round = 1, 4
        root = mod(round, ranks)
        call collwise_barrier(MPI_COMM_WORLD, ierror)
        call begin()
        call MPI_Bcast(expected, n, MPI_INTEGER, root, MPI_COMM_WORLD, ierror)
        call collwise_bcast(into, n, MPI_INTEGER, root, MPI_COMM_WORLD, code)
        call compare('bcast')
        call begin()
        call MPI_Reduce(from, expected, n, MPI_INTEGER, MPI_SUM, root, MPI_COMM_WORLD, ierror)
        call collwise_reduce(from, into, n, MPI_INTEGER, MPI_SUM, root, MPI_COMM_WORLD, code)
        call compare('reduce')
        call begin()
        call MPI_Allreduce(from, expected, n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
        call collwise_allreduce(from, into, n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, code)
        call compare('allreduce')
        call begin()
        call MPI_Allreduce(MPI_IN_PLACE, expected, n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
        call collwise_allreduce(MPI_IN_PLACE, into, n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, code)
        call compare('allreduce in place')
        call begin()
        call MPI_Reduce_scatter_block(from, expected, n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
        call collwise_reduce_scatter_block(from, into, n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, code)
        call compare('reduce_scatter_block')
        call begin()
        call MPI_Reduce_scatter(from, expected, counts, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
        call collwise_reduce_scatter(from, into, counts, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, code)
        call compare('reduce_scatter')
        call begin()
        call MPI_Gather(from, n, MPI_INTEGER, expected, n, MPI_INTEGER, root, MPI_COMM_WORLD, ierror)
        call collwise_gather(from, n, MPI_INTEGER, into, n, MPI_INTEGER, root, MPI_COMM_WORLD, code)
        call compare('gather')
        call begin()
        call MPI_Gatherv(from, counts(1), MPI_INTEGER, expected, counts, places, MPI_INTEGER, root, MPI_COMM_WORLD, ierror)
        call collwise_gatherv(from, counts(1), MPI_INTEGER, into, counts, places, MPI_INTEGER, root, MPI_COMM_WORLD, code)
        call compare('gatherv')
        call begin()
        call MPI_Scatter(from, n, MPI_INTEGER, expected, n, MPI_INTEGER, root, MPI_COMM_WORLD, ierror)
        call collwise_scatter(from, n, MPI_INTEGER, into, n, MPI_INTEGER, root, MPI_COMM_WORLD, code)
        call compare('scatter')
        call begin()
        call MPI_Scatterv(from, counts, places, MPI_INTEGER, expected, counts(1), MPI_INTEGER, root, MPI_COMM_WORLD, ierror)
        call collwise_scatterv(from, counts, places, MPI_INTEGER, into, counts(1), MPI_INTEGER, root, MPI_COMM_WORLD, code)
        call compare('scatterv')
        call begin()
        call MPI_Allgather(MPI_IN_PLACE, 0, MPI_INTEGER, expected, n, MPI_INTEGER, MPI_COMM_WORLD, ierror)
        call collwise_allgather(MPI_IN_PLACE, 0, MPI_INTEGER, into, n, MPI_INTEGER, MPI_COMM_WORLD, code)
        call compare('allgather in place')
        call begin()
        call MPI_Allgatherv(from, counts(1), MPI_INTEGER, expected, counts, places, MPI_INTEGER, MPI_COMM_WORLD, ierror)
        call collwise_allgatherv(from, counts(1), MPI_INTEGER, into, counts, places, MPI_INTEGER, MPI_COMM_WORLD, code)
        call compare('allgatherv')
        call begin()
        call MPI_Alltoall(from, n, MPI_INTEGER, expected, n, MPI_INTEGER, MPI_COMM_WORLD, ierror)
        call collwise_alltoall(from, n, MPI_INTEGER, into, n, MPI_INTEGER, MPI_COMM_WORLD, code)
        call compare('alltoall')
        call begin()
        call MPI_Alltoallv(from, counts, places, MPI_INTEGER, expected, counts, places, MPI_INTEGER, MPI_COMM_WORLD, ierror)
        call collwise_alltoallv(from, counts, places, MPI_INTEGER, into, counts, places, MPI_INTEGER, MPI_COMM_WORLD, code)
        call compare('alltoallv')
        call begin()
        call MPI_Bcast(expected, n, MPI_INTEGER, root, MPI_COMM_WORLD, ierror)
        call collwise_ibcast(into, n, MPI_INTEGER, root, MPI_COMM_WORLD, request, code)
        if (code /= MPI_SUCCESS .or. request == 0) wrong = wrong + 1
        call collwise_wait(request, code)
        call compare('ibcast')
        call begin()
        call MPI_Allreduce(MPI_IN_PLACE, expected, n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
        call collwise_ibarrier(MPI_COMM_WORLD, other, code)
        if (code /= MPI_SUCCESS .or. other == 0) wrong = wrong + 1
        call collwise_iallreduce(MPI_IN_PLACE, into, n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, request, code)
        if (code /= MPI_SUCCESS .or. request == 0) wrong = wrong + 1
        over = .false.
        do while (.not. over)
            call collwise_test(request, over, code)
        end do
        call compare('iallreduce in place')
        call collwise_wait(other, code)
        if (code /= MPI_SUCCESS) wrong = wrong + 1
        if (request /= 0 .or. other /= 0) wrong = wrong + 1
    end do
    call MPI_Allreduce(MPI_IN_PLACE, wrong, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
    if (rank == 0) print '(i0, a)', wrong, ' wrong'
    call collwise_finalize(ierror)
    call MPI_Finalize(ierror)
    if (wrong > 0) stop 1

contains

    subroutine begin()
        integer :: i
        from = [(mod(i * 31 + rank * 7, 1000), i = 1, n * ranks)]
        into = [(i + rank, i = 1, n * ranks)]
        expected = into
    end subroutine begin

    subroutine compare(what)
        character(len=*), intent(in) :: what
        if (any(into /= expected) .or. code /= MPI_SUCCESS) then
            print '(a, i0, 2a)', 'rank ', rank, ': ', what
            wrong = wrong + 1
        end if
    end subroutine compare
end program every
