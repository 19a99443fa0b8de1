/* Steps of a broadcast, computing, a small allreduce and a reduction. */
#include <mpi.h>

#define NUMBERS 8192

static double a[NUMBERS], b[NUMBERS], sum[8];

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    for (int step = 0; step < 30; step++) {
        MPI_Bcast(a, NUMBERS, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        for (int round = 0; round < 300; round++)
            for (int k = 0; k < NUMBERS; k++) b[k] += a[k] * 1.0001 + round;
        MPI_Allreduce(MPI_IN_PLACE, sum, 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        MPI_Reduce(b, a, NUMBERS / 8, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
