/* Preloaded under Open MPI: rank 0 says which of the library's algorithms it runs, and in which segments and with which fan-out, where there is something to
   choose. Arguments pass through as they come: in registers and on the stack each takes eight bytes. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static void say(const char *name, int segment, int fan_out)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    if (rank && atoi(rank) == 0) {
        printf("runs %s %d %d\n", name, segment, fan_out);
        fflush(stdout);
    }
}

typedef long (*function)(long, long, long, long, long, long, long, long, long, long, long, long);

#define TRACE(NAME, SEGMENT, FAN_OUT)                                                                                                            \
    long ompi_coll_base_##NAME(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, long k, long l)                   \
    {                                                                                                                                            \
        static function next;                                                                                                                    \
        if (!next)                                                                                                                               \
            next = (function)dlsym(RTLD_NEXT, "ompi_coll_base_" #NAME);                                                                          \
        say(#NAME, (int)(SEGMENT), (int)(FAN_OUT));                                                                                              \
        return next(a, b, c, d, e, f, g, h, i, j, k, l);                                                                                         \
    }

TRACE(bcast_intra_basic_linear, 0, 0)
TRACE(bcast_intra_chain, g, h)
TRACE(bcast_intra_pipeline, g, 0)
TRACE(bcast_intra_split_bintree, g, 0)
TRACE(bcast_intra_bintree, g, 0)
TRACE(bcast_intra_binomial, g, 0)
TRACE(bcast_intra_knomial, g, 0)
TRACE(bcast_intra_scatter_allgather, 0, 0)
TRACE(bcast_intra_scatter_allgather_ring, 0, 0)
TRACE(reduce_intra_basic_linear, 0, 0)
TRACE(reduce_intra_chain, i, j)
TRACE(reduce_intra_pipeline, i, 0)
TRACE(reduce_intra_binary, i, 0)
TRACE(reduce_intra_binomial, i, 0)
TRACE(reduce_intra_redscat_gather, 0, 0)
TRACE(allreduce_intra_recursivedoubling, 0, 0)
TRACE(allreduce_intra_ring, 0, 0)
TRACE(allreduce_intra_ring_segmented, h, 0)
TRACE(allreduce_intra_redscat_allgather, 0, 0)
TRACE(allgather_intra_bruck, 0, 0)
TRACE(allgather_intra_recursivedoubling, 0, 0)
TRACE(allgather_intra_ring, 0, 0)
TRACE(allgather_intra_neighborexchange, 0, 0)
TRACE(alltoall_intra_basic_linear, 0, 0)
TRACE(alltoall_intra_pairwise, 0, 0)
TRACE(alltoall_intra_bruck, 0, 0)
TRACE(barrier_intra_basic_linear, 0, 0)
TRACE(barrier_intra_doublering, 0, 0)
TRACE(barrier_intra_bruck, 0, 0)
TRACE(barrier_intra_tree, 0, 0)
TRACE(gather_intra_basic_linear, 0, 0)
TRACE(gather_intra_binomial, 0, 0)
TRACE(scatter_intra_basic_linear, 0, 0)
TRACE(scatter_intra_binomial, 0, 0)
