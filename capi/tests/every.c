/* Every collective, beside the MPI library's own: the same bytes everywhere, from every root, of every kind of datatype, in place and not, and on groups. */
#ifdef PLAIN /* a name of what is included instead */
#include PLAIN
#else
#include <collwise.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 3000 };

static int rank, ranks, calls, wrong;
static unsigned sum; /* of all results */
static unsigned char *from, *into, *expected;
static size_t room;
static MPI_Datatype gaps;

static unsigned state = 1;
static int random_below(int n) { /* alike on all ranks */
    state = state * 1103515245u + 12345u;
    return (int)(state >> 8) % n;
}

static void fill(unsigned char *buffer, int seed) {
    for (size_t k = 0; k < room; k++) buffer[k] = (unsigned char)((k * 31 + (size_t)rank * 7 + (size_t)seed) % 5);
}

/* Both results start alike, so that what must not be written is compared too. */
static void begin(void) {
    fill(from, calls);
    fill(into, calls + 1);
    memcpy(expected, into, room);
}

static void compare(const char *what, int code, int count) {
    calls++;
    for (size_t k = 0; k < room; k++) sum = sum * 31 + into[k];
    if (code != MPI_SUCCESS || memcmp(into, expected, room) != 0) {
        if (wrong++ < 5) fprintf(stderr, "rank %d: %s of %d, call %d: code %d, or other bytes\n", rank, what, count, calls, code);
    }
}

/* Maps x -> a x + b, with a in the upper half of a number and b in the lower one, one after the other: that does not commute. */
static void after(void *in, void *inout, int *n, MPI_Datatype *type) {
    (void)type;
    unsigned *left = in, *right = inout;
    for (int k = 0; k < *n; k++) {
        unsigned a = left[k] >> 16, b = left[k] & 0xffff, c = right[k] >> 16, d = right[k] & 0xffff;
        right[k] = (a * c & 0xffff) << 16 | ((a * d + b) & 0xffff);
    }
}

static void reductions(int n, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm) {
    int size, me;
    MPI_Comm_size(comm, &size);
    MPI_Comm_rank(comm, &me);
    begin();
    MPI_Allreduce(from, expected, n, type, op, comm);
    compare("allreduce", collwise_allreduce(from, into, n, type, op, comm), n);
    begin();
    MPI_Allreduce(MPI_IN_PLACE, expected, n, type, op, comm);
    compare("allreduce in place", collwise_allreduce_c(MPI_IN_PLACE, into, n, type, op, comm), n);
    begin();
    MPI_Reduce(from, me == root ? expected : NULL, n, type, op, root, comm);
    compare("reduce", collwise_reduce(from, me == root ? into : NULL, n, type, op, root, comm), n);
    root = 0; /* with others MPICH 4.0.2's own function crashes in place from some 4 KB on */
    begin();
    MPI_Reduce(me == root ? MPI_IN_PLACE : from, me == root ? expected : NULL, n, type, op, root, comm);
    compare("reduce in place", collwise_reduce_c(me == root ? MPI_IN_PLACE : from, me == root ? into : NULL, n, type, op, root, comm), n);
    begin();
    MPI_Reduce_scatter_block(from, expected, n, type, op, comm);
    compare("reduce_scatter_block", collwise_reduce_scatter_block(from, into, n, type, op, comm), n);
    begin();
    MPI_Reduce_scatter_block(MPI_IN_PLACE, expected, n, type, op, comm);
    int code = collwise_reduce_scatter_block_c(MPI_IN_PLACE, into, n, type, op, comm);
    /* what is behind the result is not defined in place */
    int bytes;
    MPI_Type_size(type, &bytes);
    memset(into + (size_t)n * bytes, 0, room - (size_t)n * bytes);
    memset(expected + (size_t)n * bytes, 0, room - (size_t)n * bytes);
    compare("reduce_scatter_block in place", code, n);
    int *counts = malloc(sizeof(int) * size);
    MPI_Count *large = malloc(sizeof(MPI_Count) * size);
    for (int k = 0; k < size; k++) large[k] = counts[k] = n + random_below(3);
    begin();
    MPI_Reduce_scatter(from, expected, counts, type, op, comm);
    compare("reduce_scatter", collwise_reduce_scatter(from, into, counts, type, op, comm), n);
    begin();
    MPI_Reduce_scatter(from, expected, counts, type, op, comm);
    compare("reduce_scatter_c", collwise_reduce_scatter_c(from, into, large, type, op, comm), n);
    free(counts);
    free(large);
}

