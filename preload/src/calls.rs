//! The calls that are taken over. Sizes are as `collwise::qnm::wire` wants them, and taken from arguments that `MPI_IN_PLACE` leaves
//! valid: what all processes receive in the mean is what they send.

use crate::library::{Handle, Mpi};
use crate::names::define;
use crate::sizes::{
    Sent, Within, given, group, neighbours, neighbours_of_types, partners, partners_of_types, rooted, rooted_list, to, to_neighbours,
};
use crate::{Place, is_noting, noted};
use std::ffi::{c_int, c_void};

type In = *const c_void;
type Out = *mut c_void;
type Counts = *const c_int;
/// Displacements, or types of their own: only handed on, or read by [`Mpi::handle_in`].
type List = *const c_void;
/// A status, or statuses: only handed on.
type Status = *mut c_void;
/// A request or a matched message, or several: only handed on.
type Open = *mut c_void;

macro_rules! take_over {
    (with $mpi:ident; $($name:ident = $own:ident($($argument:ident: $type:ty),* $(,)?) $(or $adaptive:ident)? $(on ($comm:ident, $root:expr))? $(towards $dest:ident in $within:ident)? $(into $target:ident of $window:ident)? sends $bytes:expr;)*) => {$(
        define!($name = $own($($argument: $type),*) $(or $adaptive)? by |call| {
            if !is_noting() {
                return call();
            }
            let place = [$(Place { comm: $comm, root: $root })?].into_iter().next();
            noted(stringify!($name), call, place, |$mpi: &Mpi| {
                let _ = $mpi; // not all calls send
                #[allow(unused_unsafe)]
                // SAFETY: the call succeeded with these arguments
                let sent = Sent::from(unsafe { $bytes });
                $(let sent = sent.towards(Within::Communicator($within), $dest);)?
                $(let sent = sent.towards(Within::Window($window), $target);)?
                sent
            })
        });
    )*};
}

