//! Preloaded under MPI ranks: lets them sleep while they wait.
//!
//! MPI libraries wait by calling `poll` or `epoll_wait` with timeout 0 again and again; many ranks on few processors then spend them on
//! polling. Here, after some such calls in a row without an event (`GRIDEMU_TRIES`, 4), the next one blocks until there is an event or
//! for 1 ms, the one after it for 2 and so on to `GRIDEMU_BLOCK_MS` (100). Over TCP progress begins with such an event, so that little is lost but idle
//! turns; what goes on in a process by itself, such as a communicator of its own in Open MPI, waits for 1 ms and not for 100. Not for
//! shared-memory transports, whose progress shows on no descriptor.
//!
//! `GRIDEMU_CC=name` also sets the congestion control of TCP sockets.
#![allow(unsafe_code)] // stands in for C functions

use libc::{c_int, epoll_event, nfds_t, pollfd, sigset_t, timespec};
use std::cell::Cell;
use std::sync::OnceLock;

struct Settings {
    tries: u32,
    block_ms: c_int,
    congestion_control: Option<String>,
}

fn settings() -> &'static Settings {
    static SETTINGS: OnceLock<Settings> = OnceLock::new();
    let number = |name: &str| std::env::var(name).ok().and_then(|v| v.parse::<u32>().ok());
    SETTINGS.get_or_init(|| Settings {
        tries: number("GRIDEMU_TRIES").unwrap_or(4),
        block_ms: number("GRIDEMU_BLOCK_MS").unwrap_or(100) as c_int,
        congestion_control: std::env::var("GRIDEMU_CC").ok(),
    })
}

thread_local! {
    /// Calls in a row without an event.
    static EMPTY: Cell<u32> = const { Cell::new(0) };
}

/// How long to wait in place of `timeout`.
fn adapted(timeout: c_int) -> c_int {
    let s = settings();
    let Some(waits) = EMPTY.get().checked_sub(s.tries).filter(|_| timeout == 0) else { return timeout };
    s.block_ms.min(1 << waits.min(20))
}

/// Notes what came of a call, and hides a signal that ended a wait nobody asked for.
fn note(asked: c_int, waited: c_int, result: c_int) -> c_int {
    let result = if result < 0 && asked == 0 && waited != 0 { 0 } else { result };
    if asked == 0 {
        EMPTY.set(if result == 0 { EMPTY.get() + 1 } else { 0 });
    }
    result
}

/// `poll(2)`.
///
/// # Safety
/// As the function it stands in for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poll(fds: *mut pollfd, n: nfds_t, timeout: c_int) -> c_int {
    let wait = if n > 0 { adapted(timeout) } else { timeout };
    let limit = timespec { tv_sec: i64::from(wait / 1000), tv_nsec: i64::from(wait % 1000) * 1_000_000 };
    let limit = if wait < 0 { std::ptr::null() } else { &raw const limit };
    // SAFETY: the caller's arguments
    note(timeout, wait, unsafe { libc::ppoll(fds, n, limit, std::ptr::null()) })
}

/// `epoll_wait(2)`.
///
/// # Safety
/// As the function it stands in for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_wait(epoll: c_int, events: *mut epoll_event, most: c_int, timeout: c_int) -> c_int {
    let wait = adapted(timeout);
    // SAFETY: the caller's arguments
    note(timeout, wait, unsafe { libc::epoll_pwait(epoll, events, most, wait, std::ptr::null::<sigset_t>()) })
}

/// `socket(2)`.
///
/// # Safety
/// As the function it stands in for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    // SAFETY: the caller's arguments; the name lives through the call
    unsafe {
        let fd = libc::syscall(libc::SYS_socket, domain, kind, protocol) as c_int;
        if let Some(name) =
            settings().congestion_control.as_ref().filter(|_| fd >= 0 && domain == libc::AF_INET && kind & 0xf == libc::SOCK_STREAM)
        {
            libc::setsockopt(fd, libc::IPPROTO_TCP, libc::TCP_CONGESTION, name.as_ptr().cast(), name.len() as libc::socklen_t);
        }
        fd
    }
}
