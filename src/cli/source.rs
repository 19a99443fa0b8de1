//! Where samples come from: a simulated platform, a recording, or MPI.

use crate::cluster::{self, Bound, Method};
use crate::collective::{Collective, Size};
use crate::error::{Error, Result};
use crate::files::{check_writable, regular_path};
use crate::library::Library;
use crate::measure::{Held, Probe, Recorded, Session, SimulatedProbe, StopRule};
use crate::platform::{Placement, Platform};
use crate::policy::LARGEST_BOUND;
use crate::topology::Declared;
use indicatif::{ProgressBar, ProgressStyle};
use std::path::{Path, PathBuf};

/// Options of everything that measures.
#[derive(clap::Args, Clone)]
pub struct SourceArgs {
    /// Measure this simulated platform instead of MPI.
    #[arg(long, value_name = "FILE")]
    pub platform: Option<PathBuf>,
    /// Use only these recorded samples; measure nothing.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["platform", "samples"])]
    recorded: Option<PathBuf>,
    /// Keep samples here; what the file holds already is not measured again.
    #[arg(long, value_name = "FILE")]
    samples: Option<PathBuf>,
    /// Samples of MPI are kept beside this file if nowhere else.
    #[arg(skip)]
    pub samples_beside: Option<PathBuf>,
    /// Measure everything again.
    #[arg(long)]
    fresh: bool,
    /// Drop lines of the sample file that make no sense, and keep the rest.
    #[arg(long, conflicts_with = "fresh")]
    repair: bool,
    /// How simulated ranks are dealt out to hosts: slot or node (round robin over groups).
    #[arg(long, value_enum, default_value = "slot")]
    placement: PlacementArg,
    /// Seed of the simulated noise, and of whatever else is drawn.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Measure one pair at a time.
    #[arg(long)]
    serial: bool,
    /// Stop repeating when the median is known this well (half its confidence interval, as a share); latencies, on which groups hang, twice as well.
    #[arg(long, default_value_t = StopRule::default().precision, value_parser = share)]
    precision: f64,
    /// Repeat at most so often, latencies, on which groups hang, three times that; collectives that race and take 40 ms and more five to ten times.
    #[arg(long, default_value_t = StopRule::default().most as u32, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    repetitions: u32,
    /// Take ranks for these hosts, and groups if given: a line `HOST [GROUP]` for each rank.
    #[arg(long, value_name = "FILE")]
    hosts: Option<PathBuf>,
    /// Name of the platform in what is written.
    #[arg(long, value_parser = crate::names::parse)]
    name: Option<String>,
}

/// Options of grouping.
#[derive(clap::Args, Clone)]
pub struct GroupingArgs {
    /// How to group: eco, density or linkage.
    #[arg(long, default_value = "eco")]
    method: String,
    /// Latencies within a group differ by at most this factor, in the sense of the method.
    #[arg(long, default_value_t = 1.2, value_parser = ratio)]
    bound: f64,
}

#[derive(clap::ValueEnum, Clone, Copy)]
enum PlacementArg {
    Slot,
    Node,
}

fn share(text: &str) -> std::result::Result<f64, String> {
    text.parse().ok().filter(|x| (0.0..=1.0).contains(x)).ok_or_else(|| "a share from 0 to 1".into())
}

fn ratio(text: &str) -> std::result::Result<f64, String> {
    text.parse().ok().filter(|x| (1.0..=LARGEST_BOUND).contains(x)).ok_or_else(|| format!("a factor from 1 to {LARGEST_BOUND}"))
}

impl GroupingArgs {
    /// The method and its bound.
    pub fn method(&self) -> Result<(&'static Method, Bound)> {
        Ok((cluster::method(&self.method)?, Bound { ratio: self.bound, ..Bound::default() }))
    }
}

/// Refuses a platform whose hosts do not say what copying and combining takes, for collectives that do: what is not said would take no time.
fn check_work(platform: &Platform, collectives: &[&Collective]) -> Result<()> {
    let hosts = platform.host_parameters();
    for collective in collectives {
        // each rank has a block of its own to put in its place
        let copies = collective.combines || collective.size == Size::Block;
        for (host, said) in platform.host_names().iter().zip(&hosts) {
            let needs =
                [(copies, said.copy_s_per_byte, "copy_s_per_byte"), (collective.combines, said.combine_s_per_byte, "combine_s_per_byte")];
            if let Some((.., key)) = needs.into_iter().find(|(needed, value, _)| *needed && value.is_none()) {
                let (name, platform) = (collective.name, &platform.name);
                return Err(Error::invalid(format!(
                    "simulate {name} on platform {platform}: host {host} has no {key}; give it under [hosts] or in its group"
                )));
            }
        }
    }
    Ok(())
}

