//! The calls that are taken over. Sizes are as `collwise::qnm::wire` wants them, and taken from arguments that `MPI_IN_PLACE` leaves
//! valid: what all processes receive in the mean is what they send.

use crate::library::{Handle, Mpi};
use crate::names::define;
use crate::sizes::{given, group, partners, rooted, rooted_list, to};
use crate::{Place, noted};
use std::ffi::{c_int, c_void};

type In = *const c_void;
type Out = *mut c_void;
type Counts = *const c_int;
/// A status, or statuses: only handed on.
type Status = *mut c_void;
/// A request or a matched message, or several: only handed on.
type Open = *mut c_void;

macro_rules! take_over {
    (with $mpi:ident; $($name:ident = $own:ident($($argument:ident: $type:ty),* $(,)?) $(or $adaptive:ident on ($comm:ident, $root:expr))? sends $bytes:expr;)*) => {$(
        define!($name = $own($($argument: $type),*) $(or $adaptive)? by |call| {
            let place = [$(Place { function: stringify!($adaptive), comm: $comm, root: $root })?].into_iter().next();
            noted(stringify!($name), call, place, |$mpi: &Mpi| {
                let _ = $mpi; // not all calls send
                #[allow(unused_unsafe)]
                // SAFETY: the call succeeded with these arguments
                unsafe { $bytes }
            })
        });
    )*};
}