static void blocks(int n, MPI_Datatype type, int root, MPI_Comm comm) {
    int size, me;
    MPI_Comm_size(comm, &size);
    MPI_Comm_rank(comm, &me);
    const void *given = me == root ? MPI_IN_PLACE : from;
    begin();
    MPI_Bcast(expected, n, type, root, comm);
    compare("bcast", collwise_bcast(into, n, type, root, comm), n);
    begin();
    MPI_Bcast(expected, n, type, root, comm);
    compare("bcast_c", collwise_bcast_c(into, n, type, root, comm), n);
    begin();
    MPI_Gather(from, n, type, me == root ? expected : NULL, n, type, root, comm);
    compare("gather", collwise_gather(from, n, type, me == root ? into : NULL, n, type, root, comm), n);
    begin();
    MPI_Gather(given, n, type, expected, n, type, root, comm);
    compare("gather in place", collwise_gather_c(given, n, type, into, n, type, root, comm), n);
    begin();
    MPI_Scatter(me == root ? from : NULL, n, type, expected, n, type, root, comm);
    compare("scatter", collwise_scatter(me == root ? from : NULL, n, type, into, n, type, root, comm), n);
    begin();
    MPI_Scatter(from, n, type, me == root ? MPI_IN_PLACE : expected, n, type, root, comm);
    compare("scatter in place", collwise_scatter_c(from, n, type, me == root ? MPI_IN_PLACE : into, n, type, root, comm), n);
    begin();
    MPI_Allgather(from, n, type, expected, n, type, comm);
    compare("allgather", collwise_allgather(from, n, type, into, n, type, comm), n);
    begin();
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, expected, n, type, comm);
    compare("allgather in place", collwise_allgather_c(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, into, n, type, comm), n);
    begin();
    MPI_Alltoall(from, n, type, expected, n, type, comm);
    compare("alltoall", collwise_alltoall(from, n, type, into, n, type, comm), n);
    begin();
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, expected, n, type, comm);
    compare("alltoall in place", collwise_alltoall_c(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, into, n, type, comm), n);
}

static void lists(int n, MPI_Datatype type, int root, MPI_Comm comm) {
    int size, me, at = 0;
    MPI_Comm_size(comm, &size);
    MPI_Comm_rank(comm, &me);
    int counts[64], places[64], same[64], apart[64];
    MPI_Count many[64], alike[64];
    MPI_Aint far[64], distances[64];
    for (int k = 0; k < size; k++) {
        counts[k] = random_below(3) == 0 ? 0 : n + random_below(2);
        places[k] = at;
        at += counts[k] + random_below(4);
        same[k] = n;
        apart[k] = k * (n + 1);
        many[k] = counts[k], far[k] = places[k], alike[k] = same[k], distances[k] = apart[k];
    }
    begin();
    MPI_Allgatherv(from, counts[me], type, expected, counts, places, type, comm);
    compare("allgatherv", collwise_allgatherv(from, counts[me], type, into, counts, places, type, comm), n);
    begin();
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, expected, counts, places, type, comm);
    compare("allgatherv in place", collwise_allgatherv_c(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, into, many, far, type, comm), n);
    begin();
    MPI_Gatherv(from, counts[me], type, expected, counts, places, type, root, comm);
    compare("gatherv", collwise_gatherv(from, counts[me], type, into, counts, places, type, root, comm), n);
    begin();
    MPI_Gatherv(from, counts[me], type, expected, counts, places, type, root, comm);
    compare("gatherv_c", collwise_gatherv_c(from, counts[me], type, into, many, far, type, root, comm), n);
    begin();
    MPI_Scatterv(from, counts, places, type, expected, counts[me], type, root, comm);
    compare("scatterv", collwise_scatterv(from, counts, places, type, into, counts[me], type, root, comm), n);
    begin();
    MPI_Scatterv(from, counts, places, type, expected, counts[me], type, root, comm);
    compare("scatterv_c", collwise_scatterv_c(from, many, far, type, into, counts[me], type, root, comm), n);
    begin();
    MPI_Alltoallv(from, same, apart, type, expected, same, apart, type, comm);
    compare("alltoallv", collwise_alltoallv(from, same, apart, type, into, same, apart, type, comm), n);
    begin();
    MPI_Alltoallv(from, same, apart, type, expected, same, apart, type, comm);
    compare("alltoallv_c", collwise_alltoallv_c(from, alike, distances, type, into, alike, distances, type, comm), n);
}

static void begun(int n, MPI_Op op, int root, MPI_Comm comm) {
    collwise_request request;
    int is_over = 0, code;
    begin();
    MPI_Bcast(expected, n, MPI_INT, root, comm);
    code = collwise_ibcast(into, n, MPI_INT, root, comm, &request);
    compare("ibcast", code ? code : collwise_wait(&request), n);
    begin();
    MPI_Allreduce(from, expected, n, MPI_INT, op, comm);
    code = collwise_iallreduce(from, into, n, MPI_INT, op, comm, &request);
    while (!code && !is_over) code = collwise_test(&request, &is_over);
    compare("iallreduce", code, n);
    begin();
    code = collwise_ibarrier(comm, &request);
    compare("ibarrier", code ? code : collwise_wait(&request), n);
    compare("wait for nothing", is_over ? collwise_wait(&request) : 1, 0);
}

