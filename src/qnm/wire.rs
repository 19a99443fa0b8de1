//! From calls to messages on the wire: mpiP counts one message for a collective call, whatever the library then sends.
//!
//! The algorithms are those of Thakur, Rabenseifner, Gropp (International Journal of High Performance Computing Applications 19(1),
//! 2005), which MPICH follows and whose families Open MPI chooses from: sizes in all hardly differ between libraries, numbers of
//! messages do where a library cuts them into segments.

use serde::Serialize;

/// Who a process sends to, as far as the call tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Partners {
    /// Chosen by the program: taken to be the ranks next to it.
    Neighbours,
    /// Anyone, as in collectives.
    Anyone,
}

/// What one call sends, in the mean over the processes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Wire {
    /// Messages of a process.
    pub messages: f64,
    /// Bytes of a process, in all of them.
    pub bytes: f64,
    /// Messages one after the other, until the last process has what it needs: so many delays of the network.
    pub delays: f64,
    /// To whom.
    pub partners: Partners,
}

/// Messages, bytes and delays of a call.
type Sent = (f64, f64, f64);

/// Calls of a kind, and what they send among so many ranks when each says so many bytes.
struct Kind {
    names: &'static [&'static str],
    sends: fn(f64, f64) -> Sent,
}

const COLLECTIVES: &[Kind] = &[
    Kind { names: &["Barrier"], sends: |p, _| (rounds(p), 0.0, rounds(p)) },
    Kind { names: &["Bcast"], sends: broadcast },
    Kind { names: &["Reduce_scatter_block"], sends: |p, m| (rounds(p), m * (p - 1.0), rounds(p)) },
    Kind { names: &["Reduce_scatter"], sends: |p, m| (rounds(p), m * share(p), rounds(p)) },
    Kind { names: &["Reduce"], sends: reduce },
    Kind { names: &["Allreduce"], sends: all_reduce },
    Kind { names: &["Allgather", "Allgatherv"], sends: all_gather },
    Kind { names: &["Alltoallv", "Alltoallw"], sends: |p, m| (p - 1.0, m * share(p), p - 1.0) },
    Kind { names: &["Alltoall"], sends: all_to_all },
    // all with the root at once
    Kind { names: &["Gatherv", "Scatterv"], sends: |p, m| (share(p), m * share(p), 1.0) },
    // binomial: each of the rounds moves half of all blocks
    Kind { names: &["Gather", "Scatter"], sends: |p, m| (share(p), m * p.log2() / 2.0, rounds(p)) },
    Kind { names: &["Scan", "Exscan"], sends: |p, m| (rounds(p), rounds(p) * m, rounds(p)) },
];

const POINT_TO_POINT: &[&str] = &["Send", "Isend", "Ssend", "Issend", "Rsend", "Irsend", "Bsend", "Ibsend", "Sendrecv", "Sendrecv_replace"];

/// What one call sends, said by its name without `MPI_` and the bytes that mpiP writes for it: those of the buffer sent, for
/// all-to-all, gather and scatter those for one partner, for their forms with counts those for all. `None` for calls that send nothing.
///
/// ```
/// use collwise::qnm::wire;
/// let sent = wire("Allreduce", 8, 8.0).unwrap(); // recursive doubling
/// assert_eq!((sent.messages, sent.bytes), (3.0, 24.0));
/// ```
pub fn wire(call: &str, ranks: usize, bytes: f64) -> Option<Wire> {
    if POINT_TO_POINT.contains(&call) {
        return Some(Wire { messages: 1.0, bytes, delays: 1.0, partners: Partners::Neighbours });
    }
    // the non-blocking forms send the same
    let is = |name: &str| name == call || call.strip_prefix('I').is_some_and(|c| c.eq_ignore_ascii_case(name));
    let kind = COLLECTIVES.iter().find(|k| k.names.iter().any(|n| is(n)))?;
    let (messages, bytes, delays) = if ranks < 2 { (0.0, 0.0, 0.0) } else { (kind.sends)(ranks as f64, bytes) };
    Some(Wire { messages, bytes, delays, partners: Partners::Anyone })
}

/// Rounds of a dissemination.
fn rounds(p: f64) -> f64 {
    p.log2().ceil()
}

/// The share of ranks that are not the root.
fn share(p: f64) -> f64 {
    (p - 1.0) / p
}

/// Binomial, for long messages among 8 and more a scatter and a ring.
fn broadcast(p: f64, m: f64) -> Sent {
    if m < 12_288.0 || p < 8.0 {
        return (share(p), m * share(p), rounds(p));
    }
    (share(p) + p - 1.0, m * p.log2() / (2.0 * p) + m * share(p), rounds(p) + p - 1.0)
}

/// Binomial, for long messages a reduce-scatter by halves and a gather.
fn reduce(p: f64, m: f64) -> Sent {
    if m <= 2048.0 {
        return (share(p), m * share(p), rounds(p));
    }
    (rounds(p) + share(p), m * share(p) + m * p.log2() / (2.0 * p), 2.0 * rounds(p))
}

/// Recursive doubling, for long messages by halves and back; ranks beyond a power of two give their part to a neighbour first, and get
/// the result last.
fn all_reduce(p: f64, m: f64) -> Sent {
    let power = p.log2().floor().exp2();
    let (beyond, inside) = ((p - power) / p, power / p);
    let (messages, bytes) = if m <= 2048.0 { (power.log2(), m * power.log2()) } else { (2.0 * power.log2(), 2.0 * m * share(power)) };
    let around = if beyond > 0.0 { 2.0 } else { 0.0 };
    (2.0 * beyond + inside * messages, 2.0 * beyond * m + inside * bytes, messages + around)
}

/// Bruck or recursive doubling, for long messages a ring.
fn all_gather(p: f64, m: f64) -> Sent {
    let messages = if m * p < 81_920.0 { rounds(p) } else { p - 1.0 };
    (messages, m * (p - 1.0), messages)
}

/// Bruck for short blocks among 8 and more, which moves half of all blocks in each round; else one message to each.
fn all_to_all(p: f64, m: f64) -> Sent {
    if m <= 256.0 && p >= 8.0 {
        return (rounds(p), rounds(p) * m * p / 2.0, rounds(p));
    }
    (p - 1.0, m * (p - 1.0), p - 1.0)
}
