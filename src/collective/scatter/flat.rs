//! The root sends each rank its block: `(P-1) g(m) + L`.

use super::super::tree::flat;
use super::super::{Algorithm, Parameters};
use super::down;

/// root to each
pub static ALGORITHM: Algorithm = Algorithm {
    name: "flat",
    summary: "the root sends each rank its block",
    citation: "Barchet-Estefanel, Mounie 2004, Table 2",
    builder: Some(|me, shape, _: &Parameters| down(me, shape, flat, |v, n| if v == 0 { 0..n } else { v..v + 1 })),
    ..Algorithm::NEW
};
