/* Legal programs that are not usual, by the word they are given; exit 0 if all is as without a preloaded library. Two ranks. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, wrong;

static void expect(int fact, const char *text) {
    if (!fact) {
        fprintf(stderr, "rank %d: %s\n", rank, text);
        wrong = 1;
    }
}

/* MPI_Comm_dup of the world fails: an attribute cannot be copied. */
static int copies;

static int refuse(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag) {
    copies++;
    return MPI_ERR_OTHER;
}

static void attribute(void) {
    int key;
    MPI_Comm_create_keyval(refuse, MPI_COMM_NULL_DELETE_FN, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_WORLD, key, NULL);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* In an inter-communicator rank 0 of the others is no root: what only the root says is null there. */
static void groups(void) {
    MPI_Comm self, inter;
    int value = rank, root = rank == 0 ? MPI_ROOT : 0, counts[] = {1, 1 << 20}, at[] = {0, 0}, got[2];
    MPI_Comm_dup(MPI_COMM_SELF, &self);
    MPI_Intercomm_create(self, 0, MPI_COMM_WORLD, 1 - rank, 0, &inter);
    MPI_Bcast(&value, 1, MPI_INT, root, inter);
    expect(value == 0, "the broadcast");
    MPI_Gather(&value, rank == 0 ? 0 : 1, rank == 0 ? MPI_DATATYPE_NULL : MPI_INT, got, rank == 0 ? 1 : 0, rank == 0 ? MPI_INT : MPI_DATATYPE_NULL, root, inter);
    MPI_Scatterv(got, counts, at, rank == 0 ? MPI_INT : MPI_DATATYPE_NULL, &value, rank == 0 ? 0 : 1, rank == 0 ? MPI_DATATYPE_NULL : MPI_INT, root, inter);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&self);
}

/* Three ranks: a group of two with the root, which leaves the other with nothing to say; lists as long as the own group. */
static void nobody(void) {
    MPI_Comm local, inter;
    int value = rank, counts[2] = {1, 1}, all[2] = {rank, rank}, got[2];
    int *one = malloc(2 * sizeof *one);
    one[0] = 2;
    one[1] = 1 << 20; /* beyond the list of a group of one */
    MPI_Comm_split(MPI_COMM_WORLD, rank == 2, rank, &local);
    MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, rank == 2 ? 0 : 2, 0, &inter);
    int root = rank == 2 ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
    /* a number that means nothing; null types and buffers are refused even there */
    MPI_Bcast(&value, rank == 1 ? 5 : 1, MPI_INT, root, inter);
    expect(rank == 1 || value == 0, "the broadcast");
    MPI_Reduce(&value, got, rank == 1 ? 5 : 1, MPI_INT, MPI_SUM, root, inter);
    MPI_Reduce_scatter(all, got, rank == 2 ? one : counts, MPI_INT, MPI_SUM, inter);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&local);
}

/* A type of 3 GiB: its size is no int. */
static void large(void) {
    MPI_Datatype page, type;
    char byte;
    MPI_Type_contiguous(1 << 20, MPI_BYTE, &page);
    MPI_Type_contiguous(3 << 10, page, &type);
    MPI_Type_commit(&type);
    MPI_Bcast(&byte, 1, type, 0, MPI_COMM_SELF);
    MPI_Type_free(&type);
    MPI_Type_free(&page);
}

/* A call that fails is no call, and the program's own error handler stays. */
static int handled;

static void count(MPI_Comm *comm, int *code, ...) { handled++; }

static void failing(void) {
    MPI_Errhandler own;
    int value = 0;
    MPI_Comm_create_errhandler(count, &own);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, own);
    MPI_Send(&value, 1, MPI_INT, 99, 0, MPI_COMM_WORLD);
    expect(handled == 1, "its error handler");
}

int main(int argc, char **argv) {
    const char *word = argc > 1 ? argv[1] : "";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (!strcmp(word, "attribute")) attribute();
    if (!strcmp(word, "groups")) groups();
    if (!strcmp(word, "nobody")) nobody();
    if (!strcmp(word, "large")) large();
    if (!strcmp(word, "failing")) failing();
    if (!strcmp(word, "elsewhere") && chdir("/") != 0) wrong = 1;
    if (!strcmp(word, "full") && freopen("/dev/full", "w", stderr) == NULL) wrong = 1;
    MPI_Finalize();
    expect(copies == 0, "its attribute was copied");
    expect(handled <= 1, "its error handler was called again");
    if (rank == 0) printf("done %s\n", word);
    return wrong;
}
