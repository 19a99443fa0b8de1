/* What MPI has for C and Fortran programs only: pairs, and the operations that find where the least and the greatest values are. */
#include <mpi.h>

MPI_Datatype pair_type(int which)
{
    switch (which) {
    case 0: return MPI_2INT;
    case 1: return MPI_DOUBLE_INT;
    case 2: return MPI_FLOAT_INT;
    case 3: return MPI_SHORT_INT;
    case 4: return MPI_LONG_INT;
    case 5: return MPI_2REAL;
    case 6: return MPI_2DOUBLE_PRECISION;
    default: return MPI_2INTEGER;
    }
}

MPI_Op location(int greatest)
{
    return greatest ? MPI_MAXLOC : MPI_MINLOC;
}
