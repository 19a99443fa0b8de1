//! The calls that are taken over. Sizes are as `collwise::qnm::wire` wants them, and taken from arguments that `MPI_IN_PLACE` leaves
//! valid: what all processes receive in the mean is what they send.

use crate::names::define;
use crate::{blocks, bytes, note, now, place};
use mpi::ffi::{MPI_Comm, MPI_Datatype, MPI_Message, MPI_Op, MPI_PROC_NULL, MPI_Request, MPI_Status};
use std::ffi::{c_int, c_void};

type In = *const c_void;
type Out = *mut c_void;
type Counts = *const c_int;

/// Bytes to a process, if there is one.
unsafe fn to(dest: c_int, count: c_int, datatype: MPI_Datatype) -> usize {
    // SAFETY: the caller's
    if dest == MPI_PROC_NULL { 0 } else { unsafe { bytes(count, datatype) } }
}

/// Bytes of a block that the root says one way, and all others another.
unsafe fn rooted(root: c_int, comm: MPI_Comm, at_root: (c_int, MPI_Datatype), elsewhere: (c_int, MPI_Datatype)) -> usize {
    // SAFETY: the caller's
    unsafe {
        let (count, datatype) = if place(comm).0 == root { at_root } else { elsewhere };
        bytes(count, datatype)
    }
}

/// As [`rooted`], where the root has a list.
unsafe fn rooted_list(root: c_int, comm: MPI_Comm, at_root: (Counts, MPI_Datatype), elsewhere: (c_int, MPI_Datatype)) -> usize {
    // SAFETY: the caller's
    unsafe {
        let me = place(comm).0;
        if me == root { blocks(at_root.0, at_root.1, comm, Some(me)) } else { bytes(elsewhere.0, elsewhere.1) }
    }
}

macro_rules! take_over {
    ($($name:ident = $own:ident($($argument:ident: $type:ty),* $(,)?) sends $bytes:expr;)*) => {$(
        define!($name = $own($($argument: $type),*) by |call| {
            let start = now();
            let code = call();
            if code == 0 {
                #[allow(unused_unsafe)]
                // SAFETY: the call succeeded with these arguments
                let sent = unsafe { $bytes };
                note(stringify!($name), start, sent);
            }
            code
        });
    )*};
}

