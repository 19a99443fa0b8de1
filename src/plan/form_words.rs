//! What a form is called.

use super::Form;
use super::farthest_first::serves_each;
use crate::topology::Rank;
use crate::two_level::IntraGroup;
use crate::units;

/// Said of a root that serves all others itself.
pub const FARTHEST_FIRST: &str = "the farthest first";

impl Form {
    /// True if a root serves all others itself, not in their order.
    pub fn serves_farthest_first(&self) -> bool {
        matches!(self, Form::Placed(_, algorithm, p, order) if !p.by_speed && serves_each(algorithm) && !is_turned(order))
    }

    /// Its name and its parts'.
    pub fn words(&self) -> String {
        match self {
            Form::Flat(_, algorithm, parameters) => algorithm.words(parameters),
            Form::Placed(_, algorithm, parameters, _) if self.serves_farthest_first() => {
                format!("{}, {FARTHEST_FIRST}", algorithm.words(parameters))
            }
            Form::Placed(_, algorithm, parameters, _) => algorithm.words(parameters),
            Form::Coordinated(c) => {
                let part = |l: &IntraGroup| l.algorithm.words(&l.parameters);
                let segment = if c.segment == 0 { String::new() } else { format!(", in {}", units::bytes(c.segment)) };
                let in_flight = match c.between.parameters.in_flight {
                    0 => String::new(),
                    many => format!(", {many} under way"),
                };
                if c.groups.len() == 1 {
                    return format!("{} through one rank{segment}{in_flight}", part(&c.inside));
                }
                let who = if c.by_counterparts() { "counterparts" } else { "coordinators" };
                format!("{} between {who}, {} inside{segment}{in_flight}", part(&c.between), part(&c.inside))
            }
            Form::Routed(routed) => routed.words(),
        }
    }
}

/// True of ranks in their order, from one of them on.
fn is_turned(order: &[Rank]) -> bool {
    order.windows(2).all(|two| (two[0] + 1) % order.len() == two[1])
}
