//! Broadcast: the root's message reaches every rank.
//!
//! A new algorithm is one file and two lines here. Formulas use pLogP terms: `g(m)` gap, `L` latency, `os`, `or` overheads, P
//! ranks, m bytes, k segments of s bytes; Table 1 of Barchet-Estefanel and Mounie (2004), corrected.

use super::{Algorithm, Collective, Shape, Size};
use crate::error::Result;
use crate::schedule::{Layout, Piece, Specification};
use crate::topology::Rank;

pub(super) mod binary;
pub(crate) mod binomial;
mod binomial_rendezvous;
pub(super) mod chain;
mod chain_rendezvous;
pub(crate) mod flat;
mod flat_rendezvous;
pub(super) mod knomial;
mod native;
mod scatter;
pub(crate) mod scatter_doubling;
pub(crate) mod scatter_ring;
pub(super) mod segmented_binary;
pub(super) mod segmented_binomial;
pub(super) mod segmented_chain;
mod segmented_flat;
pub(crate) mod split_binary;

/// Every broadcast algorithm.
pub const ALGORITHMS: &[&Algorithm] = &[
    &flat::ALGORITHM,
    &flat_rendezvous::ALGORITHM,
    &segmented_flat::ALGORITHM,
    &chain::ALGORITHM,
    &chain_rendezvous::ALGORITHM,
    &segmented_chain::ALGORITHM,
    &binary::ALGORITHM,
    &segmented_binary::ALGORITHM,
    &binomial::ALGORITHM,
    &binomial_rendezvous::ALGORITHM,
    &segmented_binomial::ALGORITHM,
    &knomial::ALGORITHM,
    &split_binary::ALGORITHM,
    &scatter_ring::ALGORITHM,
    &scatter_doubling::ALGORITHM,
    &native::ALGORITHM,
];

/// The message, on all ranks.
fn layout(shape: &Shape, _: Rank) -> Layout {
    Layout { input: 0, output: shape.bytes }
}

/// What a broadcast is for: the root's bytes, everywhere.
pub fn specification(shape: &Shape) -> Specification {
    let mut specification = shape.specification(layout);
    let message = vec![Piece::output(0, shape.bytes, shape.root, 0)];
    specification.before[shape.root].clone_from(&message);
    specification.after.fill(message);
    specification
}

/// What MPI libraries run for large messages, with its radix: Open MPI 4.1 by its fixed decisions (binomial for two ranks, k-nomial and
/// scatter with recursive doubling for more), MPICH (Thakur, Rabenseifner, Gropp 2005) binomial and scatter with allgather.
pub const OF_LIBRARIES: [(&Algorithm, usize); 3] = [(&binomial::ALGORITHM, 0), (&knomial::ALGORITHM, 4), (&scatter_doubling::ALGORITHM, 0)];

/// The broadcast.
pub static COLLECTIVE: Collective = Collective {
    name: "bcast",
    function: "MPI_Bcast",
    rooted: true,
    size: Size::Message,
    combines: false,
    tuned: true,
    layout,
    specification,
    places: Some,
    fallback: &binomial::ALGORITHM,
    algorithms: ALGORITHMS,
    open_mpi: &[
        ("linear", 1),
        ("chain", 2),
        ("pipeline", 3),
        ("split_binary", 4),
        ("binary", 5),
        ("binomial", 6),
        ("knomial", 7),
        ("scatter_allgather", 8),
        ("scatter_allgather_ring", 9),
    ],
};

/// The chain, the one tree in which every rank sends once.
pub static CHAIN: &Algorithm = &chain::ALGORITHM;

/// The binomial tree, the textbook's.
pub static BINOMIAL: &Algorithm = &binomial::ALGORITHM;

/// [`Collective::algorithm`] of the broadcast.
///
/// # Errors
/// As there.
pub fn algorithm(name: &str) -> Result<&'static Algorithm> {
    COLLECTIVE.algorithm(name)
}

/// The trees, which can be entered segment by segment.
pub fn trees() -> impl Iterator<Item = &'static Algorithm> {
    ALGORITHMS.iter().copied().filter(|a| a.tree.is_some())
}
