/* Calls beside messages and collectives: persistent ones, to neighbours, to others' memory, files, communicators; and times without notes. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int rank, size, done, which[2];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    double *a = calloc(1000 * size, sizeof *a), *b = calloc(1000 * size, sizeof *b);
    int next = (rank + 1) % size, last = (rank + size - 1) % size;

    double start = MPI_Wtime();
    /* nothing of this is noted, but what it describes is known when it is started */
    MPI_Request early;
    MPI_Pcontrol(0);
    MPI_Send_init(a, 100, MPI_DOUBLE, next, 2, MPI_COMM_WORLD, &early);
    usleep(300000);
    MPI_Sendrecv(a, 777, MPI_DOUBLE, next, 0, b, 777, MPI_DOUBLE, last, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Pcontrol(1, "more", 3.0);

    MPI_Start(&early);
    MPI_Recv(b, 100, MPI_DOUBLE, last, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&early, MPI_STATUS_IGNORE);
    MPI_Pcontrol(0);
    MPI_Request_free(&early);
    MPI_Pcontrol(1);

    /* twice ten messages of 800 bytes, and one that is started alone */
    MPI_Request requests[2];
    MPI_Send_init(a, 100, MPI_DOUBLE, next, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Recv_init(b, 100, MPI_DOUBLE, last, 1, MPI_COMM_WORLD, &requests[1]);
    for (int k = 0; k < 10; k++) {
        MPI_Startall(2, requests);
        do MPI_Testsome(2, requests, &done, which, MPI_STATUSES_IGNORE);
        while (done != MPI_UNDEFINED);
    }
    MPI_Start(&requests[1]);
    MPI_Start(&requests[0]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);

    /* a row: 10 numbers for each of 2 neighbours, of which the first and the last have one */
    MPI_Comm row, pairs;
    int periodic = 0;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &row);
    for (int k = 0; k < 5; k++) MPI_Neighbor_alltoall(a, 10, MPI_DOUBLE, b, 10, MPI_DOUBLE, row);
    MPI_Comm_free(&row);

    /* alone */
    MPI_Allreduce(a, b, 4, MPI_DOUBLE, MPI_SUM, MPI_COMM_SELF);
    /* ranks of equal parity, 2 apart, and messages among them */
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &pairs);
    int own, members;
    MPI_Comm_rank(pairs, &own);
    MPI_Comm_size(pairs, &members);
    for (int k = 0; k < 7; k++) MPI_Allreduce(a, b, 4, MPI_DOUBLE, MPI_SUM, pairs);
    /* collectives that are never adaptive */
    int *counts = calloc(2 * size, sizeof *counts), *displacements = counts + size;
    for (int k = 0; k < members; k++) counts[k] = 10, displacements[k] = 10 * k;
    for (int k = 0; k < 6; k++) {
        MPI_Request request;
        MPI_Iallreduce(a, b, 4, MPI_DOUBLE, MPI_SUM, pairs, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    for (int k = 0; k < 5; k++) MPI_Alltoallv(a, counts, displacements, MPI_DOUBLE, b, counts, displacements, MPI_DOUBLE, pairs);
    for (int k = 0; k < 4; k++) MPI_Gatherv(a, 10, MPI_DOUBLE, b, counts, displacements, MPI_DOUBLE, 0, pairs);
    for (int k = 0; k < 3; k++) MPI_Scan(a, b, 1, MPI_DOUBLE, MPI_SUM, pairs);
    for (int k = 0; k < 2; k++) MPI_Reduce_scatter(a, b, counts, MPI_DOUBLE, MPI_SUM, pairs);
    free(counts);
    if (members > 1)
        MPI_Sendrecv(a, 50, MPI_DOUBLE, (own + 1) % members, 0, b, 50, MPI_DOUBLE, (own + members - 1) % members, 0, pairs, MPI_STATUS_IGNORE);
    MPI_Comm_free(&pairs);

    /* 3 times 400 bytes into the next one's memory */
    MPI_Win window;
    MPI_Win_create(b, 1000 * sizeof *b, sizeof *b, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_fence(0, window);
    for (int k = 0; k < 3; k++) MPI_Put(a, 50, MPI_DOUBLE, next, 50 * k, 50, MPI_DOUBLE, window);
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);

    /* a file: what MPI sends for it is not the program's */
    MPI_File file;
    if (MPI_File_open(MPI_COMM_WORLD, "written", MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file) == MPI_SUCCESS) {
        MPI_File_write_at_all(file, rank * 8000, a, 1000, MPI_DOUBLE, MPI_STATUS_IGNORE);
        MPI_File_close(&file);
    }
    if (rank == 0) printf("%f seconds\n", MPI_Wtime() - start);
    MPI_Finalize();
    return 0;
}
