/* What is wrong gets the MPI library's own codes, and the communicator's error handler is called once for each; then all goes on. Takes a policy. */
#include <collwise.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static int rank, ranks, wrong, handled;

static void expect(int fact, const char *text) {
    if (!fact) {
        fprintf(stderr, "rank %d: %s\n", rank, text);
        wrong = 1;
    }
}

static void count(MPI_Comm *comm, int *code, ...) {
    (void)comm;
    (void)code;
    handled++;
}

/* One call and its namesake: the same class of error, each told once. */
static void same(const char *what, int ours, int theirs) {
    int class_of_ours, class_of_theirs;
    MPI_Error_class(ours, &class_of_ours);
    MPI_Error_class(theirs, &class_of_theirs);
    if (class_of_ours != class_of_theirs || handled != 2 || ours == MPI_SUCCESS) {
        fprintf(stderr, "rank %d: %s: class %d and %d, told %d times\n", rank, what, class_of_ours, class_of_theirs, handled);
        wrong = 1;
    }
    handled = 0;
}

static void *sums(void *comm) {
    for (int k = 0; k < 200; k++) {
        int value = rank, sum = -1;
        collwise_allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, *(MPI_Comm *)comm);
        if (sum != ranks * (ranks - 1) / 2) wrong = 1;
    }
    return NULL;
}

