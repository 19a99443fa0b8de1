//! Collectives over groups: an algorithm inside each group and one between their coordinators.

mod bcast;
mod coordinated;
mod inter_group;

use crate::collective::Parameters;
use serde::{Deserialize, Serialize};

pub use bcast::{Hierarchy, Route};
pub use coordinated::Coordinated;
pub use inter_group::{ROUTES, RouteKind};

/// An algorithm with its parameters.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Local {
    /// The algorithm's name.
    pub algorithm: String,
    /// What was chosen about it.
    pub parameters: Parameters,
}
