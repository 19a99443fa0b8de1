//! The adaptive collectives by the arguments of MPI's own functions, for what is called from C.
//!
//! Each does what its namesake does, and returns its code after the communicator's error handler was called. Where nothing is planned, or the arguments
//! are none that MPI's function has, that is called with them as they came. `MPI_IN_PLACE` is understood; under a library whose value of it is
//! not known, all calls are the library's own.
#![allow(clippy::missing_safety_doc, clippy::too_many_arguments)] // each has the contract of its namesake

use super::addresses::is_special;
use super::call::{self, Call};
use super::codes::told;
use super::communicator::{self, sizes};
use super::items::Items;
use super::nonblocking::{IALLREDUCE, IBARRIER, IBCAST, Immediate, Pending, begin};
use super::quick::{self, Key, Way, Words};
use super::refused::{combines, is_predefined};
use super::settings::{self, POLICY_VARIABLE};
use super::vector::{self, Blocks};
use super::{rank, under_way};
use crate::collective::{self, Collective, allgather, allreduce, alltoall, barrier, bcast, gather, reduce, reduce_scatter, scatter};
use crate::error::{Error, Result};
use crate::plan::OWN;
use crate::topology::Rank;
use crate::transport::library;
use crate::transport::mpi::is_initialized;
use crate::transport::native::{self, functions};
use mpi::ffi::{self, MPI_Comm as Comm, MPI_Datatype as Datatype, MPI_Op as Op, MPI_Request as Request};
use mpi::request::StaticScope;
use std::os::raw::{c_int, c_void};
use std::ptr::{null, null_mut};
use std::sync::OnceLock;

pub use super::addresses::{in_place, is_in_place};
pub use super::codes::{code, reason, words};

type In = *const c_void;
type Out = *mut c_void;
type Ints = *const c_int;

/// Broadcasts from a root.
#[inline]
pub unsafe fn bcast(data: Out, count: c_int, datatype: Datatype, root: c_int, comm: Comm) -> c_int {
    let own =
        move |own: Option<library::Message>| unsafe { own.unwrap_or_else(|| functions().PMPI_Bcast)(data, count, datatype, root, comm) };
    let call = move |()| Some(Call::new(&bcast::COLLECTIVE, comm, root as Rank, (Items::none(), items(data, count, datatype)), None));
    let key = key(&bcast::COLLECTIVE, false, [count as usize, word(datatype), root as usize]);
    unsafe { adaptively(comm, key, (null(), data), call, own) }
}

/// Returns when all have come.
#[inline]
pub unsafe fn barrier(comm: Comm) -> c_int {
    let call = move |()| Some(Call::new(&barrier::COLLECTIVE, comm, 0, (Items::none(), Items::none()), None));
    let own = move |own: Option<library::Alone>| unsafe { own.unwrap_or_else(|| functions().PMPI_Barrier)(comm) };
    unsafe { adaptively(comm, key(&barrier::COLLECTIVE, false, []), (null(), null_mut()), call, own) }
}

/// Combines what all give, for all.
#[inline]
pub unsafe fn allreduce(given: In, got: Out, count: c_int, datatype: Datatype, op: Op, comm: Comm) -> c_int {
    let own = move |own: Option<library::Combined>| unsafe {
        own.unwrap_or_else(|| functions().PMPI_Allreduce)(given, got, count, datatype, op, comm)
    };
    let call = move |()| combined(&allreduce::COLLECTIVE, (given, got), (i64::from(count), i64::from(count)), datatype, op, (0, comm));
    let key = key(&allreduce::COLLECTIVE, is_special(given), [count as usize, word(datatype), op.0 as usize]);
    unsafe { adaptively(comm, key, (given, got), call, own) }
}

