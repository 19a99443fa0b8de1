/* What the first calls of a program take, until the last rank is done: agreeing on plans and making communicators is in them.
 *
 *     mpicc -O2 examples/c/first.c -o first
 *     mpirun -n 16 ./first; mpirun -n 16 collwise run --policy policy.toml ./first
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int rank;

/* By the clock of the rank that took longest, from when it left the barrier before. */
static void say(const char *what, double begin) {
    double mine = MPI_Wtime() - begin, longest;
    PMPI_Reduce(&mine, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("%-22s %8.2f ms\n", what, longest * 1e3);
}

#define TIMED(what, call) \
    do { \
        PMPI_Barrier(MPI_COMM_WORLD); \
        double begin = MPI_Wtime(); \
        call; \
        say(what, begin); \
    } while (0)

int main(int argc, char **argv) {
    int ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    char *given = calloc(ranks, 1 << 15), *got = calloc(ranks, 1 << 15);
    double value = 1, sum;
    MPI_Comm copy;
    for (int k = 0; k < 2; k++) TIMED("broadcast of 4 B", MPI_Bcast(given, 4, MPI_BYTE, 0, MPI_COMM_WORLD));
    for (int k = 0; k < 2; k++) TIMED("broadcast of 4,000 B", MPI_Bcast(given, 4000, MPI_BYTE, 0, MPI_COMM_WORLD));
    for (int k = 0; k < 2; k++) TIMED("allreduce of 8 B", MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
    TIMED("duplicate", MPI_Comm_dup(MPI_COMM_WORLD, &copy));
    for (int k = 0; k < 2; k++) TIMED("alltoall of 32 KiB", MPI_Alltoall(given, 1 << 15, MPI_BYTE, got, 1 << 15, MPI_BYTE, copy));
    MPI_Comm_free(&copy);
    MPI_Finalize();
    return 0;
}
