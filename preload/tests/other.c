/* An MPI library that nobody knows, with handles of 64 bits, and a program on it: exit 0 if arguments arrive as they were given. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void *Handle;
#define WORLD ((Handle)0xfedcba9876543210)
#define INT ((Handle)0x8000000012345678)

int MPI_Init(int *argc, char ***argv);
int MPI_Bcast(void *buffer, int count, Handle type, int root, Handle comm);
int MPI_Sendrecv(const void *b, int n, Handle t, int dest, int tag, void *rb, int rn, Handle rt, int source, int rtag, Handle c, void *s);
int MPI_Finalize(void);

#ifdef LIBRARY
#define BOTH(name) __attribute__((alias("P" #name)))

int PMPI_Get_library_version(char *text, int *length) {
    strcpy(text, getenv("OTHER_VERSION") ? getenv("OTHER_VERSION") : "Other MPI 7.1\nbuilt by hand");
    *length = strlen(text);
    return 0;
}
int PMPI_Init(int *argc, char ***argv) { return 0; }
int PMPI_Bcast(void *buffer, int count, Handle type, int root, Handle comm) {
    memset(buffer, 7, count);
    return type == INT && comm == WORLD && root == 3 ? 0 : 1;
}
int PMPI_Sendrecv(const void *b, int n, Handle t, int dest, int tag, void *rb, int rn, Handle rt, int source, int rtag, Handle c, void *s) {
    memcpy(rb, b, n);
    return t == INT && rt == INT && c == WORLD && s == rb && dest == 1 && tag == 2 && rn == n && source == 4 && rtag == 5 ? 0 : 1;
}
int PMPI_Finalize(void) { return 0; }
int PMPI_Abi_get_version(int *major, int *minor) {
    *major = getenv("OTHER_ABI") ? atoi(getenv("OTHER_ABI")) : -1;
    *minor = 0;
    return 0;
}
BOTH(MPI_Init) int MPI_Init(int *argc, char ***argv);
BOTH(MPI_Bcast) int MPI_Bcast(void *buffer, int count, Handle type, int root, Handle comm);
BOTH(MPI_Sendrecv) int MPI_Sendrecv(const void *b, int n, Handle t, int dest, int tag, void *rb, int rn, Handle rt, int source, int rtag, Handle c, void *s);
BOTH(MPI_Finalize) int MPI_Finalize(void);
#else
int main(int argc, char **argv) {
    char sent[8] = {0}, got[8] = {0};
    int wrong = MPI_Init(&argc, &argv);
    wrong |= MPI_Bcast(sent, 8, INT, 3, WORLD);
    wrong |= MPI_Sendrecv(sent, 8, INT, 1, 2, got, 8, INT, 4, 5, WORLD, got);
    wrong |= MPI_Finalize();
    printf("%s\n", !wrong && got[7] == 7 ? "delivered" : "wrong");
    return wrong;
}
#endif