/// Combines what all give, for the root.
#[inline]
pub unsafe fn reduce(given: In, got: Out, count: c_int, datatype: Datatype, op: Op, root: c_int, comm: Comm) -> c_int {
    let own = move |own: Option<library::CombinedAtRoot>| unsafe {
        own.unwrap_or_else(|| functions().PMPI_Reduce)(given, got, count, datatype, op, root, comm)
    };
    let call = move |()| {
        let count = i64::from(count);
        // in place is the root's word alone
        let elsewhere = is_in_place(given) && rank(comm).ok()? != root as Rank;
        if elsewhere { None } else { combined(&reduce::COLLECTIVE, (given, got), (count, count), datatype, op, (root as Rank, comm)) }
    };
    let key = key(&reduce::COLLECTIVE, is_special(given), [count as usize, word(datatype), op.0 as usize, root as usize]);
    unsafe { adaptively(comm, key, (given, got), call, own) }
}

/// Combines what all give, a block for each, which gets it.
#[inline]
pub unsafe fn reduce_scatter_block(given: In, got: Out, count: c_int, datatype: Datatype, op: Op, comm: Comm) -> c_int {
    let own = move |own: Option<library::Combined>| unsafe {
        own.unwrap_or_else(|| functions().PMPI_Reduce_scatter_block)(given, got, count, datatype, op, comm)
    };
    let call = move |()| {
        let counts = (i64::from(count) * sizes(comm).ok()?.0 as i64, i64::from(count));
        combined(&reduce_scatter::COLLECTIVE, (given, got), counts, datatype, op, (0, comm))
    };
    let key = key(&reduce_scatter::COLLECTIVE, is_special(given), [count as usize, word(datatype), op.0 as usize]);
    unsafe { adaptively(comm, key, (given, got), call, own) }
}

/// Combines what all give, a block of any size for each, which gets it.
pub unsafe fn reduce_scatter(given: In, got: Out, counts: Ints, datatype: Datatype, op: Op, comm: Comm) -> c_int {
    let own = || unsafe { native::PMPI_Reduce_scatter(given, got, counts, datatype, op, comm) };
    let run = || {
        let (counts, me) = (unsafe { listed(counts, sizes(comm)?.0)? }, rank(comm)?);
        let all = counts.iter().map(|&count| i64::from(count)).sum();
        if is_in_place(got) {
            return Err(Error::invalid("reduce into what is in place"));
        }
        let (whole, block) = (Items { data: given.cast_mut().cast(), count: all, datatype }, items(got, counts[me], datatype));
        let buffers = if is_in_place(given) { (Items { data: got.cast(), ..whole }, None) } else { (whole, Some(block)) };
        unsafe {
            vector::reduce_scatter(
                comm,
                buffers,
                counts,
                (op, commutes(op, datatype).ok_or_else(|| Error::invalid("combine: there is no such operation"))?),
            )
        }
    };
    unsafe { of_vectors(comm, run, own) }
}

/// Brings everybody's block to the root.
#[inline]
pub unsafe fn gather(from: In, n: c_int, t: Datatype, into: Out, m: c_int, u: Datatype, root: c_int, comm: Comm) -> c_int {
    let own = move |own: Option<library::BlocksOfRoot>| unsafe {
        own.unwrap_or_else(|| functions().PMPI_Gather)(from, n, t, into, m, u, root, comm)
    };
    let call = move |()| {
        let collective = &gather::COLLECTIVE;
        let at_root = at_root(root, comm)?;
        let all = if at_root { blocks(into, m, u, comm)? } else { Items::none() };
        Some(match (is_in_place(from), at_root) {
            (true, false) => return None,
            (true, true) => Call::in_place(collective, comm, root as Rank, all, None),
            (false, _) => Call::new(collective, comm, root as Rank, (items(from.cast_mut(), n, t), all), None),
        })
    };
    let key = key(&gather::COLLECTIVE, is_special(from), [n as usize, word(t), m as usize, word(u), root as usize]);
    unsafe { adaptively(comm, key, (from, into), call, own) }
}

