//! In step k each rank sends to the rank k after it, and hears from the rank k before it; then comes the next step: `(P-1) (g(m) + L)`, and no receiver is contended for.

use super::super::{Algorithm, Parameters};
use super::{directly, from_the_right};

/// P - 1 steps, in each of which a rank sends one block and gets one
pub static ALGORITHM: Algorithm = Algorithm {
    name: "pairwise",
    summary: "P - 1 steps, in each of which a rank sends one block and gets one",
    citation: "Barchet-Estefanel, Mounie 2004, Table 3; Thakur, Rabenseifner, Gropp 2005",
    builder: Some(|me, shape, _: &Parameters| directly(me, shape, from_the_right(me, shape.ranks), 1, 0)),
    ..Algorithm::NEW
};