/* What has no items has any type, so that ranks remember different calls, or none; some libraries send messages for it, which all ranks must take or none. */
static void nothing(MPI_Comm comm) {
    int size;
    MPI_Datatype empty;
    MPI_Comm_size(comm, &size);
    MPI_Type_contiguous(0, MPI_INT, &empty);
    MPI_Type_commit(&empty);
    for (int k = 0; k < 30; k++) {
        int kind = (k + rank) % 3, root = k % size;
        begin();
        compare("bcast of nothing", collwise_bcast(into, 0, kind == 0 ? empty : kind == 1 ? MPI_DOUBLE : MPI_INT, root, comm), 0);
        begin();
        MPI_Bcast(expected, 2, MPI_INT, root, comm);
        compare("bcast after it", collwise_bcast(into, 2, MPI_INT, root, comm), 2);
    }
    MPI_Type_free(&empty);
}

static void all(MPI_Comm comm, MPI_Op not_commuting) {
    const int sizes[] = {0, 1, 7, 130, MOST};
    int size;
    MPI_Comm_size(comm, &size);
    nothing(comm);
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        int n = sizes[k], root = random_below(size);
        compare("barrier", (begin(), collwise_barrier(comm)), 0);
        blocks(n, MPI_INT, root, comm);
        blocks(n, gaps, root, comm);
        lists(n, MPI_INT, root, comm);
        lists(n, gaps, root, comm);
        reductions(n, MPI_INT, MPI_SUM, root, comm);
        reductions(n, MPI_INT, MPI_BXOR, root, comm);
        reductions(n, MPI_INT, not_commuting, root, comm);
        begun(n, MPI_SUM, root, comm);
        begun(n, not_commuting, root, comm);
    }
}

/* Between two groups: rank 0 is the root. */
static void between_groups(void) {
    MPI_Comm local, inter;
    int upper = rank >= ranks / 2;
    MPI_Comm_split(MPI_COMM_WORLD, upper, rank, &local);
    MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, upper ? 0 : ranks / 2, 0, &inter);
    int root = upper ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
    /* what has no items has any type; some libraries send a message for it all the same, which all ranks must take or none */
    for (int k = 0; k < 6; k++) {
        collwise_barrier(inter);
        begin();
        compare("bcast of nothing between groups", collwise_bcast(into, 0, upper && k % 2 ? MPI_DOUBLE : MPI_INT, root, inter), 0);
    }
    begin();
    MPI_Bcast(expected, 100, MPI_INT, root, inter);
    compare("bcast between groups", collwise_bcast(into, 100, MPI_INT, root, inter), 100);
    begin();
    MPI_Allreduce(from, expected, 100, MPI_INT, MPI_SUM, inter);
    compare("allreduce between groups", collwise_allreduce(from, into, 100, MPI_INT, MPI_SUM, inter), 100);
    begin();
    MPI_Allgather(from, 9, MPI_INT, expected, 9, MPI_INT, inter);
    compare("allgather between groups", collwise_allgather(from, 9, MPI_INT, into, 9, MPI_INT, inter), 9);
    begin();
    MPI_Gather(from, 9, MPI_INT, expected, 9, MPI_INT, root, inter);
    compare("gather between groups", collwise_gather(from, 9, MPI_INT, into, 9, MPI_INT, root, inter), 9);
    int counts[64], places[64]; /* of the other group */
    for (int k = 0; k < 64; k++) counts[k] = 9, places[k] = 9 * k;
    begin();
    MPI_Allgatherv(from, 9, MPI_INT, expected, counts, places, MPI_INT, inter);
    compare("allgatherv between groups", collwise_allgatherv(from, 9, MPI_INT, into, counts, places, MPI_INT, inter), 9);
    begin();
    MPI_Alltoall(from, 9, MPI_INT, expected, 9, MPI_INT, inter);
    compare("alltoall between groups", collwise_alltoall(from, 9, MPI_INT, into, 9, MPI_INT, inter), 9);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&local);
}

int main(int argc, char **argv) {
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    int code = collwise_init(argc > 1 ? argv[1] : NULL);
    if (code) fprintf(stderr, "%s\n", collwise_strerror(code)), MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    room = (size_t)ranks * (MOST + 4) * 12;
    from = malloc(room), into = malloc(room), expected = malloc(room);
    MPI_Datatype three;
    MPI_Type_vector(2, 1, 2, MPI_INT, &three); /* two numbers with a gap between */
    MPI_Type_create_resized(three, 0, 12, &gaps);
    MPI_Type_commit(&gaps);
    MPI_Op not_commuting;
    MPI_Op_create(after, 0, &not_commuting);
    for (int round = 0; round < 2; round++) all(MPI_COMM_WORLD, not_commuting); /* the first ones have no plans */
    MPI_Comm some;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 3 == 0, -rank, &some);
    all(some, not_commuting);
    MPI_Comm_free(&some);
    all(MPI_COMM_SELF, not_commuting);
    if (ranks > 1) between_groups();
    MPI_Op_free(&not_commuting);
    MPI_Type_free(&gaps);
    MPI_Type_free(&three);
    int faults;
    unsigned sums;
    MPI_Reduce(&sum, &sums, 1, MPI_UNSIGNED, MPI_BXOR, 0, MPI_COMM_WORLD);
    MPI_Reduce(&wrong, &faults, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("%d calls, %d wrong, results %08x\n", calls, faults, sums);
    MPI_Finalize();
    return wrong > 0;
}
