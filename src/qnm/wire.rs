//! From calls to messages on the wire: mpiP counts one message for a collective call, whatever the library then sends.

use super::Site;
use super::algorithms::{Algorithm, Sent};
use super::choices::{MAKE_COMMUNICATORS, MPICH, OPEN_MPI, Table, chosen};
use super::partners::{Partners, Rounds};
use crate::collective::{COLLECTIVES, Collective, Size};
use crate::library;
use serde::Serialize;

/// The MPI library whose choices of algorithms are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Library {
    /// Open MPI 4.1, with its fixed decisions.
    #[default]
    OpenMpi,
    /// MPICH, as Thakur, Rabenseifner, Gropp (2005) describe it.
    Mpich,
}

impl Library {
    /// The one that says this of itself; Open MPI where nothing else is known.
    pub fn of(version: &str) -> Library {
        if library::Library::of(version) == library::Library::Mpich { Library::Mpich } else { Library::OpenMpi }
    }
}

/// What one call sends, in the mean over the processes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Wire {
    /// Messages of a process.
    pub messages: f64,
    /// Bytes of a process, in all of them.
    pub bytes: f64,
    /// Messages one after the other, until the last process has what it needs: so many delays of the network.
    pub rounds: Rounds,
}

/// Messages to a partner whom the program chooses, among them those of persistent requests and of access to others' memory; and calls to all
/// neighbours that a communicator knows, whose bytes are those to all of them.
const POINT_TO_POINT: &[&str] = &[
    "Send",
    "Isend",
    "Ssend",
    "Issend",
    "Rsend",
    "Irsend",
    "Bsend",
    "Ibsend",
    "Sendrecv",
    "Sendrecv_replace",
    "Start",
    "Put",
    "Get",
    "Accumulate",
    "Get_accumulate",
    "Fetch_and_op",
    "Compare_and_swap",
    "Rput",
    "Rget",
    "Raccumulate",
    "Rget_accumulate",
    "Neighbor_allgather",
    "Neighbor_allgatherv",
    "Neighbor_alltoall",
    "Neighbor_alltoallv",
    "Neighbor_alltoallw",
    "Ineighbor_allgather",
    "Ineighbor_allgatherv",
    "Ineighbor_alltoall",
    "Ineighbor_alltoallv",
    "Ineighbor_alltoallw",
];

/// To whom calls of a name send, collectives to anyone; `None` for those that send nothing.
pub fn partners(call: &str) -> Option<Partners> {
    if POINT_TO_POINT.contains(&call) {
        return Some(Partners::Program);
    }
    [OPEN_MPI, MPICH].iter().any(|tables| table(tables, call).is_some()).then_some(Partners::Anyone)
}

/// True for calls that make a communicator.
pub fn makes_communicator(call: &str) -> bool {
    MAKE_COMMUNICATORS.contains(&call)
}

/// The collective that calls of a name are; `None` for calls of other kinds, such as those that are given a count for each process.
pub fn collective(call: &str) -> Option<&'static Collective> {
    COLLECTIVES.iter().copied().find(|c| c.function.strip_prefix("MPI_") == Some(call))
}

/// The table of a collective; that of its blocking form where a library has none for the other.
fn table<'a>(tables: &'a [Table], call: &str) -> Option<&'a Table> {
    let named = |name: &str| tables.iter().find(|t| t.names.contains(&name));
    let blocking = || {
        let name = call.strip_prefix('I')?;
        let mut letters = name.chars();
        let first = letters.next()?.to_ascii_uppercase();
        named(&format!("{first}{}", letters.as_str()))
    };
    named(call).or_else(blocking)
}