take_over! {
    with mpi;
    MPI_Send = PMPI_Send(b: In, n: c_int, t: Handle, dest: c_int, tag: c_int, c: Handle) towards dest in c sends to(mpi, dest, (n, t));
    MPI_Ssend = PMPI_Ssend(b: In, n: c_int, t: Handle, dest: c_int, tag: c_int, c: Handle) towards dest in c sends to(mpi, dest, (n, t));
    MPI_Rsend = PMPI_Rsend(b: In, n: c_int, t: Handle, dest: c_int, tag: c_int, c: Handle) towards dest in c sends to(mpi, dest, (n, t));
    MPI_Bsend = PMPI_Bsend(b: In, n: c_int, t: Handle, dest: c_int, tag: c_int, c: Handle) towards dest in c sends to(mpi, dest, (n, t));
    MPI_Isend = PMPI_Isend(b: In, n: c_int, t: Handle, dest: c_int, tag: c_int, c: Handle, r: Open) towards dest in c sends to(mpi, dest, (n, t));
    MPI_Issend = PMPI_Issend(b: In, n: c_int, t: Handle, dest: c_int, tag: c_int, c: Handle, r: Open) towards dest in c sends to(mpi, dest, (n, t));
    MPI_Irsend = PMPI_Irsend(b: In, n: c_int, t: Handle, dest: c_int, tag: c_int, c: Handle, r: Open) towards dest in c sends to(mpi, dest, (n, t));
    MPI_Ibsend = PMPI_Ibsend(b: In, n: c_int, t: Handle, dest: c_int, tag: c_int, c: Handle, r: Open) towards dest in c sends to(mpi, dest, (n, t));
    MPI_Sendrecv = PMPI_Sendrecv(b: In, n: c_int, t: Handle, dest: c_int, tag: c_int, rb: Out, rn: c_int, rt: Handle, source: c_int, rtag: c_int, c: Handle, s: Status) towards dest in c sends to(mpi, dest, (n, t));
    MPI_Sendrecv_replace = PMPI_Sendrecv_replace(b: Out, n: c_int, t: Handle, dest: c_int, tag: c_int, source: c_int, rtag: c_int, c: Handle, s: Status) towards dest in c sends to(mpi, dest, (n, t));
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
    MPI_Request_get_status = PMPI_Request_get_status(r: Handle, flag: *mut c_int, s: Status) sends 0;
    MPI_Buffer_detach = PMPI_Buffer_detach(b: Out, n: *mut c_int) sends 0;
    MPI_Test = PMPI_Test(r: Open, flag: *mut c_int, s: Status) sends 0;
    MPI_Testall = PMPI_Testall(n: c_int, r: Open, flag: *mut c_int, s: Status) sends 0;
    MPI_Testany = PMPI_Testany(n: c_int, r: Open, which: *mut c_int, flag: *mut c_int, s: Status) sends 0;
    MPI_Testsome = PMPI_Testsome(n: c_int, r: Open, done: *mut c_int, which: *mut c_int, s: Status) sends 0;
    MPI_Improbe = PMPI_Improbe(source: c_int, tag: c_int, c: Handle, flag: *mut c_int, m: Open, s: Status) sends 0;
    MPI_Imrecv = PMPI_Imrecv(b: Out, n: c_int, t: Handle, m: Open, r: Open) sends 0;
    MPI_Barrier = PMPI_Barrier(c: Handle) or collwise_barrier on (c, 0) sends 0;
    MPI_Ibarrier = PMPI_Ibarrier(c: Handle, r: Open) on (c, 0) sends 0;
    MPI_Bcast = PMPI_Bcast(b: Out, n: c_int, t: Handle, root: c_int, c: Handle) or collwise_bcast on (c, root) sends to(mpi, root, (n, t));
    MPI_Ibcast = PMPI_Ibcast(b: Out, n: c_int, t: Handle, root: c_int, c: Handle, r: Open) on (c, root) sends to(mpi, root, (n, t));
    MPI_Reduce = PMPI_Reduce(b: In, rb: Out, n: c_int, t: Handle, o: Handle, root: c_int, c: Handle) or collwise_reduce on (c, root) sends to(mpi, root, (n, t));
    MPI_Ireduce = PMPI_Ireduce(b: In, rb: Out, n: c_int, t: Handle, o: Handle, root: c_int, c: Handle, r: Open) on (c, root) sends to(mpi, root, (n, t));
    MPI_Allreduce = PMPI_Allreduce(b: In, rb: Out, n: c_int, t: Handle, o: Handle, c: Handle) or collwise_allreduce on (c, 0) sends mpi.bytes(n, t);
    MPI_Iallreduce = PMPI_Iallreduce(b: In, rb: Out, n: c_int, t: Handle, o: Handle, c: Handle, r: Open) on (c, 0) sends mpi.bytes(n, t);
    MPI_Scan = PMPI_Scan(b: In, rb: Out, n: c_int, t: Handle, o: Handle, c: Handle) on (c, 0) sends mpi.bytes(n, t);
    MPI_Exscan = PMPI_Exscan(b: In, rb: Out, n: c_int, t: Handle, o: Handle, c: Handle) on (c, 0) sends mpi.bytes(n, t);
    MPI_Iscan = PMPI_Iscan(b: In, rb: Out, n: c_int, t: Handle, o: Handle, c: Handle, r: Open) on (c, 0) sends mpi.bytes(n, t);
    MPI_Iexscan = PMPI_Iexscan(b: In, rb: Out, n: c_int, t: Handle, o: Handle, c: Handle, r: Open) on (c, 0) sends mpi.bytes(n, t);
    MPI_Ireduce_scatter = PMPI_Ireduce_scatter(b: In, rb: Out, ns: Counts, t: Handle, o: Handle, c: Handle, r: Open) on (c, 0) sends group(mpi, c, (ns, t));
    MPI_Ireduce_scatter_block = PMPI_Ireduce_scatter_block(b: In, rb: Out, n: c_int, t: Handle, o: Handle, c: Handle, r: Open) on (c, 0) sends mpi.bytes(n, t);
    MPI_Reduce_scatter = PMPI_Reduce_scatter(b: In, rb: Out, ns: Counts, t: Handle, o: Handle, c: Handle) or collwise_reduce_scatter on (c, 0) sends group(mpi, c, (ns, t));
    MPI_Reduce_scatter_block = PMPI_Reduce_scatter_block(b: In, rb: Out, n: c_int, t: Handle, o: Handle, c: Handle) or collwise_reduce_scatter_block on (c, 0) sends mpi.bytes(n, t);
    MPI_Allgather = PMPI_Allgather(b: In, n: c_int, t: Handle, rb: Out, rn: c_int, rt: Handle, c: Handle) or collwise_allgather on (c, 0) sends mpi.bytes(rn, rt);
    MPI_Iallgather = PMPI_Iallgather(b: In, n: c_int, t: Handle, rb: Out, rn: c_int, rt: Handle, c: Handle, r: Open) on (c, 0) sends mpi.bytes(rn, rt);
    MPI_Allgatherv = PMPI_Allgatherv(b: In, n: c_int, t: Handle, rb: Out, rns: Counts, at: Counts, rt: Handle, c: Handle) or collwise_allgatherv on (c, 0) sends given(mpi, c, (rns, rt), (n, t));
    MPI_Iallgatherv = PMPI_Iallgatherv(b: In, n: c_int, t: Handle, rb: Out, rns: Counts, at: Counts, rt: Handle, c: Handle, r: Open) on (c, 0) sends given(mpi, c, (rns, rt), (n, t));
    MPI_Alltoall = PMPI_Alltoall(b: In, n: c_int, t: Handle, rb: Out, rn: c_int, rt: Handle, c: Handle) or collwise_alltoall on (c, 0) sends mpi.bytes(rn, rt);
    MPI_Ialltoall = PMPI_Ialltoall(b: In, n: c_int, t: Handle, rb: Out, rn: c_int, rt: Handle, c: Handle, r: Open) on (c, 0) sends mpi.bytes(rn, rt);
    MPI_Alltoallv = PMPI_Alltoallv(b: In, ns: Counts, at: Counts, t: Handle, rb: Out, rns: Counts, rat: Counts, rt: Handle, c: Handle) on (c, 0) sends partners(mpi, c, (rns, rt));
    MPI_Ialltoallv = PMPI_Ialltoallv(b: In, ns: Counts, at: Counts, t: Handle, rb: Out, rns: Counts, rat: Counts, rt: Handle, c: Handle, r: Open) on (c, 0) sends partners(mpi, c, (rns, rt));
    MPI_Alltoallw = PMPI_Alltoallw(b: In, ns: Counts, at: Counts, ts: List, rb: Out, rns: Counts, rat: Counts, rts: List, c: Handle) on (c, 0) sends partners_of_types(mpi, c, (rns, rts));
    MPI_Ialltoallw = PMPI_Ialltoallw(b: In, ns: Counts, at: Counts, ts: List, rb: Out, rns: Counts, rat: Counts, rts: List, c: Handle, r: Open) on (c, 0) sends partners_of_types(mpi, c, (rns, rts));
    MPI_Igather = PMPI_Igather(b: In, n: c_int, t: Handle, rb: Out, rn: c_int, rt: Handle, root: c_int, c: Handle, r: Open) on (c, root) sends rooted(mpi, root, c, (rn, rt), (n, t));
    MPI_Igatherv = PMPI_Igatherv(b: In, n: c_int, t: Handle, rb: Out, rns: Counts, at: Counts, rt: Handle, root: c_int, c: Handle, r: Open) on (c, root) sends rooted_list(mpi, root, c, (rns, rt), (n, t));
    MPI_Iscatter = PMPI_Iscatter(b: In, n: c_int, t: Handle, rb: Out, rn: c_int, rt: Handle, root: c_int, c: Handle, r: Open) on (c, root) sends rooted(mpi, root, c, (n, t), (rn, rt));
    MPI_Iscatterv = PMPI_Iscatterv(b: In, ns: Counts, at: Counts, t: Handle, rb: Out, rn: c_int, rt: Handle, root: c_int, c: Handle, r: Open) on (c, root) sends rooted_list(mpi, root, c, (ns, t), (rn, rt));
    MPI_Gather = PMPI_Gather(b: In, n: c_int, t: Handle, rb: Out, rn: c_int, rt: Handle, root: c_int, c: Handle) or collwise_gather on (c, root) sends rooted(mpi, root, c, (rn, rt), (n, t));
    MPI_Bcast_c = PMPI_Bcast_c(b: Out, n: i64, t: Handle, root: c_int, c: Handle) or collwise_bcast_c on (c, root) sends to(mpi, root, (n, t));
    MPI_Reduce_c = PMPI_Reduce_c(b: In, rb: Out, n: i64, t: Handle, o: Handle, root: c_int, c: Handle) or collwise_reduce_c on (c, root) sends to(mpi, root, (n, t));
    MPI_Allreduce_c = PMPI_Allreduce_c(b: In, rb: Out, n: i64, t: Handle, o: Handle, c: Handle) or collwise_allreduce_c on (c, 0) sends mpi.bytes(n, t);
    MPI_Reduce_scatter_block_c = PMPI_Reduce_scatter_block_c(b: In, rb: Out, n: i64, t: Handle, o: Handle, c: Handle) or collwise_reduce_scatter_block_c on (c, 0) sends mpi.bytes(n, t);
    MPI_Allgather_c = PMPI_Allgather_c(b: In, n: i64, t: Handle, rb: Out, rn: i64, rt: Handle, c: Handle) or collwise_allgather_c on (c, 0) sends mpi.bytes(rn, rt);
    MPI_Alltoall_c = PMPI_Alltoall_c(b: In, n: i64, t: Handle, rb: Out, rn: i64, rt: Handle, c: Handle) or collwise_alltoall_c on (c, 0) sends mpi.bytes(rn, rt);
    MPI_Gather_c = PMPI_Gather_c(b: In, n: i64, t: Handle, rb: Out, rn: i64, rt: Handle, root: c_int, c: Handle) or collwise_gather_c on (c, root) sends rooted(mpi, root, c, (rn, rt), (n, t));
    MPI_Scatter_c = PMPI_Scatter_c(b: In, n: i64, t: Handle, rb: Out, rn: i64, rt: Handle, root: c_int, c: Handle) or collwise_scatter_c on (c, root) sends rooted(mpi, root, c, (n, t), (rn, rt));
    MPI_Gatherv = PMPI_Gatherv(b: In, n: c_int, t: Handle, rb: Out, rns: Counts, at: Counts, rt: Handle, root: c_int, c: Handle) on (c, root) sends rooted_list(mpi, root, c, (rns, rt), (n, t));
    MPI_Scatter = PMPI_Scatter(b: In, n: c_int, t: Handle, rb: Out, rn: c_int, rt: Handle, root: c_int, c: Handle) or collwise_scatter on (c, root) sends rooted(mpi, root, c, (n, t), (rn, rt));
    MPI_Scatterv = PMPI_Scatterv(b: In, ns: Counts, at: Counts, t: Handle, rb: Out, rn: c_int, rt: Handle, root: c_int, c: Handle) on (c, root) sends rooted_list(mpi, root, c, (ns, t), (rn, rt));
    // of all neighbours together, whom the communicator knows
    MPI_Neighbor_allgather = PMPI_Neighbor_allgather(b: In, n: c_int, t: Handle, rb: Out, rn: c_int, rt: Handle, c: Handle) sends to_neighbours(mpi, c, (n, t));
    MPI_Neighbor_allgatherv = PMPI_Neighbor_allgatherv(b: In, n: c_int, t: Handle, rb: Out, rns: Counts, at: Counts, rt: Handle, c: Handle) sends to_neighbours(mpi, c, (n, t));
    MPI_Neighbor_alltoall = PMPI_Neighbor_alltoall(b: In, n: c_int, t: Handle, rb: Out, rn: c_int, rt: Handle, c: Handle) sends to_neighbours(mpi, c, (n, t));
    MPI_Neighbor_alltoallv = PMPI_Neighbor_alltoallv(b: In, ns: Counts, at: Counts, t: Handle, rb: Out, rns: Counts, rat: Counts, rt: Handle, c: Handle) sends neighbours(mpi, c, (ns, t));
    MPI_Neighbor_alltoallw = PMPI_Neighbor_alltoallw(b: In, ns: Counts, at: List, ts: List, rb: Out, rns: Counts, rat: List, rts: List, c: Handle) sends neighbours_of_types(mpi, c, (ns, ts));
    MPI_Ineighbor_allgatherv = PMPI_Ineighbor_allgatherv(b: In, n: c_int, t: Handle, rb: Out, rns: Counts, at: Counts, rt: Handle, c: Handle, r: Open) sends to_neighbours(mpi, c, (n, t));
    MPI_Ineighbor_alltoallw = PMPI_Ineighbor_alltoallw(b: In, ns: Counts, at: List, ts: List, rb: Out, rns: Counts, rat: List, rts: List, c: Handle, r: Open) sends neighbours_of_types(mpi, c, (ns, ts));
    MPI_Ineighbor_allgather = PMPI_Ineighbor_allgather(b: In, n: c_int, t: Handle, rb: Out, rn: c_int, rt: Handle, c: Handle, r: Open) sends to_neighbours(mpi, c, (n, t));
    MPI_Ineighbor_alltoall = PMPI_Ineighbor_alltoall(b: In, n: c_int, t: Handle, rb: Out, rn: c_int, rt: Handle, c: Handle, r: Open) sends to_neighbours(mpi, c, (n, t));
    MPI_Ineighbor_alltoallv = PMPI_Ineighbor_alltoallv(b: In, ns: Counts, at: Counts, t: Handle, rb: Out, rns: Counts, rat: Counts, rt: Handle, c: Handle, r: Open) sends neighbours(mpi, c, (ns, t));
}

