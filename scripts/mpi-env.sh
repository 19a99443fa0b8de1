# To be sourced: MPIRUN, the launcher with what lets more ranks than cores run well.
# Ranks that wait must yield; root in a container is as good as anybody.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1
[ -d /usr/lib64/openmpi/bin ] && PATH=$PATH:/usr/lib64/openmpi/bin
MPIRUN=${MPIEXEC:-$(command -v mpirun.openmpi || echo mpirun)}
MPIRUN="$MPIRUN --oversubscribe"
