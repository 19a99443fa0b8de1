//! Non-blocking collectives that were begun and are not over.
//!
//! MPI gets messages further in all of its calls; what a plan does between messages is done by us. So wherever we wait, all that is under way on this
//! process gets further, on any communicator: ranks may then complete what they began in any order, and nobody waits for ever for a rank that waits for
//! something else.

use super::planned::{Members, keep_trace, trace_of};
use crate::collective::{Collective, Step};
use crate::error::{Error, Result};
use crate::plan;
use crate::schedule::Trace;
use crate::transport::library::Arguments;
use crate::transport::{Executor, Tag, Task};
use mpi::ffi::{MPI_Comm, MPI_Request};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

/// So many executors of a communicator are kept for its next calls, with their memory: programs that overlap communication have few calls under way.
const SPARE: usize = 4;

/// What the calls of one communicator share.
#[derive(Default)]
pub struct Shared {
    /// A message failed, and others may be open for ever.
    failed: AtomicBool,
    /// The tags of those.
    lost: Mutex<Vec<Tag>>,
    spare: Mutex<Vec<Executor<MPI_Request>>>,
}

impl Shared {
    /// True if a message failed.
    #[inline]
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Notes that a call with these tags failed.
    pub fn lose(&self, tag: Tag) {
        lock(&self.lost).push(tag);
        self.failed.store(true, Ordering::Relaxed);
    }

    /// Refuses tags of a call that failed: its open receives would take what is sent to another one, which would wait for ever.
    ///
    /// # Errors
    /// They are such ones.
    #[inline]
    pub fn check(&self, tag: Tag) -> Result<()> {
        if self.has_failed() && lock(&self.lost).contains(&tag) {
            return Err(Error::invalid(
                "run a collective after one that failed and had the same tags: its communicator is of no use any more",
            ));
        }
        Ok(())
    }
}

/// A call that was begun.
pub struct UnderWay {
    comm: MPI_Comm,
    tag: Tag,
    operation: Mutex<Operation>,
}

// SAFETY: MPI's handles may be used by any thread that may call MPI; the memory that an operation points to is lent to it until it is over, and only who
// holds its lock touches it
unsafe impl Send for UnderWay {}
// SAFETY: as above
unsafe impl Sync for UnderWay {}

/// How far a call is.
struct Operation {
    /// The one before it with the same tags, until that is over on this rank: messages of one pair of ranks stay in order then.
    after: Option<Arc<UnderWay>>,
    tag: Tag,
    /// Its communicator was freed.
    orphan: bool,
    transport: Members,
    ranks: usize,
    collective: &'static Collective,
    /// Programs, one after the other.
    plan: Arc<plan::Planned>,
    /// The one that is carried out, and whether it was started.
    step: usize,
    started: bool,
    arguments: Arguments,
    executor: Executor<MPI_Request>,
    trace: Option<Trace>,
    shared: Arc<Shared>,
    /// What became of it.
    over: Option<Result<()>>,
}

static COUNT: AtomicUsize = AtomicUsize::new(0);

/// All of this process, in the order in which they were begun.
fn all() -> MutexGuard<'static, Vec<Arc<UnderWay>>> {
    static ALL: Mutex<Vec<Arc<UnderWay>>> = Mutex::new(Vec::new());
    lock(&ALL)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// True if something may be under way.
#[inline]
pub fn any() -> bool {
    COUNT.load(Ordering::Relaxed) > 0
}

/// Gets all further, as far as that is possible without waiting. What another thread is about stays with that, and what called a user's reduction that
/// calls a collective. Nothing is locked for that one meanwhile.
pub fn progress() {
    let mut k = 0;
    while any()
        && let Some(one) = nth(k)
    {
        if one.try_operation().is_some_and(|mut operation| operation.go_on(false)) {
            let mut all = all();
            all.retain(|other| !Arc::ptr_eq(other, &one));
            COUNT.store(all.len(), Ordering::Relaxed);
        } else {
            k += 1;
        }
    }
}

fn nth(k: usize) -> Option<Arc<UnderWay>> {
    all().get(k).cloned()
}

/// Waits until those of a communicator are over, or only those of some tags: before others of them, and before the library's own collective, which would get
/// nothing further meanwhile. All ranks have begun them where a blocking collective comes next. What becomes of them is told where they are waited for.
#[inline]
pub fn finish(comm: MPI_Comm, tag: Option<Tag>) {
    each(|one| one.comm == comm && tag.is_none_or(|tag| tag == one.tag), |one| one.wait());
}

/// Waits for those of a communicator that is about to be freed.
pub fn leave(comm: MPI_Comm) {
    each(
        |one| one.comm == comm,
        |one| {
            one.wait();
            lock(&one.operation).orphan = true;
        },
    );
}