/// A displacement in a window, or an offset in a file.
type Offset = i64;
/// A window, a group, an info, a file: words that are handed on, or where one is written.
type Word = usize;

// access to others' memory: what is got comes as a message, too
take_over! {
    with mpi;
    MPI_Put = PMPI_Put(b: In, n: c_int, t: Handle, dest: c_int, at: Offset, rn: c_int, rt: Handle, w: Word) into dest of w sends to(mpi, dest, (n, t));
    MPI_Get = PMPI_Get(b: Out, n: c_int, t: Handle, dest: c_int, at: Offset, rn: c_int, rt: Handle, w: Word) into dest of w sends to(mpi, dest, (n, t));
    MPI_Accumulate = PMPI_Accumulate(b: In, n: c_int, t: Handle, dest: c_int, at: Offset, rn: c_int, rt: Handle, o: Handle, w: Word) into dest of w sends to(mpi, dest, (n, t));
    MPI_Get_accumulate = PMPI_Get_accumulate(b: In, n: c_int, t: Handle, rb: Out, rn: c_int, rt: Handle, dest: c_int, at: Offset, n2: c_int, t2: Handle, o: Handle, w: Word) into dest of w sends to(mpi, dest, (n2, t2));
    MPI_Fetch_and_op = PMPI_Fetch_and_op(b: In, rb: Out, t: Handle, dest: c_int, at: Offset, o: Handle, w: Word) into dest of w sends to(mpi, dest, (1, t));
    MPI_Compare_and_swap = PMPI_Compare_and_swap(b: In, old: In, rb: Out, t: Handle, dest: c_int, at: Offset, w: Word) into dest of w sends to(mpi, dest, (1, t));
    MPI_Rput = PMPI_Rput(b: In, n: c_int, t: Handle, dest: c_int, at: Offset, rn: c_int, rt: Handle, w: Word, r: Open) into dest of w sends to(mpi, dest, (n, t));
    MPI_Rget = PMPI_Rget(b: Out, n: c_int, t: Handle, dest: c_int, at: Offset, rn: c_int, rt: Handle, w: Word, r: Open) into dest of w sends to(mpi, dest, (n, t));
    MPI_Raccumulate = PMPI_Raccumulate(b: In, n: c_int, t: Handle, dest: c_int, at: Offset, rn: c_int, rt: Handle, o: Handle, w: Word, r: Open) into dest of w sends to(mpi, dest, (n, t));
    MPI_Rget_accumulate = PMPI_Rget_accumulate(b: In, n: c_int, t: Handle, rb: Out, rn: c_int, rt: Handle, dest: c_int, at: Offset, n2: c_int, t2: Handle, o: Handle, w: Word, r: Open) into dest of w sends to(mpi, dest, (n2, t2));
    MPI_Win_create_dynamic = PMPI_Win_create_dynamic(i: Word, c: Handle, w: Open) sends 0;
    MPI_Win_allocate_shared = PMPI_Win_allocate_shared(n: Offset, unit: c_int, i: Word, c: Handle, b: Out, w: Open) sends 0;
    MPI_Win_create = PMPI_Win_create(b: Out, n: Offset, unit: c_int, i: Word, c: Handle, w: Open) sends 0;
    MPI_Win_allocate = PMPI_Win_allocate(n: Offset, unit: c_int, i: Word, c: Handle, b: Out, w: Open) sends 0;
    MPI_Win_free = PMPI_Win_free(w: Open) sends 0;
    MPI_Win_fence = PMPI_Win_fence(assert: c_int, w: Word) sends 0;
    MPI_Win_post = PMPI_Win_post(g: Word, assert: c_int, w: Word) sends 0;
    MPI_Win_start = PMPI_Win_start(g: Word, assert: c_int, w: Word) sends 0;
    MPI_Win_complete = PMPI_Win_complete(w: Word) sends 0;
    MPI_Win_wait = PMPI_Win_wait(w: Word) sends 0;
    MPI_Win_test = PMPI_Win_test(w: Word, flag: *mut c_int) sends 0;
    MPI_Win_sync = PMPI_Win_sync(w: Word) sends 0;
    MPI_Win_lock = PMPI_Win_lock(kind: c_int, dest: c_int, assert: c_int, w: Word) sends 0;
    MPI_Win_unlock = PMPI_Win_unlock(dest: c_int, w: Word) sends 0;
    MPI_Win_lock_all = PMPI_Win_lock_all(assert: c_int, w: Word) sends 0;
    MPI_Win_unlock_all = PMPI_Win_unlock_all(w: Word) sends 0;
    MPI_Win_flush = PMPI_Win_flush(dest: c_int, w: Word) sends 0;
    MPI_Win_flush_all = PMPI_Win_flush_all(w: Word) sends 0;
    MPI_Win_flush_local = PMPI_Win_flush_local(dest: c_int, w: Word) sends 0;
    MPI_Win_flush_local_all = PMPI_Win_flush_local_all(w: Word) sends 0;
}