impl SourceArgs {
    /// The declared hosts.
    fn declared(&self) -> Result<Option<Declared>> {
        self.hosts.as_deref().map(Declared::read).transpose()
    }

    /// The simulated platform, if that is the source.
    ///
    /// # Errors
    /// It is none, or its hosts do not say what these collectives take beside messages.
    pub fn simulated(&self, collectives: &[&Collective]) -> Result<Option<SimulatedProbe>> {
        let placement = match self.placement {
            PlacementArg::Slot => Placement::Slot,
            PlacementArg::Node => Placement::Node,
        };
        let Some(path) = &self.platform else { return Ok(None) };
        let platform = Platform::read(path)?;
        check_work(&platform, collectives)?;
        SimulatedProbe::new(&platform, placement, self.seed).map(Some)
    }

    /// Runs `work` over a session and the declared hosts, for these collectives; `None` on MPI ranks that only served. Before anything is measured it is
    /// found out whether `output` could be written. Files are the affair of the rank that drives: others may not see them.
    pub fn measure<T>(
        &self,
        output: Option<&Path>,
        collectives: &[&Collective],
        work: impl FnOnce(&mut Session, Option<&Declared>) -> Result<T>,
    ) -> Result<Option<T>> {
        let work = |session: &mut Session| {
            let declared = self.declared()?;
            output.map(check_writable).transpose()?;
            self.keep_samples(session, output)?;
            work(session, declared.as_ref())
        };
        if let Some(mut probe) = self.simulated(collectives)? {
            return self.session(&mut probe, work).map(Some);
        }
        if let Some(path) = &self.recorded {
            let (mut probe, samples) = Recorded::open(path, self.repair)?;
            return work(&mut Session::new(&mut probe).with_samples(samples)).map(Some);
        }
        self.over_mpi(work)
    }

    /// Where samples are kept: what was asked for, or else a file beside the output if that is no device.
    pub fn samples_file(&self) -> Result<Option<PathBuf>> {
        let (None, Some(output)) = (&self.samples, self.samples_beside.as_ref()) else { return Ok(self.samples.clone()) };
        if self.platform.is_some() || self.recorded.is_some() {
            return Ok(None);
        }
        if regular_path(output)?.is_none() {
            tracing::warn!("samples are not kept, since {} is no regular file: --samples names one for them", output.display());
            return Ok(None);
        }
        Ok(Some(output.with_extension("samples.jsonl")))
    }

    fn keep_samples(&self, session: &mut Session, output: Option<&Path>) -> Result<()> {
        let Some(path) = self.samples_file()? else { return Ok(()) };
        let place = |path: &Path| regular_path(path).ok().flatten();
        if output.is_some_and(|output| place(output).is_some() && place(output) == place(&path)) {
            return Err(Error::invalid(format!("write the samples and the result to one file, {}: name two", path.display())));
        }
        let held = match (self.fresh, self.repair) {
            (true, _) => Held::Dropped,
            (_, true) => Held::Repaired,
            _ => Held::Known,
        };
        let began = session.keep(&path, held)?;
        let known = session.samples().len();
        if let Some(began) = began.filter(|_| known > 0) {
            eprintln!("collwise: going on from {known} samples in {}, begun {began} (--fresh measures all again)", path.display());
        }
        Ok(())
    }

    fn session<T>(&self, probe: &mut dyn Probe, work: impl FnOnce(&mut Session) -> Result<T>) -> Result<T> {
        let most = self.repetitions as usize;
        // SMPI repeats itself exactly, and takes long
        let least = if Library::of(&probe.settings().library) == Library::Smpi { 1 } else { StopRule::default().least };
        let rule = StopRule { least: least.min(most), most, precision: self.precision, ..StopRule::default() };
        work(&mut Session::new(probe).rule(rule).serial(self.serial).progress(progress()))
    }