int main(int argc, char **argv) {
    int provided, values[200] = {0}, got[200];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int code = collwise_init("no/such/policy.toml");
    expect(code != MPI_SUCCESS && strstr(collwise_strerror(code), "no/such/policy.toml"), "a missing policy is an error that names it");
    expect(collwise_init(argv[1]) == MPI_SUCCESS, "the policy");

    MPI_Comm comm;
    MPI_Errhandler handler;
    MPI_Datatype pair;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_create_errhandler(count, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    for (int k = 0; k < 3; k++) collwise_barrier(comm); /* it has plans */

    same("a root that is none", collwise_bcast(values, 1, MPI_INT, ranks, comm), MPI_Bcast(values, 1, MPI_INT, ranks, comm));
    /* of no bytes, which not all need say alike: some of a type that has none (which Open MPI's own takes for a message) */
    MPI_Datatype empty;
    MPI_Type_contiguous(0, MPI_INT, &empty);
    MPI_Type_commit(&empty);
    for (int k = 0; k < 4; k++) {
        expect(collwise_bcast(values, rank % 2 ? 3 : 0, rank % 2 ? empty : MPI_INT, k % ranks, comm) == MPI_SUCCESS, "no bytes");
        values[0] = rank == k % ranks ? k : -1;
        expect(collwise_bcast(values, 1, MPI_INT, k % ranks, comm) == MPI_SUCCESS && values[0] == k, "what comes after no bytes");
    }
    MPI_Type_free(&empty);
    /* of nothing, which is remembered */
    for (int k = 0; k < 3; k++) {
        expect(collwise_bcast(values, 0, MPI_INT, 0, comm) == MPI_SUCCESS && collwise_bcast(NULL, 0, MPI_INT, 0, comm) == MPI_SUCCESS, "no items");
        same("no items from a root that is none", collwise_bcast(values, 0, MPI_INT, ranks, comm), MPI_Bcast(values, 0, MPI_INT, ranks, comm));
#ifdef OPEN_MPI /* MPICH 4.0 ends the program */
        same("no items of no datatype", collwise_bcast(values, 0, MPI_DATATYPE_NULL, 0, comm), MPI_Bcast(values, 0, MPI_DATATYPE_NULL, 0, comm));
#endif
        int ours = collwise_bcast(MPI_IN_PLACE, 0, MPI_INT, 0, comm), theirs = MPI_Bcast(MPI_IN_PLACE, 0, MPI_INT, 0, comm);
        expect((ours == MPI_SUCCESS) == (theirs == MPI_SUCCESS) && handled % 2 == 0, "no items in place");
        handled = 0;
    }
    same("a negative count", collwise_bcast(values, -1, MPI_INT, 0, comm), MPI_Bcast(values, -1, MPI_INT, 0, comm));
    same("no datatype", collwise_allreduce(values, got, 1, MPI_DATATYPE_NULL, MPI_SUM, comm), MPI_Allreduce(values, got, 1, MPI_DATATYPE_NULL, MPI_SUM, comm));
    same("no operation", collwise_allreduce(values, got, 1, MPI_INT, MPI_OP_NULL, comm), MPI_Allreduce(values, got, 1, MPI_INT, MPI_OP_NULL, comm));
    same("sums of what has none", collwise_reduce(values, got, 1, pair, MPI_SUM, 0, comm), MPI_Reduce(values, got, 1, pair, MPI_SUM, 0, comm));
    MPI_Datatype open;
    MPI_Type_contiguous(2, MPI_INT, &open);
    same("a datatype that is not committed", collwise_bcast(values, 1, open, 0, comm), MPI_Bcast(values, 1, open, 0, comm));
    MPI_Type_free(&open);
    same("blocks that come in place", collwise_allgather(values, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, comm),
         MPI_Allgather(values, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, comm));
    same("a negative block", collwise_allgather(values, 1, MPI_INT, got, -1, MPI_INT, comm), MPI_Allgather(values, 1, MPI_INT, got, -1, MPI_INT, comm));
    /* what MPI forbids and libraries let through in part, a result in the place of what is combined: on all ranks or one, in a first call and in known ones */
    for (int k = 0; k < 3; k++) {
        int own[4] = {rank, rank, rank, rank}, other[4];
        int *sum = k == 1 && rank > 0 ? other : own;
        collwise_allreduce(own, sum, 4, MPI_INT, MPI_SUM, comm);
        for (int i = 0; i < 4; i++) expect(sum[i] == ranks * (ranks - 1) / 2, "sums in the place of what is combined");
    }
    collwise_request request;
    same("one that is begun", collwise_ibcast(values, 1, MPI_INT, -7, comm, &request), MPI_Bcast(values, 1, MPI_INT, -7, comm));
    expect(request == NULL, "what could not be begun has no request");

    /* no communicator: the world's handler is told */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    same("no communicator", collwise_barrier(MPI_COMM_NULL), MPI_Barrier(MPI_COMM_NULL));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);

    char text[12];
    expect(collwise_explain("bcast", 1000, 0, comm, text, sizeof text, NULL) == MPI_SUCCESS && strlen(text) == sizeof text - 1, "a text is cut");
    code = collwise_explain("broadcast", 1000, 0, comm, text, sizeof text, NULL);
    expect(code != MPI_SUCCESS && strstr(collwise_strerror(code), "broadcast"), "a collective that is none");
    expect(strlen(collwise_strerror(MPI_ERR_TRUNCATE)) > 0, "MPI's words");

    /* threads, each with a communicator of its own */
    pthread_t threads[3];
    MPI_Comm own[3];
    for (int k = 0; k < 3; k++) MPI_Comm_dup(MPI_COMM_WORLD, &own[k]);
    if (provided == MPI_THREAD_MULTIPLE) {
        for (int k = 0; k < 3; k++) pthread_create(&threads[k], NULL, sums, &own[k]);
        for (int k = 0; k < 3; k++) pthread_join(threads[k], NULL);
    }
    for (int k = 0; k < 3; k++) MPI_Comm_free(&own[k]);

    sums(&comm);
    expect(collwise_finalize() == MPI_SUCCESS, "the end");
    sums(&comm); /* the library's own */
    expect(handled == 0, "nothing else was told");
    MPI_Comm_free(&comm);
    MPI_Type_free(&pair);
    MPI_Errhandler_free(&handler);
    MPI_Finalize();
    if (rank == 0 && !wrong) printf("all as MPI has it\n");
    return wrong;
}
