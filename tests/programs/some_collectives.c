/* Calls collectives, each as NAME:BYTES says (bytes of the message, or of one block), and checks what they deliver. Ranks that MPI lets give no arguments give
   none. Rank 0 says what it calls. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks, wrong;

static void expect(const unsigned char *data, int bytes, int value)
{
    for (int i = 0; i < bytes; i++)
        wrong += data[i] != (unsigned char)value;
}

static void call(const char *name, int bytes)
{
    int root = 0, all = ranks * bytes, longs = bytes / 8;
    unsigned char *mine = malloc(all + 8), *got = malloc(all + 8);
    long *sums = (long *)got;
    memset(mine, rank + 1, all);
    memset(got, 0, all);
    for (int i = 0; i < longs; i++)
        ((long *)mine)[i] = rank + i;
    if (!strcmp(name, "bcast")) {
        MPI_Bcast(mine, bytes, MPI_BYTE, root, MPI_COMM_WORLD);
        for (int i = 0; i < longs; i++)
            wrong += ((long *)mine)[i] != i;
    } else if (!strcmp(name, "reduce") || !strcmp(name, "allreduce")) {
        int everywhere = name[0] == 'a';
        if (everywhere)
            MPI_Allreduce(mine, sums, longs, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        else
            MPI_Reduce(mine, sums, longs, MPI_LONG, MPI_SUM, root, MPI_COMM_WORLD);
        for (int i = 0; i < longs && (everywhere || rank == root); i++)
            wrong += sums[i] != (long)ranks * i + (long)ranks * (ranks - 1) / 2;
    } else if (!strcmp(name, "reduce_scatter")) {
        long *given = malloc(all + 8);
        for (int i = 0; i < ranks * longs; i++)
            given[i] = rank + i;
        MPI_Reduce_scatter_block(given, sums, longs, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        for (int i = 0; i < longs; i++)
            wrong += sums[i] != (long)ranks * (rank * longs + i) + (long)ranks * (ranks - 1) / 2;
        free(given);
    } else if (!strcmp(name, "allgather")) {
        memset(got + rank * bytes, rank + 1, bytes);
        /* what is in place has no send arguments: rank 0 gives others than the rest */
        MPI_Allgather(MPI_IN_PLACE, rank ? bytes : 0, rank ? MPI_BYTE : MPI_DATATYPE_NULL, got, bytes, MPI_BYTE, MPI_COMM_WORLD);
        for (int from = 0; from < ranks; from++)
            expect(got + from * bytes, bytes, from + 1);
    } else if (!strcmp(name, "alltoall")) {
        memset(mine, rank + 1, all);
        MPI_Alltoall(mine, bytes, MPI_BYTE, got, bytes, MPI_BYTE, MPI_COMM_WORLD);
        for (int from = 0; from < ranks; from++)
            expect(got + from * bytes, bytes, from + 1);
    } else if (!strcmp(name, "gather")) {
        memset(mine, rank + 1, bytes);
        memset(got + root * bytes, root + 1, bytes);
        if (rank == root)
            MPI_Gather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, got, bytes, MPI_BYTE, root, MPI_COMM_WORLD);
        else
            MPI_Gather(mine, bytes, MPI_BYTE, NULL, 0, MPI_DATATYPE_NULL, root, MPI_COMM_WORLD);
        for (int from = 0; from < ranks && rank == root; from++)
            expect(got + from * bytes, bytes, from + 1);
    } else if (!strcmp(name, "scatter")) {
        for (int to = 0; to < ranks; to++)
            memset(mine + to * bytes, to + 1, bytes);
        if (rank == root)
            MPI_Scatter(mine, bytes, MPI_BYTE, got, bytes, MPI_BYTE, root, MPI_COMM_WORLD);
        else
            MPI_Scatter(NULL, 0, MPI_DATATYPE_NULL, got, bytes, MPI_BYTE, root, MPI_COMM_WORLD);
        expect(got, bytes, rank + 1);
    } else if (!strcmp(name, "barrier")) {
        MPI_Barrier(MPI_COMM_WORLD);
    } else {
        wrong++;
    }
    free(mine);
    free(got);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int k = 1; k < argc; k++) {
        char name[32];
        int bytes;
        if (sscanf(argv[k], "%31[a-z_]:%d", name, &bytes) != 2)
            return 2;
        if (rank == 0) {
            printf("calls %s\n", argv[k]);
            fflush(stdout);
        }
        call(name, bytes);
    }
    if (rank == 0) {
        printf("calls nothing\n");
        fflush(stdout);
    }
    if (wrong)
        fprintf(stderr, "rank %d: %d values are wrong\n", rank, wrong);
    MPI_Finalize();
    return wrong != 0;
}
