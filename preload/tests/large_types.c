/* Datatypes that calls with large counts made (MPI 4), of which MPI_Type_get_envelope says nothing but an error. */
#include <mpi.h>
#include <stdio.h>

static void travels(MPI_Datatype type, int rank, const char *name)
{
    int sent[8], expected = 1;
    for (int i = 0; i < 8; i++)
        sent[i] = rank == 0 ? i + 1 : 0;
    MPI_Type_commit(&type);
    MPI_Bcast(sent, 1, type, 0, MPI_COMM_WORLD);
    for (int i = 0; i < 4; i++)
        expected &= sent[2 * i] == 2 * i + 1 && (rank == 0 || sent[2 * i + 1] == 0);
    printf("%s %s\n", name, expected ? "arrives" : "is WRONG");
    MPI_Type_free(&type);
}

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Datatype vector, inner, outer;
    MPI_Type_vector_c(4, 1, 2, MPI_INT, &vector);
    travels(vector, rank, "a vector");
    /* one within another that older calls describe */
    MPI_Type_vector_c(4, 1, 2, MPI_INT, &inner);
    MPI_Type_dup(inner, &outer);
    MPI_Type_free(&inner);
    travels(outer, rank, "its copy");
    MPI_Type_vector_c(4, 1, 2, MPI_INT, &inner);
    MPI_Type_contiguous(1, inner, &outer);
    MPI_Type_free(&inner);
    travels(outer, rank, "one of it");
    MPI_Finalize();
    return 0;
}
