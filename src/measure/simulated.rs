//! Measuring a simulated platform: no MPI, no cluster, the same experiments.

use super::{Experiment, Probe, Runs, SAMPLE_FORMAT, Settings};
use crate::error::{Error, Result};
use crate::library::SIMULATOR;
use crate::platform::{Placement, Platform};
use crate::schedule::{Program, Schedule, Trace};
use crate::sim::{Disturbance, Simulator};
use crate::topology::Rank;
use rustc_hash::FxHashMap;

/// A probe over the simulator.
#[derive(Debug)]
pub struct SimulatedProbe {
    simulator: Simulator,
    settings: Settings,
    noise: Disturbance,
    elapsed: f64,
    /// What the batches took that were handed out last, and those of one experiment: those that are repeated need not be simulated again.
    last: FxHashMap<Vec<Experiment>, Undisturbed>,
    /// What collectives inside one group take: whatever runs beside them, they share nothing with it.
    apart: FxHashMap<Experiment, Took>,
}

/// What an experiment takes without noise.
#[derive(Debug, Clone, Copy)]
struct Took {
    seconds: f64,
    /// Until its last rank is done.
    until: f64,
}

/// What a batch takes without noise.
#[derive(Debug, Clone)]
struct Undisturbed {
    /// By experiment.
    seconds: Vec<f64>,
    /// Until the last rank is done.
    until: f64,
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
                build: format!("{} of platform {:016x}", super::BUILD, platform.fingerprint()?),
                placement: Vec::new(),
            },
            noise: Disturbance::new(platform.noise.clone().unwrap_or_default(), seed),
            elapsed: 0.0,
            last: FxHashMap::default(),
            apart: FxHashMap::default(),
        })
    }

    /// The simulator underneath, for runs whose truth is wanted without noise.
    pub fn simulator(&self) -> &Simulator {
        &self.simulator
    }

    /// Runs a batch once: only the ranks that take part, in their order.
    fn simulate(&mut self, batch: &[Experiment]) -> Result<Undisturbed> {
        if batch.iter().any(Experiment::is_native) {
            return Err(Error::invalid("simulate the library's own broadcast: a simulated platform has no MPI library"));
        }
        let mut took: Vec<Option<Took>> = batch.iter().map(|experiment| self.apart.get(experiment).copied()).collect();
        let open: Vec<(usize, Vec<Rank>)> = (0..batch.len()).filter(|&k| took[k].is_none()).map(|k| (k, batch[k].ranks())).collect();
        // what shares nothing with the rest runs by itself, which takes as long and is simulated faster
        let (apart, others): (Vec<_>, Vec<_>) = open.into_iter().partition(|(_, members)| self.simulator.is_apart(members));
        for (k, members) in apart {
            let [found] = self.beside(batch, &[(k, members)])?[..] else { continue };
            if matches!(batch[k], Experiment::Collective { .. }) {
                self.apart.insert(batch[k].clone(), found);
            }
            took[k] = Some(found);
        }
        for ((k, _), found) in others.iter().zip(self.beside(batch, &others)?) {
            took[*k] = Some(found);
        }
        let took = || took.iter().flatten();
        Ok(Undisturbed { seconds: took().map(|t| t.seconds).collect(), until: took().map(|t| t.until).fold(0.0, f64::max) })
    }

    /// Runs some of a batch beside each other.
    fn beside(&mut self, batch: &[Experiment], some: &[(usize, Vec<Rank>)]) -> Result<Vec<Took>> {
        let mut ranks: Vec<Rank> = some.iter().flat_map(|(_, members)| members.iter().copied()).collect();
        ranks.sort_unstable();
        let place = |rank: Rank| ranks.partition_point(|&r| r < rank);
        let mut schedule = Schedule { programs: vec![Program::new(); ranks.len()] };
        for (k, members) in some {
            for (program, &rank) in batch[*k].schedule()?.programs.into_iter().zip(members) {
                schedule.programs[place(rank)] = program.renamed(|position| place(members[position]));
            }
        }
        let traces = self.simulator.run_among(&ranks, &schedule, &mut self.noise)?;
        let found = |(k, members): &(usize, Vec<Rank>)| {
            let own: Vec<&Trace> = members.iter().map(|&rank| &traces[place(rank)]).collect();
            Took { seconds: batch[*k].seconds(&own), until: own.iter().map(|trace| trace.finish()).fold(0.0, f64::max) }
        };
        Ok(some.iter().map(found).collect())
    }

    /// The times of a batch, repeated. Where TCP may lose messages of it each repetition is another; elsewhere noise alone makes it so.
    fn repeat(&mut self, batch: &[Experiment], repetitions: usize, mut known: Option<Undisturbed>) -> Result<Vec<Vec<f64>>> {
        let mut all = vec![Vec::with_capacity(repetitions); batch.len()];
        for _ in 0..repetitions {
            let chances = self.noise.chances();
            let run = match known.take() {
                Some(run) => run,
                None => self.simulate(batch)?,
            };
            for ((experiment, seconds), all) in batch.iter().zip(&run.seconds).zip(&mut all) {
                // what disturbs the network does not stretch computing of a known length
                let computing = experiment.computing();
                all.push(computing + (seconds - computing) * self.noise.factor());
            }
            self.elapsed += run.until;
            known = (self.noise.chances() == chances).then_some(run);
        }
        self.last.extend(known.map(|run| (batch.to_vec(), run)));
        Ok(all)
    }
}

impl Probe for SimulatedProbe {
    fn settings(&self) -> Settings {
        self.settings.clone()
    }

    fn run(&mut self, batches: &[Vec<Experiment>], repetitions: usize) -> Result<Vec<Runs>> {
        let mut last = std::mem::take(&mut self.last);
        let mut runs = Vec::new();
        for batch in batches {
            let known = last.remove(batch).or_else(|| self.last.remove(batch));
            // one virtual clock
            runs.extend(self.repeat(batch, repetitions, known)?.into_iter().map(|seconds| Runs { seconds, clock_error_s: 0.0 }));
        }
        // what runs alone is confirmed alone; what runs beside others is not repeated beside the same ones much later
        self.last.extend(last.into_iter().filter(|(batch, _)| batch.len() == 1));
        Ok(runs)
    }

    fn has_native(&self) -> bool {
        false
    }

    fn elapsed(&self) -> f64 {
        self.elapsed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::generate::{Wanted, generate};

    #[test]
    fn what_is_repeated_is_not_simulated_again_and_takes_as_long() {
        let platform = generate(Wanted { sites: 2, hosts: 12, seed: 1 }).unwrap();
        let mut probe = SimulatedProbe::new(&platform, Placement::Slot, 1).unwrap();
        let batch = vec![Experiment::RoundTrip { a: 11, b: 10, out: 1000, back: 0 }, Experiment::RoundTrip { a: 0, b: 1, out: 5, back: 0 }];
        let mut once = || probe.run(std::slice::from_ref(&batch), 2).unwrap();
        let (first, again) = (once(), once());
        assert_eq!(first, again);
        assert!(probe.last.len() == 1 && (probe.elapsed() / probe.last[&batch].until - 4.0).abs() < 1e-9);
        // kept are those that were handed out last
        probe.run(&[vec![batch[0].clone()]], 1).unwrap();
        assert!(probe.last.len() == 1 && !probe.last.contains_key(&batch));
        // beside each other, over other hosts, each takes what it takes alone
        let alone = probe.run(&[vec![batch[1].clone()]], 1).unwrap();
        assert_eq!(alone[0].seconds[0], first[1].seconds[0]);
    }
}