/// Waits for all: MPI is about to end.
pub fn finish_all() {
    each(|_| true, |one| one.wait());
}

#[inline]
fn each(wanted: impl Fn(&UnderWay) -> bool, what: impl Fn(&Arc<UnderWay>)) {
    if any() {
        each_of_some(wanted, what);
    }
}

#[cold]
fn each_of_some(wanted: impl Fn(&UnderWay) -> bool, what: impl Fn(&Arc<UnderWay>)) {
    let found: Vec<_> = all().iter().filter(|one| wanted(one)).cloned().collect();
    found.iter().for_each(what);
}

impl UnderWay {
    /// Begins a call of a communicator: what need not wait for anything starts.
    ///
    /// # Safety
    /// As for [`Executor::start`], with every program of the plan, until it is over.
    pub unsafe fn begin(
        (comm, tag): (MPI_Comm, Tag),
        (transport, ranks): (Members, usize),
        (collective, plan): (&'static Collective, Arc<plan::Planned>),
        arguments: Arguments,
        shared: &Arc<Shared>,
    ) -> Arc<UnderWay> {
        let executor = lock(&shared.spare).pop().unwrap_or_default();
        let (step, started, orphan, trace, over) = (0, false, false, None, None);
        let mut all = all();
        let after = all.iter().rfind(|one| one.comm == comm && one.tag == tag).cloned();
        let shared = Arc::clone(shared);
        let operation =
            Operation { after, tag, orphan, transport, ranks, collective, plan, step, started, arguments, executor, trace, shared, over };
        let one = Arc::new(UnderWay { comm, tag, operation: Mutex::new(operation) });
        all.push(Arc::clone(&one));
        COUNT.store(all.len(), Ordering::Relaxed);
        drop(all);
        progress();
        one
    }

    fn try_operation(&self) -> Option<MutexGuard<'_, Operation>> {
        match self.operation.try_lock() {
            Ok(operation) => Some(operation),
            Err(TryLockError::Poisoned(e)) => Some(e.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// True if it is over.
    pub fn is_over(&self) -> bool {
        self.try_operation().is_some_and(|operation| operation.over.is_some())
    }

    /// Waits until it is over. Others get further meanwhile.
    pub fn wait(&self) {
        progress();
        while !self.is_over() {
            let alone = all().len() == 1;
            if alone {
                lock(&self.operation).go_on(true);
            } else {
                std::thread::yield_now();
            }
            progress();
        }
    }

    /// What became of it, once it is over, and its communicator, if that is there. Told once.
    pub fn outcome(&self) -> (Option<MPI_Comm>, Result<()>) {
        let mut operation = lock(&self.operation);
        ((!operation.orphan).then_some(self.comm), operation.over.replace(Ok(())).unwrap_or(Ok(())))
    }
}

impl Operation {
    /// Goes on until it is over, or would have to wait; true if it is over.
    fn go_on(&mut self, waits: bool) -> bool {
        if self.over.is_none() {
            // SAFETY: whoever began it vouched for its memory until it is over
            match unsafe { self.carry_out(waits) } {
                Ok(false) => return false,
                Ok(true) => self.over = Some(Ok(())),
                Err(e) => self.over = Some(Err(e)),
            }
            let (executor, mut spare) = (std::mem::take(&mut self.executor), lock(&self.shared.spare));
            if let Some(Err(_)) = self.over {
                // messages that are still open keep the memory that they go to
                self.shared.lose(self.tag);
                std::mem::forget(executor);
            } else if spare.len() < SPARE {
                spare.push(executor);
            }
        }
        true
    }

    unsafe fn carry_out(&mut self, waits: bool) -> Result<bool> {
        if self.after.as_ref().is_some_and(|before| !before.is_over()) {
            return Ok(false);
        }
        self.after = None;
        if self.step == 0 && !self.started {
            self.shared.check(self.tag)?;
        }
        let Operation { transport, arguments, executor, trace, .. } = self;
        let plan::Planned::Run(steps) = &*self.plan else { return Ok(true) };
        while let Some(Step::Program(program)) = steps.get(self.step) {
            if !self.started {
                *trace = trace_of(program);
            }
            let combine = |left: &[u8], into: &mut [u8]| arguments.combine(left, into);
            let mut task = Task::new(program).combining(&combine).traced(trace.as_mut());
            // SAFETY: the caller's; the same task each time
            unsafe {
                if !self.started {
                    executor.start(transport, &mut task, arguments.buffers, self.tag)?;
                    self.started = true;
                }
                if waits {
                    executor.finish(transport, &mut task)?;
                } else if !executor.progress(transport, &mut task)? {
                    return Ok(false);
                }
            }
            keep_trace((self.collective, program), trace.take(), arguments, self.ranks);
            (self.step, self.started) = (self.step + 1, false);
        }
        Ok(true)
    }
}
