/* The adaptive collectives: MPI's functions by the names collwise_..., with the same arguments, the same codes and the same error handlers.

   collwise_init, or the environment variable COLLWISE_POLICY, names the policy. Without one, or with one that does not fit a communicator's hosts,
   the MPI library's own collectives run, and rank 0 is told why on standard error.

   Made of capi/src: change that. */

#ifndef COLLWISE_H
#define COLLWISE_H

#include <mpi.h>
#include <stddef.h>

// What is kept for a collective that was begun.
typedef struct collwise_operation collwise_operation;

// A collective that was begun; null when it is over.
typedef struct collwise_operation *collwise_request;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// `MPI_Bcast`, in the way that the policy has for its size, its root and the communicator's hosts.
int collwise_bcast(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm);

// `MPI_Barrier`, as collwise_bcast.
int collwise_barrier(MPI_Comm comm);

// `MPI_Reduce`, as collwise_bcast.
int collwise_reduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm);

// `MPI_Allreduce`, as collwise_bcast.
int collwise_allreduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm);

// `MPI_Reduce_scatter_block`, as collwise_bcast.
int collwise_reduce_scatter_block(const void *sendbuf,
                                  void *recvbuf,
                                  int recvcount,
                                  MPI_Datatype datatype,
                                  MPI_Op op,
                                  MPI_Comm comm);

// `MPI_Reduce_scatter`, as collwise_bcast where blocks are about as long as each other.
int collwise_reduce_scatter(const void *sendbuf,
                            void *recvbuf,
                            const int *recvcounts,
                            MPI_Datatype datatype,
                            MPI_Op op,
                            MPI_Comm comm);

// `MPI_Gather`, as collwise_bcast.
int collwise_gather(const void *sendbuf,
                    int sendcount,
                    MPI_Datatype sendtype,
                    void *recvbuf,
                    int recvcount,
                    MPI_Datatype recvtype,
                    int root,
                    MPI_Comm comm);

// `MPI_Gatherv`: the library's own, since the root alone knows all sizes.
int collwise_gatherv(const void *sendbuf,
                     int sendcount,
                     MPI_Datatype sendtype,
                     void *recvbuf,
                     const int *recvcounts,
                     const int *displs,
                     MPI_Datatype recvtype,
                     int root,
                     MPI_Comm comm);

// `MPI_Scatter`, as collwise_bcast.
int collwise_scatter(const void *sendbuf,
                     int sendcount,
                     MPI_Datatype sendtype,
                     void *recvbuf,
                     int recvcount,
                     MPI_Datatype recvtype,
                     int root,
                     MPI_Comm comm);

// `MPI_Scatterv`: the library's own, since the root alone knows all sizes.
int collwise_scatterv(const void *sendbuf,
                      const int *sendcounts,
                      const int *displs,
                      MPI_Datatype sendtype,
                      void *recvbuf,
                      int recvcount,
                      MPI_Datatype recvtype,
                      int root,
                      MPI_Comm comm);

// `MPI_Allgather`, as collwise_bcast.
int collwise_allgather(const void *sendbuf,
                       int sendcount,
                       MPI_Datatype sendtype,
                       void *recvbuf,
                       int recvcount,
                       MPI_Datatype recvtype,
                       MPI_Comm comm);

// `MPI_Allgatherv`, as collwise_bcast where blocks are about as long as each other.
int collwise_allgatherv(const void *sendbuf,
                        int sendcount,
                        MPI_Datatype sendtype,
                        void *recvbuf,
                        const int *recvcounts,
                        const int *displs,
                        MPI_Datatype recvtype,
                        MPI_Comm comm);

// `MPI_Alltoall`, as collwise_bcast.
int collwise_alltoall(const void *sendbuf,
                      int sendcount,
                      MPI_Datatype sendtype,
                      void *recvbuf,
                      int recvcount,
                      MPI_Datatype recvtype,
                      MPI_Comm comm);

// `MPI_Alltoallv`: the library's own, since no rank knows all sizes.
int collwise_alltoallv(const void *sendbuf,
                       const int *sendcounts,
                       const int *sdispls,
                       MPI_Datatype sendtype,
                       void *recvbuf,
                       const int *recvcounts,
                       const int *rdispls,
                       MPI_Datatype recvtype,
                       MPI_Comm comm);

// As `collwise_bcast`.
int collwise_bcast_c(void *buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm);

// As `collwise_reduce`.
int collwise_reduce_c(const void *sendbuf,
                      void *recvbuf,
                      MPI_Count count,
                      MPI_Datatype datatype,
                      MPI_Op op,
                      int root,
                      MPI_Comm comm);

// As `collwise_allreduce`.
int collwise_allreduce_c(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm);

// As `collwise_reduce_scatter_block`; long blocks are reduced one after the other.
int collwise_reduce_scatter_block_c(const void *sendbuf,
                                    void *recvbuf,
                                    MPI_Count recvcount,
                                    MPI_Datatype datatype,
                                    MPI_Op op,
                                    MPI_Comm comm);

// As `collwise_gather`.
int collwise_gather_c(const void *sendbuf,
                      MPI_Count sendcount,
                      MPI_Datatype sendtype,
                      void *recvbuf,
                      MPI_Count recvcount,
                      MPI_Datatype recvtype,
                      int root,
                      MPI_Comm comm);

