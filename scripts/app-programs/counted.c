/* Time by count: each basic block of a program that is compiled with -fsanitize-coverage=trace-pc takes FLOPS operations of a simulated
   processor, so that all processors are alike and a run takes the same whenever it is made. Also what SimGrid 3.32 lacks of MPI for mpiP. */
#include <smpi/mpi.h>
#include <string.h>

#define FLOPS 4
/* blocks that are charged at once */
#define BLOCKS 2048

void smpi_execute_flops(double flops);
void __sanitizer_cov_trace_pc(void);

void __sanitizer_cov_trace_pc(void)
{
    static unsigned blocks;
    if (++blocks == BLOCKS) {
        blocks = 0;
        smpi_execute_flops((double)BLOCKS * FLOPS);
    }
}

/* its Fortran statuses have the fields of those of C, one beside the other */
#define FIELDS 4

int counted_Status_c2f(const MPI_Status *status, int *fortran);
int counted_Status_f2c(const int *fortran, MPI_Status *status);

int counted_Status_c2f(const MPI_Status *status, int *fortran)
{
    memcpy(fortran, status, FIELDS * sizeof(int));
    return MPI_SUCCESS;
}

int counted_Status_f2c(const int *fortran, MPI_Status *status)
{
    memset(status, 0, sizeof *status);
    memcpy(status, fortran, FIELDS * sizeof(int));
    return MPI_SUCCESS;
}