/// Brings everybody its block of what the root has.
#[inline]
pub unsafe fn scatter(from: In, n: c_int, t: Datatype, into: Out, m: c_int, u: Datatype, root: c_int, comm: Comm) -> c_int {
    let own = move |own: Option<library::BlocksOfRoot>| unsafe {
        own.unwrap_or_else(|| functions().PMPI_Scatter)(from, n, t, into, m, u, root, comm)
    };
    let call = move |()| {
        let collective = &scatter::COLLECTIVE;
        let at_root = at_root(root, comm)?;
        let all = if at_root { blocks(from.cast_mut(), n, t, comm)? } else { Items::none() };
        Some(match (is_in_place(into), at_root) {
            (true, false) => return None,
            (true, true) => Call::in_place(collective, comm, root as Rank, all, None),
            (false, _) => Call::new(collective, comm, root as Rank, (all, items(into, m, u)), None),
        })
    };
    let key = key(&scatter::COLLECTIVE, is_special(into), [n as usize, word(t), m as usize, word(u), root as usize]);
    unsafe { adaptively(comm, key, (from, into), call, own) }
}

/// Brings everybody's block to all.
#[inline]
pub unsafe fn allgather(from: In, n: c_int, t: Datatype, into: Out, m: c_int, u: Datatype, comm: Comm) -> c_int {
    let own =
        move |own: Option<library::Blocks>| unsafe { own.unwrap_or_else(|| functions().PMPI_Allgather)(from, n, t, into, m, u, comm) };
    let call = move |()| {
        let (collective, all) = (&allgather::COLLECTIVE, blocks(into, m, u, comm)?);
        let given = || items(from.cast_mut(), n, t);
        Some(if is_in_place(from) {
            Call::in_place(collective, comm, 0, all, None)
        } else {
            Call::new(collective, comm, 0, (given(), all), None)
        })
    };
    let key = key(&allgather::COLLECTIVE, is_special(from), [n as usize, word(t), m as usize, word(u)]);
    unsafe { adaptively(comm, key, (from, into), call, own) }
}

/// Brings everybody a block from each.
#[inline]
pub unsafe fn alltoall(from: In, n: c_int, t: Datatype, into: Out, m: c_int, u: Datatype, comm: Comm) -> c_int {
    let own = move |own: Option<library::Blocks>| unsafe { own.unwrap_or_else(|| functions().PMPI_Alltoall)(from, n, t, into, m, u, comm) };
    let call = move |()| {
        let (collective, all) = (&alltoall::COLLECTIVE, blocks(into, m, u, comm)?);
        Some(match is_in_place(from) {
            true => Call::in_place(collective, comm, 0, all, None),
            false => Call::new(collective, comm, 0, (blocks(from.cast_mut(), n, t, comm)?, all), None),
        })
    };
    let key = key(&alltoall::COLLECTIVE, is_special(from), [n as usize, word(t), m as usize, word(u)]);
    unsafe { adaptively(comm, key, (from, into), call, own) }
}

/// Brings everybody's block, of any size, to all.
pub unsafe fn allgatherv(from: In, n: c_int, t: Datatype, into: Out, counts: Ints, places: Ints, u: Datatype, comm: Comm) -> c_int {
    let own = || unsafe { native::PMPI_Allgatherv(from, n, t, into, counts, places, u, comm) };
    let run = || {
        let (ranks, remote) = sizes(comm)?;
        let ranks = remote.unwrap_or(ranks);
        let (counts, places) = unsafe { (listed(counts, ranks)?, listed(places, ranks)?) };
        let given = (!is_in_place(from)).then(|| items(from.cast_mut(), n, t));
        unsafe { vector::allgatherv(comm, given, Blocks::new(into.cast(), u, counts, places)) }
    };
    unsafe { of_vectors(comm, run, own) }
}

