/* On rank 0 three threads wait in MPI at once for messages that the other ranks send late. */
#include <mpi.h>
#include <pthread.h>
#include <unistd.h>

enum { THREADS = 3, ROUNDS = 5 };

static void *receive(void *comm) {
    int value;
    for (int k = 0; k < ROUNDS; k++) MPI_Recv(&value, 1, MPI_INT, 1, 0, *(MPI_Comm *)comm, MPI_STATUS_IGNORE);
    return NULL;
}

int main(int argc, char **argv) {
    int rank, level;
    MPI_Comm comms[THREADS];
    pthread_t threads[THREADS];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    if (level < MPI_THREAD_MULTIPLE) MPI_Abort(MPI_COMM_WORLD, 3);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int t = 0; t < THREADS; t++) MPI_Comm_dup(MPI_COMM_WORLD, &comms[t]);
    if (rank == 0) {
        for (int t = 0; t < THREADS; t++) pthread_create(&threads[t], NULL, receive, &comms[t]);
        for (int t = 0; t < THREADS; t++) pthread_join(threads[t], NULL);
    }
    for (int k = 0; rank == 1 && k < ROUNDS; k++) {
        usleep(50000);
        for (int t = 0; t < THREADS; t++) MPI_Send(&k, 1, MPI_INT, 0, 0, comms[t]);
    }
    MPI_Finalize();
    return 0;
}
