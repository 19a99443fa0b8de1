/* A library to be preloaded that wraps MPI's functions by the names behind their names, as some profilers do, and counts the calls that come
 * through it. Handles are words here: it is built without an MPI library. */
#define _GNU_SOURCE
#include <dlfcn.h>

typedef void *handle;
static int calls;

/* how many calls came through here */
int captured(void) { return calls; }

#define WRAP(name, declared, passed) \
    int name declared { \
        int (*own) declared = (int (*) declared)dlsym(RTLD_NEXT, #name); \
        calls++; \
        return own passed; \
    }

WRAP(PMPI_Bcast, (void *b, int n, handle t, int root, handle c), (b, n, t, root, c))
WRAP(PMPI_Isend, (void *b, int n, handle t, int to, int tag, handle c, void *r), (b, n, t, to, tag, c, r))
WRAP(PMPI_Irecv, (void *b, int n, handle t, int from, int tag, handle c, void *r), (b, n, t, from, tag, c, r))
WRAP(PMPI_Wait, (void *r, void *s), (r, s))
WRAP(PMPI_Waitany, (int n, void *r, int *which, void *s), (n, r, which, s))
WRAP(PMPI_Allreduce, (void *b, void *into, int n, handle t, handle op, handle c), (b, into, n, t, op, c))
WRAP(PMPI_Comm_get_attr, (handle c, int key, void *value, int *found), (c, key, value, found))
WRAP(PMPI_Get_library_version, (char *text, int *length), (text, length))
