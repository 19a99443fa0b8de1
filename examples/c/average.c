/* Adaptive collectives from C.

       mpicc average.c -o average $(pkg-config --cflags --libs collwise)
       mpirun -n 8 ./average policy.toml
*/
#include <collwise.h>
#include <stdio.h>

/* Ends the program with the reason of a code that is an error. */
static void must(int code, const char *what) {
    if (code != MPI_SUCCESS) {
        fprintf(stderr, "%s: %s\n", what, collwise_strerror(code));
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    /* without a name the policy of COLLWISE_POLICY; without that the library's own collectives */
    must(collwise_init(argc > 1 ? argv[1] : NULL), "read the policy");

    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);

    /* rank 0 knows how many values there are */
    int count = rank == 0 ? 1000 : 0;
    must(collwise_bcast(&count, 1, MPI_INT, 0, MPI_COMM_WORLD), "broadcast");

    double sum = 0;
    for (int k = 0; k < count; k++) sum += rank + k;
    must(collwise_allreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD), "add up");

    /* one that is begun, and gets further in collwise_test and collwise_wait */
    int largest = 0, is_over = 0;
    collwise_request request;
    must(collwise_iallreduce(&rank, &largest, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &request), "begin the maximum");
    must(collwise_test(&request, &is_over), "test the maximum");
    must(collwise_wait(&request), "end the maximum");

    if (rank == 0) {
        char what[200];
        double seconds;
        must(collwise_explain("bcast", 1 << 20, 0, MPI_COMM_WORLD, what, sizeof what, &seconds), "explain");
        printf("average %g, largest rank %d\na broadcast of 1 MiB: %s", sum / ranks / count, largest, what);
        if (seconds >= 0) printf(", about %g s", seconds);
        printf("\n");
    }
    must(collwise_finalize(), "finish");
    MPI_Finalize();
    return 0;
}