    #[cfg(feature = "mpi")]
    fn over_mpi<T>(&self, work: impl FnOnce(&mut Session) -> Result<T>) -> Result<Option<T>> {
        use mpi::traits::{AsRaw, Communicator};
        crate::transport::mpi::abort_on_panic();
        let universe = mpi::initialize().ok_or_else(|| Error::invalid("start MPI: it is running already"))?;
        let world = universe.world();
        crate::transport::mpi::check_launcher(world.size() as usize)?;
        if world.size() < 2 {
            return Err(Error::invalid(
                "measure with one rank: start it with several, such as `mpirun -n 8 collwise ...`, or give --platform",
            ));
        }
        let private = world.duplicate();
        let name = self.name.clone().unwrap_or_else(|| "unnamed".into());
        // SAFETY: `private` outlives the probe and is used for nothing else
        #[allow(unsafe_code)]
        let probe = unsafe { crate::measure::mpi::start(private.as_raw(), &name, self.hosts.is_some(), crate::run::RUNTIME)? };
        let Some(mut probe) = probe else { return Ok(None) };
        self.session(&mut probe, work).map(Some)
    }

    #[cfg(not(feature = "mpi"))]
    fn over_mpi<T>(&self, _: impl FnOnce(&mut Session) -> Result<T>) -> Result<Option<T>> {
        Err(Error::invalid("measure over MPI: this build has none (feature `mpi`); give --platform or --recorded"))
    }
}

/// Runs a comparison of collectives under a policy, of what `asked` says; on rank 0 `show` gets the report, while MPI still runs: some libraries hang
/// or crash when they end.
#[cfg(feature = "mpi")]
pub fn compare(
    asked: impl FnOnce() -> anyhow::Result<(crate::policy::Policy, crate::bench::Settings)>,
    show: impl FnOnce(crate::bench::Report) -> anyhow::Result<super::Outcome>,
) -> anyhow::Result<super::Outcome> {
    use super::Outcome;
    use mpi::traits::Communicator;
    crate::transport::mpi::abort_on_panic();
    // SAFETY: this process has one thread
    #[allow(unsafe_code)]
    crate::bench::ENVIRONMENT.iter().for_each(|(name, value)| unsafe { std::env::set_var(name, value) });
    let universe = mpi::initialize().ok_or_else(|| Error::invalid("start MPI: it is running already"))?;
    let world = universe.world();
    crate::transport::mpi::check_launcher(world.size() as usize)?;
    let Some((policy, settings)) = agreed(&world, asked())? else { return Ok(Outcome::Failed) };
    crate::run::use_policy(policy);
    if agreed(&world, crate::bench::check_comparable(&world, &settings).map_err(Into::into))?.is_none() {
        return Ok(Outcome::Failed);
    }
    let mut progress = progress();
    let first = world.rank() == 0;
    let (total, mut done) = (settings.roots.len() * settings.sizes.len(), 0);
    let report = crate::bench::compare(&world, &settings, || {
        done += 1;
        if first {
            progress("comparing", done, total);
        }
    });
    let report = report.map_err(|e| if world.size() > 1 { crate::transport::mpi::abort(&format!("failed to {e}")) } else { e })?;
    report.map_or(Ok(Outcome::Done), show)
}

/// What all ranks found; `None` where any of them failed: then each reason is printed once, by the first rank that has it, since most often all fail alike.
#[cfg(feature = "mpi")]
fn agreed<T>(world: &mpi::topology::SimpleCommunicator, found: anyhow::Result<T>) -> Result<Option<T>> {
    use mpi::traits::{AsRaw, Communicator};
    let reason = found.as_ref().err().map(|e| format!("failed to {e:#}"));
    let reasons = crate::transport::mpi::gather_texts(world.as_raw(), reason.as_deref().unwrap_or_default())?;
    let me = world.rank() as usize;
    if let Some(reason) = reason.filter(|_| !reasons[..me].contains(&reasons[me])) {
        eprintln!("collwise: {reason}");
    }
    Ok(found.ok().filter(|_| reasons.iter().all(String::is_empty)))
}

/// A progress bar on a terminal; nothing elsewhere.
pub fn progress() -> crate::measure::Progress<'static> {
    let mut bar: Option<(String, ProgressBar)> = None;
    Box::new(move |purpose, done, total| {
        if bar.as_ref().is_none_or(|(p, _)| p != purpose) {
            let style = ProgressStyle::with_template("{prefix:32} [{bar:32}] {pos}/{len}").unwrap_or_else(|_| ProgressStyle::default_bar());
            let fresh = ProgressBar::new(total as u64).with_style(style).with_prefix(purpose.to_string());
            bar = Some((purpose.to_string(), fresh));
        }
        if let Some((_, b)) = &bar {
            b.set_length(total as u64);
            b.set_position(done as u64);
            if done == total {
                b.finish();
            }
        }
    })
}
