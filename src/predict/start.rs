//! A replay before it starts.

use super::costs::{self, Kept};
use super::losses::Losing;
use super::progress::Progress;
use super::{Run, Way, machine};
use crate::error::Result;
use crate::event::EventQueue;
use crate::model::CostModel;
use crate::schedule::{Program, Schedule, Streams};
use rustc_hash::FxHashMap;

impl<'a> Run<'a> {
    /// Of a schedule, by time and keeping all, as long as nothing else is said.
    pub(super) fn new(schedule: &'a Schedule, model: &'a dyn CostModel) -> Result<Run<'a>> {
        let streams = Streams::new(schedule)?;
        let places = machine::places(schedule)?;
        let several = places.iter().any(|place| place.several);
        Ok(Run {
            schedule,
            model,
            known: Kept::new(model, schedule.programs.iter().map(Program::streams_sent)),
            known_in: Kept::new(model, places.iter().map(|place| if place.several { costs::PEERS } else { 0 })),
            limit: f64::INFINITY,
            is_over: false,
            left: Vec::new(),
            losing: Losing::new(if several && model.loses() { schedule.ranks() } else { 0 }),
            progress: Progress::new(schedule, streams),
            limits: Vec::new(),
            places,
            machines: Vec::new(),
            own: 0,
            way: Way::ByTime,
            stand_for_all: false,
            by_time: false,
            keeps_all: true,
            kept: u32::MAX,
            latest: (0.0, None),
            done: Vec::new(),
            record: None,
            link_free: FxHashMap::default(),
            pipe_free: FxHashMap::default(),
            queue: EventQueue::with_capacity(0),
        })
    }
}
