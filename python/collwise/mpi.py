"""Adaptive collectives on mpi4py's communicators.

The functions of the C library, called with the buffers that mpi4py's upper-case methods take.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any, Union

from mpi4py import MPI

from . import Error, command

__all__ = ["Adaptive", "finalize", "init"]

# handles are pointers under Open MPI, and 32-bit numbers under MPICH
_Handle = ctypes.c_void_p if MPI._sizeof(MPI.Comm) == ctypes.sizeof(ctypes.c_void_p) else ctypes.c_int


def _handle(thing: Any) -> ctypes._SimpleCData:
    return _Handle.from_address(MPI._addressof(thing))


def _load() -> ctypes.CDLL:
    kind = "openmpi" if "Open MPI" in MPI.Get_library_version() else "mpich"
    name = f"libcollwise-{kind}.so"
    named = os.environ.get("COLLWISE_LIBRARY")
    places = [Path(named)] if named else [Path(command()).resolve().parent / beside / file for beside in ("../lib", ".") for file in (name, "libcollwise_c.so")]
    found = next((place for place in places if place.exists()), None)
    if found is None:
        raise Error(f"there is no {name} beside the command collwise: make install writes it, and COLLWISE_LIBRARY may name it")
    library = ctypes.CDLL(str(found))
    library.collwise_strerror.restype = ctypes.c_char_p
    return library


_library: Union[ctypes.CDLL, None] = None


def _call(name: str, *arguments: Any) -> None:
    global _library
    if _library is None:
        _library = _load()
    code = getattr(_library, name)(*arguments)
    if code:
        if name in ("collwise_init", "collwise_explain"):
            raise Error(_library.collwise_strerror(code).decode(errors="replace"))
        raise MPI.Exception(code)


def init(policy: Union[str, Path, None] = None) -> None:
    """Uses this policy from now on, on all ranks alike; without one that which ``COLLWISE_POLICY`` names."""
    _call("collwise_init", None if policy is None else os.fsencode(policy))


def finalize() -> None:
    """Frees what is kept for communicators. Collective over all processes; ``MPI.Finalize`` does it too."""
    _call("collwise_finalize")


class _Items:
    """Address, count and datatype of a message."""

    def __init__(self, message: Any, parts: int = 1) -> None:
        self.in_place = message is MPI.IN_PLACE or message is None
        self.kept: Any = None
        if self.in_place:
            in_place = message is MPI.IN_PLACE
            self.address = ctypes.c_void_p(_in_place() if in_place else None)
            self.count, self.datatype = 0, MPI.BYTE
            return
        buffer, count, datatype = _parsed(message)
        self.kept = (buffer, datatype)
        if count is None:
            lower, extent = datatype.Get_extent()
            count, rest = divmod(buffer.nbytes, extent)
            if rest:
                raise ValueError(f"a buffer of {buffer.nbytes} bytes holds no whole number of items of {extent}")
            count, rest = divmod(count, parts)
            if rest:
                raise ValueError(f"a buffer of {count * parts + rest} items is no block for each of {parts} ranks")
        self.address, self.count, self.datatype = ctypes.c_void_p(buffer.address), count, datatype

    def arguments(self) -> tuple:
        return self.address, ctypes.c_longlong(self.count), _handle(self.datatype)


def _in_place() -> int:
    """The library's own value of MPI_IN_PLACE."""
    value = int(MPI.IN_PLACE)
    return value % (1 << 8 * ctypes.sizeof(ctypes.c_void_p))


def _parsed(message: Any) -> tuple[MPI.memory, Union[int, None], MPI.Datatype]:
    """The buffer of a message, its count if it says one, and its datatype."""
    parts = list(message) if isinstance(message, (list, tuple)) else [message]
    buffer = MPI.memory.frombuffer(parts[0])
    count = next((part for part in parts[1:] if isinstance(part, int)), None)
    datatype = next((part for part in parts[1:] if isinstance(part, (MPI.Datatype, str))), None)
    if isinstance(datatype, str):
        datatype = _typed(datatype)
    if datatype is None:
        datatype = _typed(memoryview(parts[0]).format)
    return buffer, count, datatype


