/* What broadcasts take back to back: nanoseconds of MPI_Bcast and, with -DLIBRARY, of collwise_bcast in turns, on the slowest rank, medians of 101 blocks of CALLS calls.
   Without the library, once plainly and once preloaded, it says what the preloaded library costs.

       mpicc -O2 -DLIBRARY turns.c -o turns $(pkg-config --cflags --libs collwise)
       COLLWISE_POLICY=policy.toml mpirun -n 2 ./turns [CALLS]
       mpicc -O2 turns.c -o plain
       mpirun -n 2 ./plain
       mpirun -n 2 -x LD_PRELOAD=libcollwise_preload.so -x COLLWISE_POLICY=policy.toml ./plain
*/
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#ifdef LIBRARY
#include <collwise.h>
enum { WAYS = 2 };
#else
#define collwise_bcast MPI_Bcast
enum { WAYS = 1 };
#endif

enum { BLOCKS = 101, MOST = 16384 };

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    static char data[MOST];
    static const int sizes[] = {1, 16, 64, 200, 1024, MOST};
    int rank, calls = argc > 1 ? atoi(argv[1]) : 1000;
    if (calls < 1) {
        fprintf(stderr, "turns: the number of calls must be 1 at least\n");
        return 2;
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (unsigned s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        double took[WAYS][BLOCKS];
        /* the first blocks set the communicator up */
        for (int block = -2; block < BLOCKS; block++)
            for (int turn = 0; turn < WAYS; turn++) {
                int ours = (turn + block + 2) % WAYS;
                MPI_Barrier(MPI_COMM_WORLD);
                double begin = MPI_Wtime(), slowest;
                for (int k = 0; k < calls; k++) {
                    if (ours)
                        collwise_bcast(data, sizes[s], MPI_BYTE, 0, MPI_COMM_WORLD);
                    else
                        MPI_Bcast(data, sizes[s], MPI_BYTE, 0, MPI_COMM_WORLD);
                }
                double each = (MPI_Wtime() - begin) / calls;
                MPI_Allreduce(&each, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
                if (block >= 0) took[ours][block] = slowest * 1e9;
            }
        for (int way = 0; way < WAYS; way++) qsort(took[way], BLOCKS, sizeof(double), by_size);
        if (rank == 0) {
            printf("%6d B: MPI_Bcast %.0f ns", sizes[s], took[0][BLOCKS / 2]);
            if (WAYS > 1) printf(", collwise_bcast %.0f ns", took[WAYS - 1][BLOCKS / 2]);
            printf("\n");
        }
    }
    MPI_Finalize();
    return 0;
}
