/* Calls of many kinds, some with MPI_IN_PLACE and with arguments that it makes meaningless. */
#include <mpi.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm world = MPI_COMM_WORLD;
    double *a = calloc(1000 * size, sizeof *a), *b = calloc(1000 * size, sizeof *b);
    int *counts = malloc(size * sizeof *counts), *places = malloc(size * sizeof *places);
    for (int k = 0; k < size; k++) {
        counts[k] = 10;
        places[k] = 10 * k;
    }
    for (int k = 0; k < 20; k++) {
        MPI_Bcast(a, 1000, MPI_DOUBLE, 0, world);
        MPI_Allreduce(MPI_IN_PLACE, b, 2, MPI_DOUBLE, MPI_SUM, world);
        MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, b, 100, MPI_DOUBLE, world);
        MPI_Gather(rank ? (void *)a : MPI_IN_PLACE, 50, rank ? MPI_DOUBLE : MPI_DATATYPE_NULL, b, 50, MPI_DOUBLE, 0, world);
        MPI_Alltoallv(a, counts, places, MPI_DOUBLE, b, counts, places, MPI_DOUBLE, world);
        MPI_Scatterv(a, counts, places, MPI_DOUBLE, rank ? (void *)b : MPI_IN_PLACE, 10, rank ? MPI_DOUBLE : MPI_DATATYPE_NULL, 0, world);
        MPI_Sendrecv(a, 25, MPI_DOUBLE, (rank + 1) % size, 0, b, 25, MPI_DOUBLE, (rank + size - 1) % size, 0, world, MPI_STATUS_IGNORE);
        MPI_Send(a, 99, MPI_DOUBLE, MPI_PROC_NULL, 0, world);
        MPI_Barrier(world);
    }
    MPI_Finalize();
    return 0;
}