def _typed(code: str) -> MPI.Datatype:
    """The datatype of a format, as the buffer protocol and numpy have it."""
    known = MPI._typedict.get(code.lstrip("@=<>")) if hasattr(MPI, "_typedict") else None
    if known is None:
        import numpy as np
        from mpi4py.util import dtlib

        known = dtlib.from_numpy_dtype(np.dtype(code))
    return known


class Adaptive:
    """The adaptive collectives of a communicator of mpi4py. Buffers stay as they are: what comes is written into what the caller gave."""

    def __init__(self, comm: MPI.Intracomm) -> None:
        self.comm = comm

    def _size(self) -> int:
        return self.comm.Get_size()

    def Barrier(self) -> None:
        """As ``Comm.Barrier``."""
        _call("collwise_barrier", _handle(self.comm))

    def Bcast(self, buf: Any, root: int = 0) -> None:
        """As ``Comm.Bcast``."""
        _call("collwise_bcast_c", *_Items(buf).arguments(), root, _handle(self.comm))

    def _reduced(self, name: str, sendbuf: Any, recvbuf: Any, op: MPI.Op, *root: int) -> None:
        given, got = _Items(sendbuf), _Items(recvbuf)
        count, datatype = (got.count, got.datatype) if given.in_place else (given.count, given.datatype)
        if not given.in_place and not got.in_place and got.count != given.count:
            raise ValueError(f"{given.count} items are given, and {got.count} come")
        _call(name, given.address, got.address, ctypes.c_longlong(count), _handle(datatype), _handle(op), *root, _handle(self.comm))

    def Reduce(self, sendbuf: Any, recvbuf: Any, op: MPI.Op = MPI.SUM, root: int = 0) -> None:
        """As ``Comm.Reduce``."""
        self._reduced("collwise_reduce_c", sendbuf, recvbuf, op, root)

    def Allreduce(self, sendbuf: Any, recvbuf: Any, op: MPI.Op = MPI.SUM) -> None:
        """As ``Comm.Allreduce``."""
        self._reduced("collwise_allreduce_c", sendbuf, recvbuf, op)

    def Reduce_scatter_block(self, sendbuf: Any, recvbuf: Any, op: MPI.Op = MPI.SUM) -> None:
        """As ``Comm.Reduce_scatter_block``."""
        given = _Items(sendbuf, self._size())
        got = _Items(recvbuf, self._size() if given.in_place else 1)
        one = got if given.in_place else given
        _call("collwise_reduce_scatter_block_c", given.address, got.address, *one.arguments()[1:], _handle(op), _handle(self.comm))

    def Gather(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
        """As ``Comm.Gather``."""
        got = _Items(recvbuf, self._size())
        _call("collwise_gather_c", *_Items(sendbuf).arguments(), *got.arguments(), root, _handle(self.comm))

    def Scatter(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
        """As ``Comm.Scatter``."""
        given = _Items(sendbuf, self._size())
        _call("collwise_scatter_c", *given.arguments(), *_Items(recvbuf).arguments(), root, _handle(self.comm))

    def Allgather(self, sendbuf: Any, recvbuf: Any) -> None:
        """As ``Comm.Allgather``."""
        got = _Items(recvbuf, self._size())
        _call("collwise_allgather_c", *_Items(sendbuf).arguments(), *got.arguments(), _handle(self.comm))

    def Alltoall(self, sendbuf: Any, recvbuf: Any) -> None:
        """As ``Comm.Alltoall``."""
        given, got = _Items(sendbuf, self._size()), _Items(recvbuf, self._size())
        _call("collwise_alltoall_c", *given.arguments(), *got.arguments(), _handle(self.comm))

    def explain(self, collective: str, size: int, root: int = 0) -> tuple[str, Union[float, None]]:
        """What a collective does for so many bytes of a message or block, in words, and the seconds that it should take, if the policy says."""
        text, seconds = ctypes.create_string_buffer(512), ctypes.c_double(-1)
        _call("collwise_explain", collective.encode(), ctypes.c_longlong(size), root, _handle(self.comm), text, ctypes.c_size_t(len(text)), ctypes.byref(seconds))
        return text.value.decode(errors="replace"), seconds.value if seconds.value >= 0 else None
