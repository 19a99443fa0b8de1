/* Calls beside messages and collectives: persistent ones, to neighbours, to others' memory, files, communicators; and times without notes. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define WAIT(call)                                \
    do {                                          \
        MPI_Request request;                      \
        call;                                     \
        MPI_Wait(&request, MPI_STATUS_IGNORE);    \
    } while (0)

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
    /* to the one before a double and to the one behind it five integers */
    MPI_Datatype types[] = {MPI_DOUBLE, MPI_INT}, received[] = {MPI_INT, MPI_DOUBLE};
    int few[] = {1, 5}, got[] = {5, 1};
    MPI_Aint apart[] = {0, 80};
    for (int k = 0; k < 2; k++) MPI_Neighbor_alltoallw(a, few, apart, types, b, got, apart, received, row);
    WAIT(MPI_Ineighbor_alltoallw(a, few, apart, types, b, got, apart, received, row, &request));
    MPI_Comm_free(&row);

    /* neighbours on a ring: of a graph, and of one in which each knows its own, whose edges have weights */
    MPI_Comm ring, one_way;
    int *index = calloc(3 * size, sizeof *index), *edges = index + size, one = 1, ten = 10, begin = 0, weight = 7;
    for (int k = 0; k < size; k++) index[k] = 2 * k + 2, edges[2 * k] = (k + size - 1) % size, edges[2 * k + 1] = (k + 1) % size;
    MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &ring);
    MPI_Neighbor_allgather(a, 10, MPI_DOUBLE, b, 10, MPI_DOUBLE, ring);
    MPI_Comm_free(&ring);
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &last, &weight, 1, &next, &weight, MPI_INFO_NULL, 0, &one_way);
    WAIT(MPI_Ineighbor_allgatherv(a, 10, MPI_DOUBLE, b, &ten, &begin, MPI_DOUBLE, one_way, &request));
    MPI_Comm_free(&one_way);
    free(index);

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
    /* ten doubles for the first, five integers for all others; and in place, where what is sent has no types */
    int *bytes_apart = calloc(size, sizeof *bytes_apart), *mine = calloc(2 * size, sizeof *mine), *theirs = mine + size;
    MPI_Datatype *sent = calloc(2 * size, sizeof *sent), *own_type = sent + size;
    for (int k = 0; k < members; k++) {
        bytes_apart[k] = 80 * k, mine[k] = k ? 5 : 10, theirs[k] = own ? 5 : 10;
        sent[k] = k ? MPI_INT : MPI_DOUBLE, own_type[k] = own ? MPI_INT : MPI_DOUBLE;
    }
    for (int k = 0; k < 3; k++) MPI_Alltoallw(a, mine, bytes_apart, sent, b, theirs, bytes_apart, own_type, pairs);
    WAIT(MPI_Ialltoallw(a, mine, bytes_apart, sent, b, theirs, bytes_apart, own_type, pairs, &request));
    for (int k = 0; k < members; k++) sent[k] = MPI_DOUBLE;
    MPI_Alltoallw(MPI_IN_PLACE, NULL, NULL, NULL, b, counts, bytes_apart, sent, pairs);
    free(bytes_apart), free(mine), free(sent);
    /* once each, of a block of 80 bytes */
    WAIT(MPI_Igather(a, 10, MPI_DOUBLE, b, 10, MPI_DOUBLE, 0, pairs, &request));
    WAIT(MPI_Igatherv(a, 10, MPI_DOUBLE, b, counts, displacements, MPI_DOUBLE, 0, pairs, &request));
    WAIT(MPI_Iscatter(a, 10, MPI_DOUBLE, b, 10, MPI_DOUBLE, 0, pairs, &request));
    WAIT(MPI_Iscatterv(a, counts, displacements, MPI_DOUBLE, b, 10, MPI_DOUBLE, 0, pairs, &request));
    WAIT(MPI_Iallgatherv(a, 10, MPI_DOUBLE, b, counts, displacements, MPI_DOUBLE, pairs, &request));
    WAIT(MPI_Ialltoallv(a, counts, displacements, MPI_DOUBLE, b, counts, displacements, MPI_DOUBLE, pairs, &request));
    WAIT(MPI_Iscan(a, b, 10, MPI_DOUBLE, MPI_SUM, pairs, &request));
    WAIT(MPI_Iexscan(a, b, 10, MPI_DOUBLE, MPI_SUM, pairs, &request));
    WAIT(MPI_Ireduce_scatter(a, b, counts, MPI_DOUBLE, MPI_SUM, pairs, &request));
    WAIT(MPI_Ireduce_scatter_block(a, b, 10, MPI_DOUBLE, MPI_SUM, pairs, &request));
    MPI_Reduce_scatter_block(a, b, 10, MPI_DOUBLE, MPI_SUM, pairs);
    for (int k = 0; k < 4; k++) MPI_Gatherv(a, 10, MPI_DOUBLE, b, counts, displacements, MPI_DOUBLE, 0, pairs);
    for (int k = 0; k < 3; k++) MPI_Scan(a, b, 1, MPI_DOUBLE, MPI_SUM, pairs);
    for (int k = 0; k < 2; k++) MPI_Reduce_scatter(a, b, counts, MPI_DOUBLE, MPI_SUM, pairs);
    free(counts);
    if (members > 1)
        MPI_Sendrecv(a, 50, MPI_DOUBLE, (own + 1) % members, 0, b, 50, MPI_DOUBLE, (own + members - 1) % members, 0, pairs, MPI_STATUS_IGNORE);

    /* even ranks to the next odd one, which is of the other group */
    MPI_Comm other, alike;
    MPI_Intercomm_create(pairs, 0, MPI_COMM_WORLD, 1 - rank % 2, 3, &other);
    if (rank % 2 == 0) MPI_Ssend(a, 30, MPI_DOUBLE, own, 0, other);
    else MPI_Recv(b, 30, MPI_DOUBLE, own, 0, other, MPI_STATUS_IGNORE);
    MPI_Comm_disconnect(&other);
    MPI_Comm_dup_with_info(pairs, MPI_INFO_NULL, &alike);
    MPI_Comm_free(&alike);
    MPI_Comm_free(&pairs);

    /* 3 times 400 bytes into the next one's memory */
    MPI_Win window;
    MPI_Win_create(b, 1000 * sizeof *b, sizeof *b, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_fence(0, window);
    for (int k = 0; k < 3; k++) MPI_Put(a, 50, MPI_DOUBLE, next, 50 * k, 50, MPI_DOUBLE, window);
    MPI_Win_fence(0, window);
    MPI_Win_lock_all(0, window);
    WAIT(MPI_Rget_accumulate(a, 50, MPI_DOUBLE, b + 500, 50, MPI_DOUBLE, next, 0, 50, MPI_DOUBLE, MPI_SUM, window, &request));
    MPI_Win_flush_local(next, window);
    MPI_Win_flush_local_all(window);
    MPI_Win_sync(window);
    MPI_Win_unlock_all(window);
    /* only the one before may write, and only for a while */
    MPI_Group all, before, behind;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, one, &last, &before);
    MPI_Group_incl(all, one, &next, &behind);
    MPI_Win_post(before, 0, window);
    MPI_Win_start(behind, 0, window);
    MPI_Win_complete(window);
    do MPI_Win_test(window, &done);
    while (!done);
    MPI_Group_free(&all), MPI_Group_free(&before), MPI_Group_free(&behind);
    MPI_Win_free(&window);
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_free(&window);
    double *shared;
    MPI_Win_allocate_shared(sizeof *shared, sizeof *shared, MPI_INFO_NULL, MPI_COMM_SELF, &shared, &window);
    MPI_Win_free(&window);

    /* a test that leaves the request as it is */
    MPI_Request barrier;
    MPI_Ibarrier(MPI_COMM_WORLD, &barrier);
    do MPI_Request_get_status(barrier, &done, MPI_STATUS_IGNORE);
    while (!done);
    MPI_Wait(&barrier, MPI_STATUS_IGNORE);

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
