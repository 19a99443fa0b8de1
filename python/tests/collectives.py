"""Every adaptive collective beside mpi4py's own, under ``mpirun``: ``collectives.py POLICY``."""

import sys
from array import array

import numpy as np
from mpi4py import MPI

import collwise
import collwise.mpi

collwise.mpi.init(sys.argv[1])
world = MPI.COMM_WORLD
n, me = world.size, world.rank

for comm in (world, world.Split(me % 2, -me)):
    n, me = comm.size, comm.rank
    adaptive = collwise.mpi.Adaptive(comm)
    for count in (0, 1, 1000, 20000):
        for root in range(n):
            given = np.arange(count, dtype="d") + me
            got, expected = np.zeros(count), np.zeros(count)
            same = lambda: np.testing.assert_array_equal(got, expected)

            got[:], expected[:] = given, given
            adaptive.Bcast(got, root), comm.Bcast(expected, root), same()
            adaptive.Allreduce(given, got), comm.Allreduce(given, expected), same()
            adaptive.Allreduce(MPI.IN_PLACE, got, MPI.MAX), comm.Allreduce(MPI.IN_PLACE, expected, MPI.MAX), same()
            adaptive.Reduce(given, got if me == root else None, MPI.SUM, root)
            comm.Reduce(given, expected if me == root else None, MPI.SUM, root), same()
            adaptive.Barrier()

            blocks = np.arange(count * n, dtype="i") * (me + 1)
            got, expected = np.zeros(count * n, dtype="i"), np.zeros(count * n, dtype="i")
            adaptive.Alltoall(blocks, got), comm.Alltoall(blocks, expected), same()
            adaptive.Allgather(blocks[:count], got), comm.Allgather(blocks[:count], expected), same()
            adaptive.Gather(blocks[:count], got if me == root else None, root)
            comm.Gather(blocks[:count], expected if me == root else None, root), same()
            got, expected = np.zeros(count, dtype="i"), np.zeros(count, dtype="i")
            adaptive.Scatter(blocks if me == root else None, got, root)
            comm.Scatter(blocks if me == root else None, expected, root), same()
            adaptive.Reduce_scatter_block(blocks, got), comm.Reduce_scatter_block(blocks, expected), same()

    # other buffers than numpy's
    plain, explicit = array("l", [me] * 5), bytearray(bytes([me]) * 7)
    adaptive.Bcast(plain, n - 1)
    adaptive.Bcast([explicit, 7, MPI.BYTE], n - 1)
    assert plain == array("l", [n - 1] * 5) and explicit == bytes([n - 1]) * 7

    words, seconds = collwise.mpi.Adaptive(comm).explain("bcast", 1 << 20)
    assert n == 1 or (words and seconds > 0), (words, seconds)

try:
    adaptive.explain("broadcast", 1)
    raise SystemExit("no error")
except collwise.Error as error:
    assert "broadcast" in str(error)
world.Set_errhandler(MPI.ERRORS_RETURN)
try:
    collwise.mpi.Adaptive(world).Bcast(np.zeros(1), world.size)
    raise SystemExit("no error")
except MPI.Exception as error:
    assert error.Get_error_class() == MPI.ERR_ROOT
collwise.mpi.finalize()
print("all as mpi4py has it", flush=True)