/// Brings everybody's block, of any size, to the root: the library's own.
pub unsafe fn gatherv(
    from: In,
    n: c_int,
    t: Datatype,
    into: Out,
    counts: Ints,
    places: Ints,
    u: Datatype,
    root: c_int,
    comm: Comm,
) -> c_int {
    settle(comm);
    unsafe { native::PMPI_Gatherv(from, n, t, into, counts, places, u, root, comm) }
}

/// Brings everybody its block, of any size, of what the root has: the library's own.
pub unsafe fn scatterv(
    from: In,
    counts: Ints,
    places: Ints,
    t: Datatype,
    into: Out,
    m: c_int,
    u: Datatype,
    root: c_int,
    comm: Comm,
) -> c_int {
    settle(comm);
    unsafe { native::PMPI_Scatterv(from, counts, places, t, into, m, u, root, comm) }
}

/// Brings everybody a block, of any size, from each: the library's own.
pub unsafe fn alltoallv(
    from: In,
    counts: Ints,
    places: Ints,
    t: Datatype,
    into: Out,
    also: Ints,
    there: Ints,
    u: Datatype,
    comm: Comm,
) -> c_int {
    settle(comm);
    unsafe { native::PMPI_Alltoallv(from, counts, places, t, into, also, there, u, comm) }
}

/// Completes what was begun on a communicator: before the library's own functions are called there, in which it would get no further.
#[inline]
pub fn settle(comm: Comm) {
    under_way::finish(comm, None);
}

/// Begins a broadcast.
pub unsafe fn ibcast(data: Out, count: c_int, datatype: Datatype, root: c_int, comm: Comm) -> (c_int, Option<Pending<'static>>) {
    let own = |request: &mut Request| unsafe { native::PMPI_Ibcast(data, count, datatype, root, comm, request) };
    let call = |()| Some(Call::new(&bcast::COLLECTIVE, comm, root as Rank, (Items::none(), items(data, count, datatype)), None));
    unsafe { begun(comm, &IBCAST, call, own) }
}

/// Begins to combine what all give, for all.
pub unsafe fn iallreduce(given: In, got: Out, n: c_int, t: Datatype, op: Op, comm: Comm) -> (c_int, Option<Pending<'static>>) {
    let own = |request: &mut Request| unsafe { native::PMPI_Iallreduce(given, got, n, t, op, comm, request) };
    let call = |()| combined(&allreduce::COLLECTIVE, (given, got), (i64::from(n), i64::from(n)), t, op, (0, comm));
    unsafe { begun(comm, &IALLREDUCE, call, own) }
}

/// Begins a barrier.
pub unsafe fn ibarrier(comm: Comm) -> (c_int, Option<Pending<'static>>) {
    let call = |()| Some(Call::new(&barrier::COLLECTIVE, comm, 0, (Items::none(), Items::none()), None));
    unsafe { begun(comm, &IBARRIER, call, |request| native::PMPI_Ibarrier(comm, request)) }
}

/// What a collective does on a communicator, from a root and with so many bytes, in a line, and the seconds that it should take, if that is known. Nothing is
/// set up for it, and nobody waits.
///
/// # Errors
/// There is no such collective or root, or MPI's reason.
pub unsafe fn explain(collective: &str, bytes: usize, root: Rank, comm: Comm) -> Result<(String, Option<f64>)> {
    let collective = collective::collective(collective)?;
    // SAFETY: the caller's communicator
    match unsafe { communicator::planned(comm)? } {
        Some(planned) => planned.explain(collective, root, bytes),
        None => Ok((format!("{OWN} (a communicator has plans from its second collective on at the latest, if a policy fits)"), None)),
    }
}

/// Reads what the environment names, now, or when MPI runs: a program may go to another folder. Without a policy there is nothing to read.
///
/// # Errors
/// What is named cannot be read, or is wrong; the reason stays that for all communicators.
pub fn read_settings() -> Result<()> {
    if !is_initialized() || std::env::var_os(POLICY_VARIABLE).is_none_or(|name| name.is_empty()) {
        return Ok(());
    }
    settings::host(super::world_rank()?)?;
    settings::policy().map(drop)
}

