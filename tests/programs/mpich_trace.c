/* Preloaded under MPICH over UCX: rank 0 says how many bytes it sends in each message. What is not contiguous counts otherwise. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

void *ucp_tag_send_nbx(void *to, const void *buffer, size_t count, uint64_t tag, const void *parameters)
{
    static void *(*next)(void *, const void *, size_t, uint64_t, const void *);
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "ucp_tag_send_nbx");
    const char *rank = getenv("PMI_RANK");
    if (rank && atoi(rank) == 0) {
        printf("sends %zu\n", count);
        fflush(stdout);
    }
    return next(to, buffer, count, tag, parameters);
}