// As `collwise_scatter`.
int collwise_scatter_c(const void *sendbuf,
                       MPI_Count sendcount,
                       MPI_Datatype sendtype,
                       void *recvbuf,
                       MPI_Count recvcount,
                       MPI_Datatype recvtype,
                       int root,
                       MPI_Comm comm);

// As `collwise_allgather`.
int collwise_allgather_c(const void *sendbuf,
                         MPI_Count sendcount,
                         MPI_Datatype sendtype,
                         void *recvbuf,
                         MPI_Count recvcount,
                         MPI_Datatype recvtype,
                         MPI_Comm comm);

// As `collwise_alltoall`.
int collwise_alltoall_c(const void *sendbuf,
                        MPI_Count sendcount,
                        MPI_Datatype sendtype,
                        void *recvbuf,
                        MPI_Count recvcount,
                        MPI_Datatype recvtype,
                        MPI_Comm comm);

// As `collwise_gatherv`.
int collwise_gatherv_c(const void *sendbuf,
                       MPI_Count sendcount,
                       MPI_Datatype sendtype,
                       void *recvbuf,
                       const MPI_Count *recvcounts,
                       const MPI_Aint *displs,
                       MPI_Datatype recvtype,
                       int root,
                       MPI_Comm comm);

// As `collwise_scatterv`.
int collwise_scatterv_c(const void *sendbuf,
                        const MPI_Count *sendcounts,
                        const MPI_Aint *displs,
                        MPI_Datatype sendtype,
                        void *recvbuf,
                        MPI_Count recvcount,
                        MPI_Datatype recvtype,
                        int root,
                        MPI_Comm comm);

// As `collwise_allgatherv`.
int collwise_allgatherv_c(const void *sendbuf,
                          MPI_Count sendcount,
                          MPI_Datatype sendtype,
                          void *recvbuf,
                          const MPI_Count *recvcounts,
                          const MPI_Aint *displs,
                          MPI_Datatype recvtype,
                          MPI_Comm comm);

// As `collwise_alltoallv`.
int collwise_alltoallv_c(const void *sendbuf,
                         const MPI_Count *sendcounts,
                         const MPI_Aint *sdispls,
                         MPI_Datatype sendtype,
                         void *recvbuf,
                         const MPI_Count *recvcounts,
                         const MPI_Aint *rdispls,
                         MPI_Datatype recvtype,
                         MPI_Comm comm);

// As `collwise_reduce_scatter`.
int collwise_reduce_scatter_c(const void *sendbuf,
                              void *recvbuf,
                              const MPI_Count *recvcounts,
                              MPI_Datatype datatype,
                              MPI_Op op,
                              MPI_Comm comm);

// Uses the policy in this file from now on, for communicators that have no plans yet; with a null pointer the one that the environment variable
// COLLWISE_POLICY names, if it names one. Call it on all ranks alike, before or after `MPI_Init`. A program that never calls it uses what COLLWISE_POLICY
// names, too. A file that cannot be used is an error, of which `collwise_strerror` says what is wrong.
int collwise_init(const char *policy);

// Frees all that is kept for communicators, which use the MPI library's own collectives from then on. Collective over all processes, before
// `MPI_Finalize`, which does the same where it is not called.
int collwise_finalize(void);

// Writes what a collective does on a communicator, in a line that ends with a zero and is cut to `size` bytes, and the seconds that it should take, or -1
// where the policy does not say; each if its pointer is not null. `collective` is bcast, barrier, reduce, allreduce, reduce_scatter, gather, scatter,
// allgather or alltoall; `bytes` are those of the message or of a block. Not collective: communicators have plans from their second collective of this
// library on at the latest.
int collwise_explain(const char *collective,
                     MPI_Count bytes,
                     int root,
                     MPI_Comm comm,
                     char *text,
                     size_t size,
                     double *seconds);

// What a code means: of the last error of this thread what was wrong, and of other codes MPI's words. The text stays until this thread's next call.
const char *collwise_strerror(int code);

// Begins a broadcast, as `MPI_Ibcast`; `collwise_wait` or `collwise_test` ends it. All ranks begin the collectives of a communicator, blocking or not,
// in the same order, and end them in any. It gets further while the process is in `collwise_wait`, `collwise_test` or a blocking collective
// of this library, and in no other call. A communicator has plans for it after its second blocking collective of this library.
int collwise_ibcast(void *buffer,
                    int count,
                    MPI_Datatype datatype,
                    int root,
                    MPI_Comm comm,
                    collwise_request *request);

// Begins what `MPI_Iallreduce` does, by the rules of `collwise_ibcast`.
int collwise_iallreduce(const void *sendbuf,
                        void *recvbuf,
                        int count,
                        MPI_Datatype datatype,
                        MPI_Op op,
                        MPI_Comm comm,
                        collwise_request *request);

// Begins a barrier, by the rules of `collwise_ibcast`.
int collwise_ibarrier(MPI_Comm comm, collwise_request *request);

// Waits until a collective is over, and makes its request null. Of a null request there is nothing to wait for.
int collwise_wait(collwise_request *request);

// Gets all collectives further that are under way; `flag` is 1 if this one is over, whose request is null then, and 0 if it is not.
int collwise_test(collwise_request *request,
                  int *flag);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* COLLWISE_H */