/// Sets MPI_COMM_WORLD up, in MPI_Init: its first collective has a plan. Where the processes cannot all go by one policy, or it does not have their hosts, the
/// first ones say why. Collective over all processes.
///
/// # Errors
/// MPI's reason.
pub fn start() -> Result<()> {
    communicator::start()
}

/// Frees all that is kept for communicators, which use the library's own collectives from then on. Collective over all processes; `MPI_Finalize` does it too.
pub fn finalize() {
    if is_initialized() {
        super::team::end();
    }
}

/// True where nothing but the library's own can be called: outside MPI, on no communicator, or where the value of `MPI_IN_PLACE` is not known.
#[inline]
fn is_the_librarys(comm: Comm) -> bool {
    static UNKNOWN: OnceLock<bool> = OnceLock::new();
    // SAFETY: a constant of the library
    if comm == unsafe { ffi::RSMPI_COMM_NULL } {
        return true;
    }
    match UNKNOWN.get() {
        Some(unknown) => *unknown,
        None if !is_initialized() => true,
        None => *UNKNOWN.get_or_init(|| in_place().is_none()),
    }
}

/// What a call is remembered by.
#[inline]
fn key<const N: usize>(collective: &'static Collective, in_place: bool, asked: [usize; N]) -> Key<N> {
    Key::new(collective, Words::Mpis, in_place, asked)
}

/// A datatype's handle as a number.
#[inline]
fn word(datatype: Datatype) -> usize {
    datatype.0 as usize
}

/// Runs a call, if it is one that can be planned, or else the library's own, which is given where it is known; it must be of the type of the collective's.
#[inline(always)] // a call that is remembered compares and jumps
unsafe fn adaptively<F: Copy, const N: usize>(
    comm: Comm,
    key: Key<N>,
    (given, got): (In, Out),
    call: impl FnOnce(()) -> Option<Call>,
    own: impl Fn(Option<F>) -> c_int,
) -> c_int {
    // outside MPI, and on no communicator, nothing is remembered
    // SAFETY: the caller's arguments; what is found is read before MPI is called, which may call a user's reduction, and that this
    unsafe {
        if let Some(quick) = quick::find(comm, &key) {
            if let Some(function) = quick.function() {
                return own(Some(function));
            }
            match quick.way {
                Some(Way::Message(planned, message)) if !is_special(message.base(given.cast_mut().cast(), got.cast()).cast()) => {
                    let done = (*planned.as_ptr()).message(&message, message.base(given.cast_mut().cast(), got.cast()));
                    let Err(failed) = done else { return ffi::MPI_SUCCESS as c_int };
                    return told(comm, Err(failed));
                }
                Some(Way::Nothing) if !is_in_place(got) => return ffi::MPI_SUCCESS as c_int,
                _ => {}
            }
        }
        look_up(comm, key, call, move || own(None))
    }
}

#[inline(never)]
unsafe fn look_up<const N: usize>(comm: Comm, key: Key<N>, call: impl FnOnce(()) -> Option<Call>, own: impl Fn() -> c_int) -> c_int {
    if is_the_librarys(comm) {
        return own();
    }
    let Some(call) = call(()).filter(|call| !call.is_misplaced()) else {
        under_way::finish(comm, None);
        return own();
    };
    // SAFETY: the caller's arguments
    told(comm, unsafe { call::look_up_or(&call, key, own) })
}

/// Runs a collective of blocks of any sizes, or where there is no such call the library's own.
unsafe fn of_vectors(comm: Comm, run: impl FnOnce() -> Result<()>, own: impl Fn() -> c_int) -> c_int {
    if is_the_librarys(comm) {
        return own();
    }
    match run() {
        Err(Error::Invalid(_)) => {
            under_way::finish(comm, None);
            own()
        }
        result => told(comm, result),
    }
}