// communicators, and other programs
take_over! {
    with mpi;
    MPI_Comm_dup = PMPI_Comm_dup(c: Handle, new: Open) sends 0;
    MPI_Comm_idup = PMPI_Comm_idup(c: Handle, new: Open, r: Open) sends 0;
    MPI_Comm_dup_with_info = PMPI_Comm_dup_with_info(c: Handle, i: Word, new: Open) sends 0;
    MPI_Comm_free = PMPI_Comm_free(c: Open) sends 0;
    MPI_Comm_disconnect = PMPI_Comm_disconnect(c: Open) sends 0;
    MPI_Comm_spawn = PMPI_Comm_spawn(name: In, arguments: Open, n: c_int, i: Word, root: c_int, c: Handle, new: Open, codes: Out) sends 0;
    MPI_Comm_spawn_multiple = PMPI_Comm_spawn_multiple(kinds: c_int, names: Open, arguments: Open, ns: Counts, i: List, root: c_int, c: Handle, new: Open, codes: Out) sends 0;
    MPI_Comm_accept = PMPI_Comm_accept(port: In, i: Word, root: c_int, c: Handle, new: Open) sends 0;
    MPI_Comm_connect = PMPI_Comm_connect(port: In, i: Word, root: c_int, c: Handle, new: Open) sends 0;
    MPI_Comm_join = PMPI_Comm_join(socket: c_int, new: Open) sends 0;
    MPI_Publish_name = PMPI_Publish_name(name: In, i: Word, port: In) sends 0;
    MPI_Unpublish_name = PMPI_Unpublish_name(name: In, i: Word, port: In) sends 0;
    MPI_Lookup_name = PMPI_Lookup_name(name: In, i: Word, port: Out) sends 0;
    MPI_Intercomm_create = PMPI_Intercomm_create(c: Handle, leader: c_int, p: Handle, remote: c_int, tag: c_int, new: Open) sends 0;
    MPI_Intercomm_merge = PMPI_Intercomm_merge(c: Handle, high: c_int, new: Open) sends 0;
    MPI_Comm_split = PMPI_Comm_split(c: Handle, color: c_int, key: c_int, new: Open) sends 0;
    MPI_Comm_split_type = PMPI_Comm_split_type(c: Handle, kind: c_int, key: c_int, i: Word, new: Open) sends 0;
    MPI_Comm_create = PMPI_Comm_create(c: Handle, g: Word, new: Open) sends 0;
    MPI_Comm_create_group = PMPI_Comm_create_group(c: Handle, g: Word, tag: c_int, new: Open) sends 0;
    MPI_Cart_create = PMPI_Cart_create(c: Handle, n: c_int, dims: Counts, periods: Counts, reorder: c_int, new: Open) sends 0;
    MPI_Cart_sub = PMPI_Cart_sub(c: Handle, remain: Counts, new: Open) sends 0;
    MPI_Graph_create = PMPI_Graph_create(c: Handle, n: c_int, index: Counts, edges: Counts, reorder: c_int, new: Open) sends 0;
    MPI_Dist_graph_create_adjacent = PMPI_Dist_graph_create_adjacent(c: Handle, n: c_int, from: Counts, w: Counts, m: c_int, to: Counts, v: Counts, i: Word, reorder: c_int, new: Open) sends 0;
    MPI_Dist_graph_create = PMPI_Dist_graph_create(c: Handle, n: c_int, from: Counts, degrees: Counts, to: Counts, w: Counts, i: Word, reorder: c_int, new: Open) sends 0;
}

