//! What sockets, kernels and the router add to a latency: measured with pings when a platform comes up, then taken off each latency, so
//! that a small message between two programs takes what the platform says.

use crate::sys;
use anyhow::{Context, Result};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// Pings before those that count.
const WARM_UPS: usize = 3;
/// So many pings, fewer where they would take longer than [`MOST`].
const PINGS: u128 = 41;
const MOST: Duration = Duration::from_millis(1500);
/// Nothing answers later than this.
const PATIENCE: Duration = Duration::from_secs(10);

/// One end of a ping: a namespace and its address.
pub type End<'a> = (&'a str, [u8; 4]);

/// By how much half a round trip between two nodes exceeds a latency.
pub fn excess(from: End, to: End, latency: Duration) -> Result<Duration> {
    let (near, far) = connect(from, to).with_context(|| format!("connect {} to {}", from.0, to.0))?;
    let half = std::thread::scope(|scope| {
        scope.spawn(|| echo(far));
        ping(near, latency)
    });
    Ok(half.with_context(|| format!("ping from {} to {}", from.0, to.0))?.saturating_sub(latency))
}

/// A connection of two nodes. Sockets stay in the namespace that they were made in.
fn connect(from: End, to: End) -> std::io::Result<(TcpStream, TcpStream)> {
    let listener = sys::in_network(to.0, || TcpListener::bind(SocketAddr::from((to.1, 0))))?;
    let address = listener.local_addr()?;
    let near = sys::in_network(from.0, || TcpStream::connect_timeout(&address, PATIENCE))?;
    let (far, _) = listener.accept()?;
    for stream in [&near, &far] {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
    }
    Ok((near, far))
}

/// Sends back what comes, until the other end hangs up.
fn echo(mut stream: TcpStream) {
    be_a_rank();
    let mut byte = [0];
    while stream.read_exact(&mut byte).and_then(|()| stream.write_all(&byte)).is_ok() {}
}

/// Half the lower quartile of the round trips: what else the machine does lengthens some of them.
fn ping(mut stream: TcpStream, latency: Duration) -> std::io::Result<Duration> {
    be_a_rank();
    let affordable = MOST.as_nanos() / (2 * latency.as_nanos()).max(1);
    let count = affordable.clamp(5, PINGS) as usize;
    let mut trips = Vec::new();
    for _ in 0..WARM_UPS + count {
        let start = Instant::now();
        stream.write_all(&[1])?;
        stream.read_exact(&mut [0])?;
        trips.push(start.elapsed() / 2);
    }
    let counted = &mut trips[WARM_UPS..];
    counted.sort_unstable();
    Ok(counted[counted.len() / 4])
}

/// The class that ranks run in; where it is refused, the router has said so.
fn be_a_rank() {
    let _ = sys::set_scheduler(libc::SCHED_RR, sys::RANK_PRIORITY);
}
