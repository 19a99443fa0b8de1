//! Messages that are described once and started often: what is started is a request, of which it was noted what it sends.

use crate::library::{Handle, Mpi};
use crate::names::define;
use crate::sizes::{Within, to};
use crate::{Stay, note, range, reported};
use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

type In = *const c_void;
/// A request, or several.
type Open = *mut c_void;

/// What a request sends each time that it is started.
#[derive(Clone, Copy)]
struct Message {
    bytes: usize,
    /// The sender's rank, and how much further the receiver's is.
    partner: Option<(usize, isize)>,
}

/// By request. Those that receive are none of them.
static MESSAGES: Mutex<Option<HashMap<Handle, Message>>> = Mutex::new(None);

fn messages() -> MutexGuard<'static, Option<HashMap<Handle, Message>>> {
    MESSAGES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Describes a message, or one that is received. It is known also where nothing is noted yet: what starts it may be.
fn described(name: &'static str, call: impl FnOnce() -> c_int, request: Open, what: impl FnOnce(&Mpi) -> Option<Message>) -> c_int {
    let stay = Stay::begin();
    let code = call();
    let seconds = stay.map(Stay::end);
    if let (0, Some(mpi)) = (code, reported()) {
        let message = what(mpi);
        // SAFETY: the call succeeded, and wrote a request
        let request = unsafe { mpi.handle_in(request, 0) };
        let mut known = messages();
        let known = known.get_or_insert_default();
        // another one may have had its handle
        match message {
            Some(message) => known.insert(request, message),
            None => known.remove(&request),
        };
        if let Some(seconds) = seconds {
            let (digits, size) = range(0);
            note(|profile| profile.note(name, size, digits, seconds, 0));
        }
    }
    code
}

/// Starts requests: each of them that sends is noted as a message, `Start`, also where one call starts all.
fn started(call: impl FnOnce() -> c_int, requests: Open, count: usize) -> c_int {
    let Some(stay) = Stay::begin() else { return call() };
    let code = call();
    let mpi = stay.mpi;
    let seconds = stay.end();
    if code == 0 {
        let find = |k: usize| {
            // SAFETY: the call succeeded on so many requests
            let request = unsafe { mpi.handle_in(requests, k) };
            messages().as_ref().and_then(|known| known.get(&request)).copied()
        };
        let sent: Vec<Message> = (0..count).filter_map(find).collect();
        note(|profile| {
            let each_s = seconds / sent.len().max(1) as f64;
            for Message { bytes, partner } in &sent {
                let (digits, size) = range(*bytes);
                profile.note("Start", size, digits, each_s, *bytes);
                if let Some(far) = partner {
                    profile.note_partner("Start", size, *far, *bytes);
                }
            }
            if sent.is_empty() {
                // under another name than messages have
                let (digits, size) = range(0);
                profile.note("Startall", size, digits, seconds, 0);
            }
        });
    }
    code
}

macro_rules! describe {
    ($($name:ident = $own:ident as $short:literal;)*) => {$(
        define!($name = $own(b: In, n: c_int, t: Handle, dest: c_int, tag: c_int, c: Handle, r: Open) by |call| {
            described($short, call, r, |mpi| {
                // SAFETY: the call succeeded with these arguments
                unsafe { Some(Message { bytes: to(mpi, dest, (n, t)), partner: Within::Communicator(c).distance(mpi, dest) }) }
            })
        });
    )*};
}

describe! {
    MPI_Send_init = PMPI_Send_init as "Send_init";
    MPI_Ssend_init = PMPI_Ssend_init as "Ssend_init";
    MPI_Rsend_init = PMPI_Rsend_init as "Rsend_init";
    MPI_Bsend_init = PMPI_Bsend_init as "Bsend_init";
}

define!(MPI_Start = PMPI_Start(r: Open) by |call| { started(call, r, 1) });
define!(MPI_Startall = PMPI_Startall(n: c_int, r: Open) by |call| { started(call, r, usize::try_from(n).unwrap_or(0)) });

define!(MPI_Recv_init = PMPI_Recv_init(b: In, n: c_int, t: Handle, source: c_int, tag: c_int, c: Handle, r: Open) by |call| {
    described("Recv_init", call, r, |_| None)
});

// another one may have its handle then
define!(MPI_Request_free = PMPI_Request_free(r: Open) by |call| {
    if let (Some(mpi), false) = (reported(), r.is_null()) {
        // SAFETY: the caller's request
        let request = unsafe { mpi.handle_in(r, 0) };
        if let Some(known) = messages().as_mut() {
            known.remove(&request);
        }
    }
    call()
});