// files: their bytes are no messages of the program's
take_over! {
    with mpi;
    MPI_File_open = PMPI_File_open(c: Handle, name: In, mode: c_int, i: Word, f: Open) sends 0;
    MPI_File_close = PMPI_File_close(f: Open) sends 0;
    MPI_File_set_view = PMPI_File_set_view(f: Word, at: Offset, t: Handle, ft: Handle, name: In, i: Word) sends 0;
    MPI_File_set_size = PMPI_File_set_size(f: Word, n: Offset) sends 0;
    MPI_File_sync = PMPI_File_sync(f: Word) sends 0;
    MPI_File_seek = PMPI_File_seek(f: Word, at: Offset, whence: c_int) sends 0;
    MPI_File_seek_shared = PMPI_File_seek_shared(f: Word, at: Offset, whence: c_int) sends 0;
    MPI_File_get_position_shared = PMPI_File_get_position_shared(f: Word, at: Open) sends 0;
    MPI_File_set_atomicity = PMPI_File_set_atomicity(f: Word, flag: c_int) sends 0;
    MPI_File_set_info = PMPI_File_set_info(f: Word, i: Word) sends 0;
    MPI_File_read = PMPI_File_read(f: Word, b: Out, n: c_int, t: Handle, s: Status) sends 0;
    MPI_File_read_all = PMPI_File_read_all(f: Word, b: Out, n: c_int, t: Handle, s: Status) sends 0;
    MPI_File_read_at = PMPI_File_read_at(f: Word, at: Offset, b: Out, n: c_int, t: Handle, s: Status) sends 0;
    MPI_File_read_at_all = PMPI_File_read_at_all(f: Word, at: Offset, b: Out, n: c_int, t: Handle, s: Status) sends 0;
    MPI_File_read_shared = PMPI_File_read_shared(f: Word, b: Out, n: c_int, t: Handle, s: Status) sends 0;
    MPI_File_read_ordered = PMPI_File_read_ordered(f: Word, b: Out, n: c_int, t: Handle, s: Status) sends 0;
    MPI_File_write = PMPI_File_write(f: Word, b: In, n: c_int, t: Handle, s: Status) sends 0;
    MPI_File_write_all = PMPI_File_write_all(f: Word, b: In, n: c_int, t: Handle, s: Status) sends 0;
    MPI_File_write_at = PMPI_File_write_at(f: Word, at: Offset, b: In, n: c_int, t: Handle, s: Status) sends 0;
    MPI_File_write_at_all = PMPI_File_write_at_all(f: Word, at: Offset, b: In, n: c_int, t: Handle, s: Status) sends 0;
    MPI_File_write_shared = PMPI_File_write_shared(f: Word, b: In, n: c_int, t: Handle, s: Status) sends 0;
    MPI_File_write_ordered = PMPI_File_write_ordered(f: Word, b: In, n: c_int, t: Handle, s: Status) sends 0;
    MPI_File_iread = PMPI_File_iread(f: Word, b: Out, n: c_int, t: Handle, r: Open) sends 0;
    MPI_File_iread_at = PMPI_File_iread_at(f: Word, at: Offset, b: Out, n: c_int, t: Handle, r: Open) sends 0;
    MPI_File_iwrite = PMPI_File_iwrite(f: Word, b: In, n: c_int, t: Handle, r: Open) sends 0;
    MPI_File_iwrite_at = PMPI_File_iwrite_at(f: Word, at: Offset, b: In, n: c_int, t: Handle, r: Open) sends 0;
    MPI_File_read_all_begin = PMPI_File_read_all_begin(f: Word, b: Out, n: c_int, t: Handle) sends 0;
    MPI_File_read_all_end = PMPI_File_read_all_end(f: Word, b: Out, s: Status) sends 0;
    MPI_File_read_at_all_begin = PMPI_File_read_at_all_begin(f: Word, at: Offset, b: Out, n: c_int, t: Handle) sends 0;
    MPI_File_read_at_all_end = PMPI_File_read_at_all_end(f: Word, b: Out, s: Status) sends 0;
    MPI_File_read_ordered_begin = PMPI_File_read_ordered_begin(f: Word, b: Out, n: c_int, t: Handle) sends 0;
    MPI_File_read_ordered_end = PMPI_File_read_ordered_end(f: Word, b: Out, s: Status) sends 0;
    MPI_File_iread_all = PMPI_File_iread_all(f: Word, b: Out, n: c_int, t: Handle, r: Open) sends 0;
    MPI_File_iread_at_all = PMPI_File_iread_at_all(f: Word, at: Offset, b: Out, n: c_int, t: Handle, r: Open) sends 0;
    MPI_File_iread_shared = PMPI_File_iread_shared(f: Word, b: Out, n: c_int, t: Handle, r: Open) sends 0;
    MPI_File_write_all_begin = PMPI_File_write_all_begin(f: Word, b: In, n: c_int, t: Handle) sends 0;
    MPI_File_write_all_end = PMPI_File_write_all_end(f: Word, b: In, s: Status) sends 0;
    MPI_File_write_at_all_begin = PMPI_File_write_at_all_begin(f: Word, at: Offset, b: In, n: c_int, t: Handle) sends 0;
    MPI_File_write_at_all_end = PMPI_File_write_at_all_end(f: Word, b: In, s: Status) sends 0;
    MPI_File_write_ordered_begin = PMPI_File_write_ordered_begin(f: Word, b: In, n: c_int, t: Handle) sends 0;
    MPI_File_write_ordered_end = PMPI_File_write_ordered_end(f: Word, b: In, s: Status) sends 0;
    MPI_File_iwrite_all = PMPI_File_iwrite_all(f: Word, b: In, n: c_int, t: Handle, r: Open) sends 0;
    MPI_File_iwrite_at_all = PMPI_File_iwrite_at_all(f: Word, at: Offset, b: In, n: c_int, t: Handle, r: Open) sends 0;
    MPI_File_iwrite_shared = PMPI_File_iwrite_shared(f: Word, b: In, n: c_int, t: Handle, r: Open) sends 0;
    MPI_File_preallocate = PMPI_File_preallocate(f: Word, n: Offset) sends 0;
    MPI_File_delete = PMPI_File_delete(name: In, i: Word) sends 0;
}
