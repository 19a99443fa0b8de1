/* Calls that MPI allows, and that some choices of algorithms do not survive: reductions by an operation that does not commute, and an allgather in place whose
   ranks give other send arguments, which MPI ignores there. With "segments" as well a broadcast whose ranks give the same data as other counts of other
   datatypes. Says how many values are wrong on all ranks together. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 1000, BLOCK = 4000, LONG = 1000000, PART = 10000 };

/* products of matrices of two rows, modulo 97 */
static void multiply(void *left, void *into, int *count, MPI_Datatype *type)
{
    (void)type;
    for (int k = 0; k < *count; k++) {
        int *a = (int *)left + 4 * k, *b = (int *)into + 4 * k;
        int c[4] = {a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3], a[2] * b[0] + a[3] * b[2], a[2] * b[1] + a[3] * b[3]};
        for (int i = 0; i < 4; i++)
            b[i] = c[i] % 97;
    }
}

static void give(int rank, int *matrix)
{
    int given[4] = {rank + 1, 2 * rank + 1, rank * rank + 3, 5};
    memcpy(matrix, given, sizeof given);
}

static int differ(const int *got, const int *expected)
{
    int wrong = 0;
    for (int i = 0; i < 4 * COUNT; i++)
        wrong += got[i] != expected[i % 4];
    return wrong;
}

static void say(const char *what, int wrong, int rank)
{
    int all;
    MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%s: %d wrong\n", what, all);
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    int rank, ranks, one = 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Op op;
    MPI_Datatype matrix, part;
    MPI_Op_create(multiply, 0, &op);
    MPI_Type_contiguous(4, MPI_INT, &matrix);
    MPI_Type_commit(&matrix);
    MPI_Type_contiguous(PART, MPI_BYTE, &part);
    MPI_Type_commit(&part);

    int *mine = malloc(COUNT * sizeof(int[4])), *got = calloc(COUNT, sizeof(int[4])), expected[4], next[4];
    for (int k = 0; k < COUNT; k++)
        give(rank, mine + 4 * k);
    give(0, expected);
    for (int k = 1; k < ranks; k++) {
        give(k, next);
        multiply(expected, next, &one, NULL);
        memcpy(expected, next, sizeof next);
    }
    MPI_Reduce(mine, got, COUNT, matrix, op, 0, MPI_COMM_WORLD);
    say("reduce", rank ? 0 : differ(got, expected), rank);
    MPI_Allreduce(mine, got, COUNT, matrix, op, MPI_COMM_WORLD);
    say("allreduce", differ(got, expected), rank);

    char *blocks = calloc(ranks, BLOCK), *data = calloc(LONG, 1);
    int wrong = 0;
    memset(blocks + rank * BLOCK, rank + 1, BLOCK);
    MPI_Allgather(MPI_IN_PLACE, rank ? BLOCK : 0, rank ? MPI_BYTE : MPI_DATATYPE_NULL, blocks, BLOCK, MPI_BYTE, MPI_COMM_WORLD);
    for (int i = 0; i < ranks * BLOCK; i++)
        wrong += blocks[i] != i / BLOCK + 1;
    say("allgather in place", wrong, rank);

    if (argc > 1 && !strcmp(argv[1], "segments")) {
        for (int i = 0; i < LONG && rank == 0; i++)
            data[i] = i % 101;
        MPI_Bcast(data, rank ? LONG / PART : LONG, rank ? part : MPI_BYTE, 0, MPI_COMM_WORLD);
        wrong = 0;
        for (int i = 0; i < LONG; i++)
            wrong += data[i] != i % 101;
        say("broadcast of other datatypes", wrong, rank);
    }
    MPI_Finalize();
    return 0;
}
