/* A program that starts another one, which is itself. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    MPI_Comm parent, other;
    int value = 7;
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    if (parent == MPI_COMM_NULL) {
        char preload[4096] = "LD_PRELOAD=", *arguments[] = {preload, argv[0], NULL};
        strcat(preload, getenv("LD_PRELOAD"));
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Comm_spawn("/usr/bin/env", arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other, MPI_ERRCODES_IGNORE);
        MPI_Bcast(&value, 1, MPI_INT, MPI_ROOT, other);
    } else {
        other = parent;
        MPI_Bcast(&value, 1, MPI_INT, 0, other);
    }
    MPI_Comm_disconnect(&other);
    MPI_Finalize();
    return value == 7 ? 0 : 1;
}
