/* Preloaded under MPICH over UCX (Debian's): a rank that waits polls without ever yielding its processor, so that tests with more ranks than processors
   take minutes. Here it yields whenever a poll found nothing. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <stdlib.h>

unsigned ucp_worker_progress(void *worker)
{
    static unsigned (*progress)(void *);
    if (!progress)
        *(void **)&progress = dlsym(RTLD_NEXT, "ucp_worker_progress");
    if (!progress) { // MPI came with a module that was opened, as mpi4py's: its libraries are in no one else's sight
        void *ucp = dlopen("libucp.so.0", RTLD_LAZY | RTLD_NOLOAD);
        if (ucp)
            *(void **)&progress = dlsym(ucp, "ucp_worker_progress");
    }
    if (!progress)
        abort();
    unsigned events = progress(worker);
    if (events == 0)
        sched_yield();
    return events;
}
