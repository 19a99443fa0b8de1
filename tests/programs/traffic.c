/* What Open MPI sends for each collective call: its own monitoring is told of every message, and this program takes its place.
 *   mpicc -rdynamic traffic.c -o traffic; mpirun -n 8 --mca pml_monitoring_enable 1 ./traffic [MOST_BYTES [FIRST [STEP]]]
 * One line a call and size: name, ranks, bytes of a block, messages and bytes of all ranks, the most messages of one, the most ranks that
 * one sends to, the most that one hears from. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int size, rank;
static unsigned long long messages, bytes;
static int *to_whom, *from_whom;

/* what pml_monitoring calls for each message; the executable's symbol comes before the library's */
void mca_common_monitoring_record_pml(int to, size_t length, int tag) {
    (void)tag;
    if (to_whom && to != rank) {
        messages++;
        bytes += length;
        to_whom[to] = 1;
    }
}

static const char *NAMES[] = {"Barrier",  "Bcast",    "Reduce",         "Allreduce",            "Allgather", "Allgatherv",
                              "Alltoall", "Alltoallv", "Alltoallw",     "Gather",               "Gatherv",   "Scatter",
                              "Scatterv", "Reduce_scatter", "Reduce_scatter_block", "Scan",     "Exscan",    "Ibarrier",
                              "Ibcast",   "Ireduce",  "Iallreduce",     "Iallgather",           "Ialltoall"};

/* buffers of as many blocks as there are ranks */
static char *in, *out;
static int *counts, *places, *byte_places;
static MPI_Datatype *types;

static void call(int which, int n) {
    MPI_Comm all = MPI_COMM_WORLD;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Datatype t = MPI_INT;
    switch (which) {
    case 0: MPI_Barrier(all); break;
    case 1: MPI_Bcast(in, n, t, 0, all); break;
    case 2: MPI_Reduce(in, out, n, t, MPI_SUM, 0, all); break;
    case 3: MPI_Allreduce(in, out, n, t, MPI_SUM, all); break;
    case 4: MPI_Allgather(in, n, t, out, n, t, all); break;
    case 5: MPI_Allgatherv(in, n, t, out, counts, places, t, all); break;
    case 6: MPI_Alltoall(in, n, t, out, n, t, all); break;
    case 7: MPI_Alltoallv(in, counts, places, t, out, counts, places, t, all); break;
    case 8: MPI_Alltoallw(in, counts, byte_places, types, out, counts, byte_places, types, all); break;
    case 9: MPI_Gather(in, n, t, out, n, t, 0, all); break;
    case 10: MPI_Gatherv(in, n, t, out, counts, places, t, 0, all); break;
    case 11: MPI_Scatter(in, n, t, out, n, t, 0, all); break;
    case 12: MPI_Scatterv(in, counts, places, t, out, n, t, 0, all); break;
    case 13: MPI_Reduce_scatter(in, out, counts, t, MPI_SUM, all); break;
    case 14: MPI_Reduce_scatter_block(in, out, n, t, MPI_SUM, all); break;
    case 15: MPI_Scan(in, out, n, t, MPI_SUM, all); break;
    case 16: MPI_Exscan(in, out, n, t, MPI_SUM, all); break;
    case 17: MPI_Ibarrier(all, &request); break;
    case 18: MPI_Ibcast(in, n, t, 0, all, &request); break;
    case 19: MPI_Ireduce(in, out, n, t, MPI_SUM, 0, all, &request); break;
    case 20: MPI_Iallreduce(in, out, n, t, MPI_SUM, all, &request); break;
    case 21: MPI_Iallgather(in, n, t, out, n, t, all, &request); break;
    case 22: MPI_Ialltoall(in, n, t, out, n, t, all, &request); break;
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int most = argc > 1 ? atoi(argv[1]) : 65536, first = argc > 2 ? atoi(argv[2]) : 4, step = argc > 3 ? atoi(argv[3]) : 2;
    in = calloc(size, most), out = calloc(size, most), to_whom = calloc(size, sizeof *to_whom), from_whom = calloc(size, sizeof *from_whom);
    counts = calloc(size, sizeof *counts), places = calloc(size, sizeof *places), byte_places = calloc(size, sizeof *byte_places);
    types = calloc(size, sizeof *types);
    for (int which = 0; which < (int)(sizeof NAMES / sizeof *NAMES); which++) {
        for (int m = first; m <= most; m *= step) {
            int n = m / 4, i;
            for (i = 0; i < size; i++) {
                counts[i] = n, places[i] = i * n, byte_places[i] = i * m, types[i] = MPI_INT;
            }
            memset(to_whom, 0, size * sizeof *to_whom);
            messages = bytes = 0;
            call(which, n);
            unsigned long long heard = 0;
            unsigned long long own[] = {messages, bytes, messages, 0}, sum[2], max[2];
            for (i = 0; i < size; i++) {
                own[3] += to_whom[i];
            }
            int *sent_to = malloc(size * sizeof *sent_to);
            memcpy(sent_to, to_whom, size * sizeof *sent_to);
            MPI_Reduce(sent_to, from_whom, size, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
            free(sent_to);
            for (i = 0; rank == 0 && i < size; i++) {
                heard = (unsigned long long)from_whom[i] > heard ? (unsigned long long)from_whom[i] : heard;
            }
            MPI_Reduce(own, sum, 2, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
            MPI_Reduce(own + 2, max, 2, MPI_UNSIGNED_LONG_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
            if (rank == 0) {
                printf("%s %d %d %llu %llu %llu %llu %llu\n", NAMES[which], size, m, sum[0], sum[1], max[0], max[1], heard);
            }
            MPI_Barrier(MPI_COMM_WORLD);
            if (strstr(NAMES[which], "arrier")) {
                break;
            }
        }
    }
    MPI_Finalize();
    return 0;
}