/// Begins a call, if it is one that can be planned, or else the library's own.
unsafe fn begun(
    comm: Comm,
    immediate: &Immediate,
    call: impl FnOnce(()) -> Option<Call>,
    own: impl Fn(&mut Request) -> c_int,
) -> (c_int, Option<Pending<'static>>) {
    let librarys = || {
        // SAFETY: a constant of the library
        let mut request = unsafe { ffi::RSMPI_REQUEST_NULL };
        match own(&mut request) {
            code if code == ffi::MPI_SUCCESS as c_int => (code, Some(Pending::of_the_library(request))),
            code => (code, None),
        }
    };
    let Some(call) = (!is_the_librarys(comm)).then(|| call(())).flatten().filter(|call| !call.is_misplaced()) else { return librarys() };
    // SAFETY: the caller lends the items until it is over
    match unsafe { begin(&call, immediate, StaticScope) } {
        Ok(pending) => (ffi::MPI_SUCCESS as c_int, Some(pending)),
        Err(Error::Invalid(_)) => librarys(),
        Err(error) => (told(comm, Err(error)), None),
    }
}

/// A call that combines what is given, or what lies in place of that.
fn combined(
    collective: &'static Collective,
    (given, got): (In, Out),
    (gives, gets): (i64, i64),
    datatype: Datatype,
    op: Op,
    (root, comm): (Rank, Comm),
) -> Option<Call> {
    let operation = Some((op, commutes(op, datatype)?));
    let whole = |data: Out| Items { data: data.cast(), count: gives, datatype };
    Some(match is_in_place(given) {
        true => Call::in_place(collective, comm, root, whole(got), operation),
        false => Call::new(collective, comm, root, (whole(given.cast_mut()), Items { count: gets, ..whole(got) }), operation),
    })
}

/// Whether an operation commutes; nothing of what is none, of which the library's own function says so to the communicator's error handler.
fn commutes(op: Op, datatype: Datatype) -> Option<bool> {
    if is_predefined(op) {
        return Some(true);
    }
    // MPI_Op_commutative calls the error handler of MPI_COMM_WORLD
    // SAFETY: an operation and a datatype, or what MPI refuses
    if unsafe { !combines(op, datatype) } {
        return None;
    }
    let mut commutes: c_int = 0;
    // SAFETY: an operation
    let code = unsafe { native::PMPI_Op_commutative(op, &mut commutes) };
    (code == ffi::MPI_SUCCESS as c_int).then_some(commutes != 0)
}

/// True at the root, also where that is in another group and this is its only rank that counts.
pub fn at_root(root: c_int, comm: Comm) -> Option<bool> {
    #[allow(clippy::unnecessary_cast)] // another type under SMPI
    let here = if sizes(comm).ok()?.1.is_some() { ffi::MPI_ROOT as c_int } else { rank(comm).ok()? as c_int };
    Some(root == here)
}

/// A block for each rank.
fn blocks(data: Out, count: c_int, datatype: Datatype, comm: Comm) -> Option<Items> {
    let (ranks, remote) = sizes(comm).ok()?;
    Some(Items { data: data.cast(), count: i64::from(count) * remote.unwrap_or(ranks) as i64, datatype })
}

fn items(data: Out, count: c_int, datatype: Datatype) -> Items {
    Items { data: data.cast(), count: i64::from(count), datatype }
}

/// A list of the caller's, of so many.
unsafe fn listed<'a>(list: Ints, ranks: usize) -> Result<&'a [c_int]> {
    // SAFETY: the caller's, as MPI's function reads it
    if list.is_null() { Err(Error::invalid("read a list that is null")) } else { Ok(unsafe { std::slice::from_raw_parts(list, ranks) }) }
}