take_over! {
    with mpi;
    MPI_Send = PMPI_Send(b: In, n: c_int, t: Handle, dest: c_int, tag: c_int, c: Handle) sends to(mpi, dest, (n, t));
    MPI_Ssend = PMPI_Ssend(b: In, n: c_int, t: Handle, dest: c_int, tag: c_int, c: Handle) sends to(mpi, dest, (n, t));
    MPI_Rsend = PMPI_Rsend(b: In, n: c_int, t: Handle, dest: c_int, tag: c_int, c: Handle) sends to(mpi, dest, (n, t));
    MPI_Bsend = PMPI_Bsend(b: In, n: c_int, t: Handle, dest: c_int, tag: c_int, c: Handle) sends to(mpi, dest, (n, t));
    MPI_Isend = PMPI_Isend(b: In, n: c_int, t: Handle, dest: c_int, tag: c_int, c: Handle, r: Open) sends to(mpi, dest, (n, t));
    MPI_Issend = PMPI_Issend(b: In, n: c_int, t: Handle, dest: c_int, tag: c_int, c: Handle, r: Open) sends to(mpi, dest, (n, t));
    MPI_Irsend = PMPI_Irsend(b: In, n: c_int, t: Handle, dest: c_int, tag: c_int, c: Handle, r: Open) sends to(mpi, dest, (n, t));
    MPI_Ibsend = PMPI_Ibsend(b: In, n: c_int, t: Handle, dest: c_int, tag: c_int, c: Handle, r: Open) sends to(mpi, dest, (n, t));
    MPI_Sendrecv = PMPI_Sendrecv(b: In, n: c_int, t: Handle, dest: c_int, tag: c_int, rb: Out, rn: c_int, rt: Handle, source: c_int, rtag: c_int, c: Handle, s: Status) sends to(mpi, dest, (n, t));
    MPI_Sendrecv_replace = PMPI_Sendrecv_replace(b: Out, n: c_int, t: Handle, dest: c_int, tag: c_int, source: c_int, rtag: c_int, c: Handle, s: Status) sends to(mpi, dest, (n, t));
    MPI_Recv = PMPI_Recv(b: Out, n: c_int, t: Handle, source: c_int, tag: c_int, c: Handle, s: Status) sends 0;
    MPI_Irecv = PMPI_Irecv(b: Out, n: c_int, t: Handle, source: c_int, tag: c_int, c: Handle, r: Open) sends 0;
    MPI_Mrecv = PMPI_Mrecv(b: Out, n: c_int, t: Handle, m: Open, s: Status) sends 0;
    MPI_Probe = PMPI_Probe(source: c_int, tag: c_int, c: Handle, s: Status) sends 0;
    MPI_Mprobe = PMPI_Mprobe(source: c_int, tag: c_int, c: Handle, m: Open, s: Status) sends 0;
    MPI_Iprobe = PMPI_Iprobe(source: c_int, tag: c_int, c: Handle, flag: *mut c_int, s: Status) sends 0;
    MPI_Wait = PMPI_Wait(r: Open, s: Status) sends 0;
    MPI_Waitall = PMPI_Waitall(n: c_int, r: Open, s: Status) sends 0;
    MPI_Waitany = PMPI_Waitany(n: c_int, r: Open, which: *mut c_int, s: Status) sends 0;
    MPI_Waitsome = PMPI_Waitsome(n: c_int, r: Open, done: *mut c_int, which: *mut c_int, s: Status) sends 0;
    MPI_Test = PMPI_Test(r: Open, flag: *mut c_int, s: Status) sends 0;
    MPI_Testall = PMPI_Testall(n: c_int, r: Open, flag: *mut c_int, s: Status) sends 0;
    MPI_Testany = PMPI_Testany(n: c_int, r: Open, which: *mut c_int, flag: *mut c_int, s: Status) sends 0;
    MPI_Barrier = PMPI_Barrier(c: Handle) or collwise_barrier on (c, 0) sends 0;
    MPI_Ibarrier = PMPI_Ibarrier(c: Handle, r: Open) sends 0;
    MPI_Bcast = PMPI_Bcast(b: Out, n: c_int, t: Handle, root: c_int, c: Handle) or collwise_bcast on (c, root) sends to(mpi, root, (n, t));
    MPI_Ibcast = PMPI_Ibcast(b: Out, n: c_int, t: Handle, root: c_int, c: Handle, r: Open) sends to(mpi, root, (n, t));
    MPI_Reduce = PMPI_Reduce(b: In, rb: Out, n: c_int, t: Handle, o: Handle, root: c_int, c: Handle) or collwise_reduce on (c, root) sends to(mpi, root, (n, t));
    MPI_Ireduce = PMPI_Ireduce(b: In, rb: Out, n: c_int, t: Handle, o: Handle, root: c_int, c: Handle, r: Open) sends to(mpi, root, (n, t));
    MPI_Allreduce = PMPI_Allreduce(b: In, rb: Out, n: c_int, t: Handle, o: Handle, c: Handle) or collwise_allreduce on (c, 0) sends mpi.bytes(n, t);
    MPI_Iallreduce = PMPI_Iallreduce(b: In, rb: Out, n: c_int, t: Handle, o: Handle, c: Handle, r: Open) sends mpi.bytes(n, t);
    MPI_Scan = PMPI_Scan(b: In, rb: Out, n: c_int, t: Handle, o: Handle, c: Handle) sends mpi.bytes(n, t);
    MPI_Exscan = PMPI_Exscan(b: In, rb: Out, n: c_int, t: Handle, o: Handle, c: Handle) sends mpi.bytes(n, t);
    MPI_Reduce_scatter = PMPI_Reduce_scatter(b: In, rb: Out, ns: Counts, t: Handle, o: Handle, c: Handle) or collwise_reduce_scatter on (c, 0) sends group(mpi, c, (ns, t));
    MPI_Reduce_scatter_block = PMPI_Reduce_scatter_block(b: In, rb: Out, n: c_int, t: Handle, o: Handle, c: Handle) or collwise_reduce_scatter_block on (c, 0) sends mpi.bytes(n, t);
    MPI_Allgather = PMPI_Allgather(b: In, n: c_int, t: Handle, rb: Out, rn: c_int, rt: Handle, c: Handle) or collwise_allgather on (c, 0) sends mpi.bytes(rn, rt);
    MPI_Iallgather = PMPI_Iallgather(b: In, n: c_int, t: Handle, rb: Out, rn: c_int, rt: Handle, c: Handle, r: Open) sends mpi.bytes(rn, rt);
    MPI_Allgatherv = PMPI_Allgatherv(b: In, n: c_int, t: Handle, rb: Out, rns: Counts, at: Counts, rt: Handle, c: Handle) or collwise_allgatherv on (c, 0) sends given(mpi, c, (rns, rt), (n, t));
    MPI_Alltoall = PMPI_Alltoall(b: In, n: c_int, t: Handle, rb: Out, rn: c_int, rt: Handle, c: Handle) or collwise_alltoall on (c, 0) sends mpi.bytes(rn, rt);
    MPI_Ialltoall = PMPI_Ialltoall(b: In, n: c_int, t: Handle, rb: Out, rn: c_int, rt: Handle, c: Handle, r: Open) sends mpi.bytes(rn, rt);
    MPI_Alltoallv = PMPI_Alltoallv(b: In, ns: Counts, at: Counts, t: Handle, rb: Out, rns: Counts, rat: Counts, rt: Handle, c: Handle) sends partners(mpi, c, (rns, rt));
    MPI_Gather = PMPI_Gather(b: In, n: c_int, t: Handle, rb: Out, rn: c_int, rt: Handle, root: c_int, c: Handle) or collwise_gather on (c, root) sends rooted(mpi, root, c, (rn, rt), (n, t));
    MPI_Bcast_c = PMPI_Bcast_c(b: Out, n: i64, t: Handle, root: c_int, c: Handle) or collwise_bcast_c on (c, root) sends to(mpi, root, (n, t));
    MPI_Reduce_c = PMPI_Reduce_c(b: In, rb: Out, n: i64, t: Handle, o: Handle, root: c_int, c: Handle) or collwise_reduce_c on (c, root) sends to(mpi, root, (n, t));
    MPI_Allreduce_c = PMPI_Allreduce_c(b: In, rb: Out, n: i64, t: Handle, o: Handle, c: Handle) or collwise_allreduce_c on (c, 0) sends mpi.bytes(n, t);
    MPI_Reduce_scatter_block_c = PMPI_Reduce_scatter_block_c(b: In, rb: Out, n: i64, t: Handle, o: Handle, c: Handle) or collwise_reduce_scatter_block_c on (c, 0) sends mpi.bytes(n, t);
    MPI_Allgather_c = PMPI_Allgather_c(b: In, n: i64, t: Handle, rb: Out, rn: i64, rt: Handle, c: Handle) or collwise_allgather_c on (c, 0) sends mpi.bytes(rn, rt);
    MPI_Alltoall_c = PMPI_Alltoall_c(b: In, n: i64, t: Handle, rb: Out, rn: i64, rt: Handle, c: Handle) or collwise_alltoall_c on (c, 0) sends mpi.bytes(rn, rt);
    MPI_Gather_c = PMPI_Gather_c(b: In, n: i64, t: Handle, rb: Out, rn: i64, rt: Handle, root: c_int, c: Handle) or collwise_gather_c on (c, root) sends rooted(mpi, root, c, (rn, rt), (n, t));
    MPI_Scatter_c = PMPI_Scatter_c(b: In, n: i64, t: Handle, rb: Out, rn: i64, rt: Handle, root: c_int, c: Handle) or collwise_scatter_c on (c, root) sends rooted(mpi, root, c, (n, t), (rn, rt));
    MPI_Gatherv = PMPI_Gatherv(b: In, n: c_int, t: Handle, rb: Out, rns: Counts, at: Counts, rt: Handle, root: c_int, c: Handle) sends rooted_list(mpi, root, c, (rns, rt), (n, t));
    MPI_Scatter = PMPI_Scatter(b: In, n: c_int, t: Handle, rb: Out, rn: c_int, rt: Handle, root: c_int, c: Handle) or collwise_scatter on (c, root) sends rooted(mpi, root, c, (n, t), (rn, rt));
    MPI_Scatterv = PMPI_Scatterv(b: In, ns: Counts, at: Counts, t: Handle, rb: Out, rn: c_int, rt: Handle, root: c_int, c: Handle) sends rooted_list(mpi, root, c, (ns, t), (rn, rt));
}
