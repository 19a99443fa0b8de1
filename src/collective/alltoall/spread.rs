//! As `pairwise`, with w steps under way at once: a rank sends when what it sent and got w steps before is complete, so that w latencies overlap and no more than about w
//! messages meet at a receiver.

use super::super::{Algorithm, Parameters};
use super::{directly, from_the_right};

/// as pairwise, with as many steps under way as the radix (default 4)
pub static ALGORITHM: Algorithm = Algorithm {
    name: "spread",
    summary: "as pairwise, with as many steps under way as the radix (default 4)",
    citation: "Thakur, Rabenseifner, Gropp 2005; Kumar et al., EuroPVM/MPI 2004",
    radices: &[2, 4, 8, 16],
    builder: Some(|me, shape, parameters: &Parameters| {
        let window = if parameters.radix == 0 { 4 } else { parameters.radix };
        directly(me, shape, from_the_right(me, shape.ranks), window, 0)
    }),
    ..Algorithm::NEW
};
