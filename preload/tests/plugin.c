/* With a word: a program without MPI, which loads this file as a plugin that keeps MPI to itself. */
#ifdef PLUGIN
#include <mpi.h>

int plugin(void) {
    int value = 0;
    MPI_Init(NULL, NULL);
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    return MPI_Finalize();
}
#else
#include <dlfcn.h>
#include <stdio.h>

int main(void) {
    void *library = dlopen("./plugin.so", RTLD_NOW | RTLD_LOCAL);
    int (*plugin)(void) = library ? (int (*)(void))dlsym(library, "plugin") : NULL;
    if (!plugin) fprintf(stderr, "%s\n", dlerror());
    return plugin ? plugin() : 1;
}
#endif
