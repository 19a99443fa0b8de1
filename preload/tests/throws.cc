// An error handler that throws, through MPI's C functions; then rank 0 waits for rank 1.
#include <mpi.h>
#include <unistd.h>

static void fail(MPI_Comm *, int *code, ...) { throw *code; }

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(fail, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    int value = 0, caught = 0;
    try {
        MPI_Send(&value, 1, MPI_INT, 99, 0, MPI_COMM_WORLD);
    } catch (int) {
        caught = 1;
    }
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) usleep(400000);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return caught ? 0 : 1;
}
