/* In the place of collwise.h: the same names are MPI's functions. */
#include <mpi.h>

typedef MPI_Request collwise_request;
#define collwise_init(policy) ((void)(policy), MPI_SUCCESS)
#define collwise_strerror(code) "an error"
#define collwise_barrier MPI_Barrier
#define collwise_bcast MPI_Bcast
#define collwise_bcast_c MPI_Bcast
#define collwise_reduce MPI_Reduce
#define collwise_reduce_c MPI_Reduce
#define collwise_allreduce MPI_Allreduce
#define collwise_allreduce_c MPI_Allreduce
#define collwise_reduce_scatter_block MPI_Reduce_scatter_block
#define collwise_reduce_scatter_block_c MPI_Reduce_scatter_block
#define collwise_reduce_scatter MPI_Reduce_scatter
#define collwise_reduce_scatter_c(from, into, large, type, op, comm) ((void)(large), MPI_Reduce_scatter(from, into, counts, type, op, comm))
#define collwise_gather MPI_Gather
#define collwise_gather_c MPI_Gather
#define collwise_scatter MPI_Scatter
#define collwise_scatter_c MPI_Scatter
#define collwise_allgather MPI_Allgather
#define collwise_allgather_c MPI_Allgather
#define collwise_alltoall MPI_Alltoall
#define collwise_alltoall_c MPI_Alltoall
#define collwise_allgatherv MPI_Allgatherv
#define collwise_allgatherv_c(from, n, type, into, many, far, u, comm) ((void)(many), (void)(far), MPI_Allgatherv(from, n, type, into, counts, places, u, comm))
#define collwise_gatherv MPI_Gatherv
#define collwise_gatherv_c(from, n, type, into, many, far, u, root, comm) MPI_Gatherv(from, n, type, into, counts, places, u, root, comm)
#define collwise_scatterv MPI_Scatterv
#define collwise_scatterv_c(from, many, far, type, into, n, u, root, comm) MPI_Scatterv(from, counts, places, type, into, n, u, root, comm)
#define collwise_alltoallv MPI_Alltoallv
#define collwise_alltoallv_c(from, alike, at, type, into, m, there, u, comm) ((void)(alike), (void)(at), MPI_Alltoallv(from, same, apart, type, into, same, apart, u, comm))
#define collwise_ibcast MPI_Ibcast
#define collwise_iallreduce MPI_Iallreduce
#define collwise_ibarrier MPI_Ibarrier
#define collwise_wait(request) MPI_Wait(request, MPI_STATUS_IGNORE)
#define collwise_test(request, flag) MPI_Test(request, flag, MPI_STATUS_IGNORE)