/// What one call sends, said by its name without `MPI_` and the bytes that mpiP writes for it: those of the buffer sent, for
/// all-to-all, gather and scatter those for one partner, for their forms with counts those for all. `None` for calls that send nothing.
///
/// ```
/// use collwise::qnm::{Library, wire};
/// let sent = wire("Allreduce", 8, 8.0, Library::OpenMpi).unwrap(); // recursive doubling
/// assert_eq!((sent.messages, sent.bytes), (3.0, 24.0));
/// ```
pub fn wire(call: &str, ranks: usize, bytes: f64, library: Library) -> Option<Wire> {
    if POINT_TO_POINT.contains(&call) {
        return Some(Wire { messages: 1.0, bytes, rounds: Rounds::of(Partners::Program, 1.0, bytes) });
    }
    let tables = match library {
        Library::OpenMpi => OPEN_MPI,
        Library::Mpich => MPICH,
    };
    let table = table(tables, call)?;
    let p = ranks as f64;
    Some(sent(chosen(table.choices, p, bytes), ranks, bytes))
}

/// What one call sends by an algorithm.
pub(super) fn sent(algorithm: Algorithm, ranks: usize, bytes: f64) -> Wire {
    let Sent { messages, bytes, rounds } = if ranks < 2 { Sent::default() } else { algorithm(ranks as f64, bytes) };
    Wire { messages, bytes, rounds }
}

impl Site {
    /// The size of a call of a collective, which is what is written for it ([`wire`]): the message, or the block for one partner. `None` where the report does
    /// not tell: mpiP writes nothing for buffers that are in place.
    pub fn size(&self, collective: &Collective) -> Option<usize> {
        if !collective.sized() {
            return Some(0);
        }
        // blocks that one process has for all: some programs give their size there alone, and a mean over all processes is no size then
        let may_differ = collective.rooted && collective.size == Size::Block;
        let mean = || self.count.filter(|count| *count > 0.0 && !may_differ).map(|count| self.bytes / count);
        self.mean_bytes.or_else(mean).filter(|bytes| *bytes > 0.0).map(|bytes| bytes.round() as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_all_collectives_are_known_and_others_are_none() {
        for c in COLLECTIVES.iter().copied() {
            let call = &c.function[4..];
            assert_eq!((collective(call), partners(call)), (Some(c), Some(Partners::Anyone)), "{call}");
        }
        for call in ["Send", "Ibcast", "Alltoallv", "Scatterv", "Reduce_scatter", "Sendrecv"] {
            assert_eq!(collective(call), None, "{call}");
        }
        // nonblocking ones are as their like
        for (call, like) in [
            ("Igather", "Gather"),
            ("Iscatterv", "Scatterv"),
            ("Iallgatherv", "Allgatherv"),
            ("Ialltoallw", "Alltoallv"),
            ("Iscan", "Scan"),
            ("Iexscan", "Scan"),
            ("Ireduce_scatter", "Reduce_scatter"),
            ("Ireduce_scatter_block", "Reduce_scatter_block"),
        ] {
            for library in [Library::OpenMpi, Library::Mpich] {
                let sent = wire(call, 8, 800.0, library);
                assert!(sent.is_some_and(|sent| sent.messages > 0.0) && sent == wire(like, 8, 800.0, library), "{call}: {sent:?}");
            }
        }
    }

    #[test]
    fn the_size_of_a_call_is_known_where_the_report_says_it_of_the_processes_that_send() {
        // of four processes, by aggregates, and by process
        let site = |bytes: f64, mean_bytes: Option<f64>| Site { count: Some(4.0), bytes, mean_bytes, ..Site::default() };
        for c in COLLECTIVES.iter().copied().filter(|c| c.sized()) {
            let may_differ = c.rooted && c.size == Size::Block;
            assert_eq!(site(4000.0, None).size(c), (!may_differ).then_some(1000), "{}", c.name);
            // one of them sends
            assert_eq!(site(1000.0, Some(1000.0)).size(c), Some(1000), "{}", c.name);
            assert_eq!(site(0.0, None).size(c), None, "{}", c.name);
        }
        let nothing = COLLECTIVES.iter().copied().find(|c| !c.sized()).unwrap();
        assert_eq!(site(0.0, None).size(nothing), Some(0));
    }
}
