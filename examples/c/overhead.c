/* What a call costs that is the MPI library's own: nanoseconds of MPI_Bcast, MPI_Allreduce and MPI_Barrier on one rank, the least of many rounds. Run it plainly and under the
   preloaded library; with -DLIBRARY it calls collwise_bcast and its sisters.

       mpicc -O2 overhead.c -o overhead
       mpirun -n 1 ./overhead
       mpirun -n 1 -x LD_PRELOAD=libcollwise_preload.so -x COLLWISE_POLICY=policy.toml ./overhead
*/
#include <mpi.h>
#include <stdio.h>
#ifdef LIBRARY
#include <collwise.h>
#define MPI_Bcast collwise_bcast
#define MPI_Allreduce collwise_allreduce
#define MPI_Barrier collwise_barrier
#endif

enum { CALLS = 20000, ROUNDS = 100 };

#define LEAST(call) \
    do { \
        double least = 1; \
        for (int round = 0; round < ROUNDS; round++) { \
            double begin = MPI_Wtime(); \
            for (int k = 0; k < CALLS; k++) call; \
            double each = (MPI_Wtime() - begin) / CALLS; \
            if (each < least) least = each; \
        } \
        printf("%6.1f ", least * 1e9); \
    } while (0)

int main(int argc, char **argv) {
    double given = 1, got = 0;
    MPI_Init(&argc, &argv);
    LEAST(MPI_Bcast(&given, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD));
    LEAST(MPI_Allreduce(&given, &got, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
    LEAST(MPI_Barrier(MPI_COMM_WORLD));
    printf("ns\n");
    MPI_Finalize();
    return 0;
}
