//! Measuring a simulated platform: no MPI, no cluster, the same experiments.

use super::{Experiment, Probe, Runs, SAMPLE_FORMAT, Settings};
use crate::error::{Error, Result};
use crate::library::SIMULATOR;
use crate::platform::{Placement, Platform};
use crate::schedule::{Program, Schedule, Trace};
use crate::sim::{Disturbance, Simulator};

/// A probe over the simulator.
#[derive(Debug)]
pub struct SimulatedProbe {
    simulator: Simulator,
    settings: Settings,
    noise: Disturbance,
    elapsed: f64,
}

impl SimulatedProbe {
    /// A probe of a platform, one rank on each host; the seed decides the noise.
    ///
    /// # Errors
    /// The platform lacks what a simulation needs.
    pub fn new(platform: &Platform, placement: Placement, seed: u64) -> Result<SimulatedProbe> {
        let names = platform.host_names();
        Ok(SimulatedProbe {
            simulator: Simulator::new(platform, placement)?,
            settings: Settings {
                format: SAMPLE_FORMAT,
                platform: platform.name.clone(),
                hosts: platform.place(placement).into_iter().map(|h| names[h].clone()).collect(),
                library: SIMULATOR.into(),
                timer: "virtual time".into(),
                date: "virtual time".into(),
                build: super::BUILD.into(),
                placement: Vec::new(),
            },
            noise: Disturbance::new(platform.noise.clone().unwrap_or_default(), seed),
            elapsed: 0.0,
        })
    }

    /// The simulator underneath, for runs whose truth is wanted without noise.
    pub fn simulator(&self) -> &Simulator {
        &self.simulator
    }
}

impl SimulatedProbe {
    fn run_batch(&mut self, batch: &[Experiment], repetitions: usize) -> Result<Vec<Vec<f64>>> {
        if batch.iter().any(Experiment::is_native) {
            return Err(Error::invalid("simulate the library's own broadcast: a simulated platform has no MPI library"));
        }
        let schedule = side_by_side(batch, self.simulator.ranks())?;
        let mut seconds = vec![Vec::with_capacity(repetitions); batch.len()];
        for _ in 0..repetitions {
            let traces = self.simulator.run(&schedule, &mut self.noise)?;
            for (experiment, out) in batch.iter().zip(&mut seconds) {
                let own: Vec<&Trace> = experiment.ranks().iter().map(|&r| &traces[r]).collect();
                // what disturbs the network does not stretch computing of a known length
                let computing = experiment.computing();
                out.push(computing + (experiment.seconds(&own) - computing) * self.noise.factor());
            }
            self.elapsed += traces.iter().map(Trace::finish).fold(0.0, f64::max);
        }
        Ok(seconds)
    }
}

impl Probe for SimulatedProbe {
    fn settings(&self) -> Settings {
        self.settings.clone()
    }

    fn run(&mut self, batches: &[Vec<Experiment>], repetitions: usize) -> Result<Vec<Runs>> {
        let mut runs = Vec::new();
        for batch in batches {
            // one virtual clock
            runs.extend(self.run_batch(batch, repetitions)?.into_iter().map(|seconds| Runs { seconds, clock_error_s: 0.0 }));
        }
        Ok(runs)
    }

    fn has_native(&self) -> bool {
        false
    }

    fn elapsed(&self) -> f64 {
        self.elapsed
    }
}

/// One schedule for all ranks that runs a batch's experiments at the same time.
fn side_by_side(batch: &[Experiment], ranks: usize) -> Result<Schedule> {
    let mut schedule = Schedule { programs: vec![Program::new(); ranks] };
    for experiment in batch {
        let members = experiment.ranks();
        for (me, &rank) in members.iter().enumerate() {
            schedule.programs[rank] = experiment.program(me)?.renamed(|position| members[position]);
        }
    }
    Ok(schedule)
}
