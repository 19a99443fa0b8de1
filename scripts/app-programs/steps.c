/* Thirty steps of a pause and of collectives:
 *   steps sleep|compute CALL...
 * CALL is a letter and bytes: b65536 broadcasts, a64 sums numbers on all ranks, r8192 on the first one.
 * Where processes share processors they sleep for the 2 ms that each would compute on a processor of its own. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NUMBERS 8192
#define MOST (16 << 20)

static double a[NUMBERS], b[NUMBERS];

static void compute(void)
{
    for (int round = 0; round < 300; round++)
        for (int k = 0; k < NUMBERS; k++) b[k] += a[k] * 1.0001 + round;
}

static int call(char kind, int bytes, void *from, void *into)
{
    switch (kind) {
    case 'b': return MPI_Bcast(from, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    case 'a': return MPI_Allreduce(from, into, bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    case 'r': return MPI_Reduce(from, into, bytes / 8, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    }
    fprintf(stderr, "steps: %c is none of b, a, r\n", kind);
    return MPI_Abort(MPI_COMM_WORLD, 2);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    void *from = calloc(MOST, 1), *into = calloc(MOST, 1);
    if (argc < 3 || !from || !into) {
        fprintf(stderr, "usage: steps sleep|compute CALL...\n");
        return MPI_Abort(MPI_COMM_WORLD, 2);
    }
    for (int step = 0; step < 30; step++) {
        if (strcmp(argv[1], "sleep") == 0)
            usleep(2000);
        else
            compute();
        for (int k = 2; k < argc; k++) {
            int bytes = atoi(argv[k] + 1);
            call(argv[k][0], bytes < MOST ? bytes : MOST, from, into);
        }
    }
    MPI_Finalize();
    return 0;
}
