//! The pipeline: as `chain`, segment by segment, so that all hops work at once: `(P-1)(g(s)+L) + (k-1) g(s)`; on a single
//! processor a relay both receives and sends, and the period is `max(g(s), os(s) + or(s))`.
//!
//! ```text
//! root  s0 s1 s2
//! 1        s0 s1 s2
//! 2           s0 s1 s2      time ->
//! ```

use super::super::tree::{chain, tree_program};
use super::super::{Algorithm, Parameters, Shape};
use crate::schedule::Program;
use crate::topology::Rank;

/// pipeline: each rank passes segments on while it receives the next
pub static ALGORITHM: Algorithm = Algorithm {
    name: "segmented_chain",
    summary: "pipeline: each rank passes segments on while it receives the next",
    citation: "Barchet-Estefanel, Mounie 2004, Table 1",
    segmented: true,
    builder: Some(program),
    ..Algorithm::NEW
};

fn program(me: Rank, shape: &Shape, parameters: &Parameters) -> Program {
    tree_program(me, shape, parameters, chain)
}