take_over! {
    MPI_Send = PMPI_Send(b: In, n: c_int, t: MPI_Datatype, dest: c_int, tag: c_int, c: MPI_Comm) sends to(dest, n, t);
    MPI_Ssend = PMPI_Ssend(b: In, n: c_int, t: MPI_Datatype, dest: c_int, tag: c_int, c: MPI_Comm) sends to(dest, n, t);
    MPI_Rsend = PMPI_Rsend(b: In, n: c_int, t: MPI_Datatype, dest: c_int, tag: c_int, c: MPI_Comm) sends to(dest, n, t);
    MPI_Bsend = PMPI_Bsend(b: In, n: c_int, t: MPI_Datatype, dest: c_int, tag: c_int, c: MPI_Comm) sends to(dest, n, t);
    MPI_Isend = PMPI_Isend(b: In, n: c_int, t: MPI_Datatype, dest: c_int, tag: c_int, c: MPI_Comm, r: *mut MPI_Request) sends to(dest, n, t);
    MPI_Issend = PMPI_Issend(b: In, n: c_int, t: MPI_Datatype, dest: c_int, tag: c_int, c: MPI_Comm, r: *mut MPI_Request) sends to(dest, n, t);
    MPI_Irsend = PMPI_Irsend(b: In, n: c_int, t: MPI_Datatype, dest: c_int, tag: c_int, c: MPI_Comm, r: *mut MPI_Request) sends to(dest, n, t);
    MPI_Ibsend = PMPI_Ibsend(b: In, n: c_int, t: MPI_Datatype, dest: c_int, tag: c_int, c: MPI_Comm, r: *mut MPI_Request) sends to(dest, n, t);
    MPI_Sendrecv = PMPI_Sendrecv(b: In, n: c_int, t: MPI_Datatype, dest: c_int, tag: c_int, rb: Out, rn: c_int, rt: MPI_Datatype, source: c_int, rtag: c_int, c: MPI_Comm, s: *mut MPI_Status) sends to(dest, n, t);
    MPI_Sendrecv_replace = PMPI_Sendrecv_replace(b: Out, n: c_int, t: MPI_Datatype, dest: c_int, tag: c_int, source: c_int, rtag: c_int, c: MPI_Comm, s: *mut MPI_Status) sends to(dest, n, t);
    MPI_Recv = PMPI_Recv(b: Out, n: c_int, t: MPI_Datatype, source: c_int, tag: c_int, c: MPI_Comm, s: *mut MPI_Status) sends 0;
    MPI_Irecv = PMPI_Irecv(b: Out, n: c_int, t: MPI_Datatype, source: c_int, tag: c_int, c: MPI_Comm, r: *mut MPI_Request) sends 0;
    MPI_Mrecv = PMPI_Mrecv(b: Out, n: c_int, t: MPI_Datatype, m: *mut MPI_Message, s: *mut MPI_Status) sends 0;
    MPI_Probe = PMPI_Probe(source: c_int, tag: c_int, c: MPI_Comm, s: *mut MPI_Status) sends 0;
    MPI_Mprobe = PMPI_Mprobe(source: c_int, tag: c_int, c: MPI_Comm, m: *mut MPI_Message, s: *mut MPI_Status) sends 0;
    MPI_Iprobe = PMPI_Iprobe(source: c_int, tag: c_int, c: MPI_Comm, flag: *mut c_int, s: *mut MPI_Status) sends 0;
    MPI_Wait = PMPI_Wait(r: *mut MPI_Request, s: *mut MPI_Status) sends 0;
    MPI_Waitall = PMPI_Waitall(n: c_int, r: *mut MPI_Request, s: *mut MPI_Status) sends 0;
    MPI_Waitany = PMPI_Waitany(n: c_int, r: *mut MPI_Request, which: *mut c_int, s: *mut MPI_Status) sends 0;
    MPI_Waitsome = PMPI_Waitsome(n: c_int, r: *mut MPI_Request, done: *mut c_int, which: *mut c_int, s: *mut MPI_Status) sends 0;
    MPI_Test = PMPI_Test(r: *mut MPI_Request, flag: *mut c_int, s: *mut MPI_Status) sends 0;
    MPI_Testall = PMPI_Testall(n: c_int, r: *mut MPI_Request, flag: *mut c_int, s: *mut MPI_Status) sends 0;
    MPI_Testany = PMPI_Testany(n: c_int, r: *mut MPI_Request, which: *mut c_int, flag: *mut c_int, s: *mut MPI_Status) sends 0;
    MPI_Barrier = PMPI_Barrier(c: MPI_Comm) sends 0;
    MPI_Ibarrier = PMPI_Ibarrier(c: MPI_Comm, r: *mut MPI_Request) sends 0;
    MPI_Bcast = PMPI_Bcast(b: Out, n: c_int, t: MPI_Datatype, root: c_int, c: MPI_Comm) sends bytes(n, t);
    MPI_Ibcast = PMPI_Ibcast(b: Out, n: c_int, t: MPI_Datatype, root: c_int, c: MPI_Comm, r: *mut MPI_Request) sends bytes(n, t);
    MPI_Reduce = PMPI_Reduce(b: In, rb: Out, n: c_int, t: MPI_Datatype, o: MPI_Op, root: c_int, c: MPI_Comm) sends bytes(n, t);
    MPI_Ireduce = PMPI_Ireduce(b: In, rb: Out, n: c_int, t: MPI_Datatype, o: MPI_Op, root: c_int, c: MPI_Comm, r: *mut MPI_Request) sends bytes(n, t);
    MPI_Allreduce = PMPI_Allreduce(b: In, rb: Out, n: c_int, t: MPI_Datatype, o: MPI_Op, c: MPI_Comm) sends bytes(n, t);
    MPI_Iallreduce = PMPI_Iallreduce(b: In, rb: Out, n: c_int, t: MPI_Datatype, o: MPI_Op, c: MPI_Comm, r: *mut MPI_Request) sends bytes(n, t);
    MPI_Scan = PMPI_Scan(b: In, rb: Out, n: c_int, t: MPI_Datatype, o: MPI_Op, c: MPI_Comm) sends bytes(n, t);
    MPI_Exscan = PMPI_Exscan(b: In, rb: Out, n: c_int, t: MPI_Datatype, o: MPI_Op, c: MPI_Comm) sends bytes(n, t);
    MPI_Reduce_scatter = PMPI_Reduce_scatter(b: In, rb: Out, ns: Counts, t: MPI_Datatype, o: MPI_Op, c: MPI_Comm) sends blocks(ns, t, c, None);
    MPI_Reduce_scatter_block = PMPI_Reduce_scatter_block(b: In, rb: Out, n: c_int, t: MPI_Datatype, o: MPI_Op, c: MPI_Comm) sends bytes(n, t);
    MPI_Allgather = PMPI_Allgather(b: In, n: c_int, t: MPI_Datatype, rb: Out, rn: c_int, rt: MPI_Datatype, c: MPI_Comm) sends bytes(rn, rt);
    MPI_Iallgather = PMPI_Iallgather(b: In, n: c_int, t: MPI_Datatype, rb: Out, rn: c_int, rt: MPI_Datatype, c: MPI_Comm, r: *mut MPI_Request) sends bytes(rn, rt);
    MPI_Allgatherv = PMPI_Allgatherv(b: In, n: c_int, t: MPI_Datatype, rb: Out, rns: Counts, at: Counts, rt: MPI_Datatype, c: MPI_Comm) sends blocks(rns, rt, c, Some(place(c).0));
    MPI_Alltoall = PMPI_Alltoall(b: In, n: c_int, t: MPI_Datatype, rb: Out, rn: c_int, rt: MPI_Datatype, c: MPI_Comm) sends bytes(rn, rt);
    MPI_Ialltoall = PMPI_Ialltoall(b: In, n: c_int, t: MPI_Datatype, rb: Out, rn: c_int, rt: MPI_Datatype, c: MPI_Comm, r: *mut MPI_Request) sends bytes(rn, rt);
    MPI_Alltoallv = PMPI_Alltoallv(b: In, ns: Counts, at: Counts, t: MPI_Datatype, rb: Out, rns: Counts, rat: Counts, rt: MPI_Datatype, c: MPI_Comm) sends blocks(rns, rt, c, None);
    MPI_Gather = PMPI_Gather(b: In, n: c_int, t: MPI_Datatype, rb: Out, rn: c_int, rt: MPI_Datatype, root: c_int, c: MPI_Comm) sends rooted(root, c, (rn, rt), (n, t));
    MPI_Gatherv = PMPI_Gatherv(b: In, n: c_int, t: MPI_Datatype, rb: Out, rns: Counts, at: Counts, rt: MPI_Datatype, root: c_int, c: MPI_Comm) sends rooted_list(root, c, (rns, rt), (n, t));
    MPI_Scatter = PMPI_Scatter(b: In, n: c_int, t: MPI_Datatype, rb: Out, rn: c_int, rt: MPI_Datatype, root: c_int, c: MPI_Comm) sends rooted(root, c, (n, t), (rn, rt));
    MPI_Scatterv = PMPI_Scatterv(b: In, ns: Counts, at: Counts, t: MPI_Datatype, rb: Out, rn: c_int, rt: MPI_Datatype, root: c_int, c: MPI_Comm) sends rooted_list(root, c, (ns, t), (rn, rt));
}
