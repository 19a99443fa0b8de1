//! All send to the root: `(P-1) max(g(m), or(m)) + L` where the root takes in one message after the other.

use super::super::{Algorithm, Parameters};
use super::to_root;

/// all to the root
pub static ALGORITHM: Algorithm = Algorithm {
    name: "flat",
    summary: "all send to the root",
    citation: "Barchet-Estefanel, Mounie 2004, Table 2",
    builder: Some(|me, shape, _: &Parameters| to_root(me, shape, 0)),
    mirrors: Some(&super::super::scatter::flat::ALGORITHM),
    ..Algorithm::NEW
};
