//! Reports of mpiP 3.x, full and concise.
//!
//! Columns are found by the names that the report writes above them, so that a version with another column more is read as well.

use super::distances::{self, Distance};
use super::histogram::Histogram;
use super::used::{self, Use};
use crate::error::{Error, Result};
use crate::files::{named_once, read_damaged_text};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A report.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The file, as the user gave it.
    pub file: String,
    /// What was run.
    pub command: String,
    /// mpiP's version.
    pub version: String,
    /// The node of each task.
    pub nodes: Vec<String>,
    /// The mean over the tasks.
    pub mean: Times,
    /// By task; empty where the report gives their mean only.
    pub tasks: Vec<Times>,
    /// By call site, in the order of their numbers.
    pub sites: Vec<Site>,
    /// What of its MPI calls the report lists.
    pub listed: Listed,
    /// Collectives by communicator, where the report is of our own preloaded library.
    pub uses: Vec<Use>,
    /// Messages by how far their receivers are, where the report is of our own preloaded library.
    pub distances: Vec<Distance>,
    /// Collectives by ranges of processes and bytes, where mpiP was asked for that (`-y`).
    pub histogram: Vec<Histogram>,
}

/// How much of all calls is at the sites that a report lists: all, but for the twenty sites at most that mpiP lists with its option -d.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Listed {
    /// The share of the time in MPI.
    pub time_share: f64,
    /// The share of bytes sent.
    pub bytes_share: f64,
}

impl Listed {
    /// The share of calls of a kind that sends so many bytes: that of all bytes sent, or, of those that send nothing, of the time.
    pub fn calls_share(&self, bytes: f64) -> f64 {
        if bytes > 0.0 { self.bytes_share } else { self.time_share }
    }
}

/// Seconds of a task.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Times {
    /// From the end of `MPI_Init` to the begin of `MPI_Finalize`.
    pub app_s: f64,
    /// In MPI.
    pub mpi_s: f64,
}

/// A place in the program that calls MPI; numbers of all tasks together.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Site {
    /// mpiP's number of it.
    pub id: usize,
    /// The call, without `MPI_`.
    pub call: String,
    /// File and line, or address.
    pub place: String,
    /// How often it was called; none where the report does not say.
    pub count: Option<f64>,
    /// Seconds there.
    pub seconds: f64,
    /// Bytes sent.
    pub bytes: f64,
    /// Bytes of a call of those processes that sent some; none where the report says them of all processes only.
    pub mean_bytes: Option<f64>,
    /// Tasks that were there, and their seconds; empty where the report does not list them.
    #[serde(skip)]
    pub by_task: Vec<(usize, f64)>,
}

impl Report {
    /// Reads a report.
    ///
    /// # Errors
    /// The file cannot be read, is none of mpiP's, ends too early, or has a line that makes no sense: with the line.
    pub fn read(path: &Path) -> Result<Report> {
        Report::parse(&path.display().to_string(), &read_damaged_text(path)?)
    }

    /// Reads several reports.
    ///
    /// # Errors
    /// As [`Report::read`]; a file that stands twice: it would count as two runs.
    pub fn read_all(paths: &[PathBuf]) -> Result<Vec<Report>> {
        let reports = paths.iter().map(|path| Report::read(path)).collect::<Result<Vec<_>>>()?;
        named_once(paths)?;
        Ok(reports)
    }

    /// Reads a report's text.
    ///
    /// # Errors
    /// As [`Report::read`].
    pub fn parse(file: &str, text: &str) -> Result<Report> {
        Reader { file, report: empty(file), sites: BTreeMap::new(), sums: Sums::default() }.read(text)
    }

    /// True if it is not mpiP's, but of our own preloaded library or of a [`super::Profile`].
    pub fn is_own(&self) -> bool {
        self.version.contains("collwise")
    }

    /// The number of tasks.
    pub fn ranks(&self) -> usize {
        self.nodes.len()
    }
}

fn empty(file: &str) -> Report {
    Report {
        file: file.into(),
        command: String::new(),
        version: String::new(),
        nodes: Vec::new(),
        mean: Times::default(),
        tasks: Vec::new(),
        sites: Vec::new(),
        listed: Listed { time_share: 1.0, bytes_share: 1.0 },
        uses: Vec::new(),
        distances: Vec::new(),
        histogram: Vec::new(),
    }
}

/// Half of the last digit of times in mpiP's concise reports, in seconds.
const LAST_DIGIT_S: f64 = 0.5e-6;
/// More tasks than any machine has: a report that says so is damaged.
const MOST_TASKS: f64 = 1e7;

/// The tables that matter, by the begin of their titles.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Table {
    /// Seconds by task.
    Tasks,
    /// The largest, mean, least and sum over tasks (concise).
    TaskStatistics,
    /// Where the sites are.
    Sites,
    /// The sites with most time.
    AggregateTime,
    /// The sites that send most.
    AggregateSent,
    /// Times of all sites.
    Time,
    /// Bytes of all sites.
    Sent,
    /// Collectives by communicator.
    Uses,
    /// Messages by distance.
    Distances,
    /// Collectives by ranges.
    Histogram,
    /// Not needed.
    Other,
}

impl Table {
    fn titled(title: &str) -> Table {
        [
            ("MPI Time (seconds)", Table::Tasks),
            ("Task Time Statistics", Table::TaskStatistics),
            ("Callsites:", Table::Sites),
            ("Aggregate Time", Table::AggregateTime),
            ("Aggregate Sent Message Size", Table::AggregateSent),
            ("Callsite Time statistics", Table::Time),
            ("Callsite Message Sent statistics", Table::Sent),
            (used::TITLE, Table::Uses),
            (distances::TITLE, Table::Distances),
            ("Aggregate Collective Time", Table::Histogram),
        ]
        .into_iter()
        .find(|(start, _)| title.starts_with(start))
        .map_or(Table::Other, |t| t.1)
    }
}

/// What stands under a title: the names of the columns come first.
#[derive(Default)]
struct Columns(Vec<String>);

/// A row under its columns.
struct Row<'a> {
    file: &'a str,
    line: usize,
    columns: &'a [String],
    words: Vec<&'a str>,
}

impl<'a> Row<'a> {
    fn wrong(&self, reason: impl Into<String>) -> Error {
        Error::Format { file: self.file.into(), line: Some(self.line), reason: reason.into() }
    }

    fn has(&self, column: &str) -> bool {
        self.columns.iter().any(|c| c == column)
    }

    fn text(&self, column: &str) -> Result<&'a str> {
        let k = self.columns.iter().position(|c| c == column);
        let k = k.ok_or_else(|| self.wrong(format!("the table has no column \"{column}\"; is this a report of mpiP 3?")))?;
        self.words.get(k).copied().ok_or_else(|| self.wrong(format!("\"{column}\" is missing: the line is cut")))
    }

    /// A number that is not negative.
    fn number(&self, column: &str) -> Result<f64> {
        let text = self.text(column)?;
        let value = text.parse::<f64>().ok().filter(|v| v.is_finite() && *v >= 0.0);
        value.ok_or_else(|| self.wrong(format!("{column} is \"{text}\", which is no number of seconds, bytes or calls")))
    }

    /// A share that is given in percent; 0 in a table without such a column.
    fn share(&self, column: &str) -> Result<f64> {
        if self.has(column) { Ok(self.number(column)? / 100.0) } else { Ok(0.0) }
    }

    fn site(&self) -> Result<usize> {
        let text = self.text("Site")?;
        text.parse().map_err(|_| self.wrong(format!("the site is \"{text}\", which is no number")))
    }
}

/// What is known of a site from the tables of all sites.
#[derive(Default)]
struct Sums {
    /// The last row of the table by tasks, and its line.
    all: Option<(usize, Times)>,
    /// The sum over all tasks where their times are not listed, and its line.
    aggregate: Option<(usize, Times)>,
    /// Tasks of the site that most of them call, where sites are not listed by task, and its line.
    most_tasks: Option<(usize, f64)>,
    /// Rows by rank, for sites whose sum is missing.
    seen: BTreeMap<(String, usize), usize>,
    /// Shares of the time in MPI and of bytes sent in the tables of the twenty sites that have most, as the report prints them.
    top: (f64, f64),
    /// True if there are tables of all sites' times, and of all sites' bytes.
    all_sites: (bool, bool),
}

struct Reader<'a> {
    file: &'a str,
    report: Report,
    /// By call and number: a number is given once for each call at a place.
    sites: BTreeMap<(usize, String), Site>,
    sums: Sums,
}

impl Reader<'_> {
    fn wrong(&self, line: usize, reason: impl Into<String>) -> Error {
        Error::Format { file: self.file.into(), line: Some(line), reason: reason.into() }
    }

    fn read(mut self, text: &str) -> Result<Report> {
        let mut lines = text.lines().zip(1..).filter(|(l, _)| !l.trim().is_empty()).peekable();
        match lines.next() {
            Some((first, _)) if first.trim() == "@ mpiP" => {}
            Some((_, line)) => return Err(self.wrong(line, "this is no report of mpiP: such begin with \"@ mpiP\"")),
            None => return Err(self.wrong(1, "the file is empty")),
        }
        let (mut table, mut columns, mut last, mut ended) = (Table::Other, Columns::default(), 1, false);
        for (text, line) in lines {
            last = line;
            let is_rule = text.trim().len() > 2 && text.trim().bytes().all(|b| b == b'-');
            if let Some(title) = text.trim_start().strip_prefix("@--- ") {
                (table, columns) = (Table::titled(title), Columns::default());
                ended = title.starts_with("End of Report");
            } else if let Some(said) = text.trim_start().strip_prefix("@ ") {
                self.header(said, line)?;
            } else if is_rule || table == Table::Other {
            } else if columns.0.is_empty() {
                columns.0 = text.split_whitespace().map(String::from).collect();
            } else {
                let row = Row { file: self.file, line, columns: &columns.0, words: text.split_whitespace().collect() };
                self.row(table, &row)?;
            }
        }
        if !ended {
            return Err(
                self.wrong(last, "the report ends here, without its last line \"End of Report\": the run was stopped, or the file was cut")
            );
        }
        self.close(last)
    }

    fn header(&mut self, said: &str, line: usize) -> Result<()> {
        let Some((key, value)) = said.split_once(':') else { return Ok(()) };
        let value = value.trim();
        match key.trim() {
            "Command" => self.report.command = value.into(),
            "Version" => self.report.version = value.into(),
            "MPI Task Assignment" => {
                let (task, node) = value.split_once(' ').unwrap_or((value, ""));
                if task.parse() != Ok(self.report.nodes.len()) {
                    return Err(self.wrong(line, format!("task {} should come here, not \"{task}\"", self.report.nodes.len())));
                }
                self.report.nodes.push(node.trim().into());
            }
            _ => {}
        }
        Ok(())
    }

    fn entry(&mut self, id: usize, call: &str) -> &mut Site {
        let call = call.strip_prefix("MPI_").unwrap_or(call);
        let site = || Site { id, call: call.into(), ..Site::default() };
        self.sites.entry((id, call.into())).or_insert_with(site)
    }

    fn row(&mut self, table: Table, row: &Row) -> Result<()> {
        match table {
            Table::Tasks => {
                let times = Times { app_s: row.number("AppTime")?, mpi_s: row.number("MPITime")? };
                match row.text("Task")? {
                    "*" => self.sums.all = Some((row.line, times)),
                    task if task.parse() == Ok(self.report.tasks.len()) => self.report.tasks.push(times),
                    task => return Err(row.wrong(format!("task {} should come here, not \"{task}\"", self.report.tasks.len()))),
                }
            }
            Table::TaskStatistics => {
                // the first word names the row and stands under no column
                let shifted = Row { words: row.words[1..].to_vec(), ..*row };
                let times = || Ok::<Times, Error>(Times { app_s: shifted.number("AppTime")?, mpi_s: shifted.number("MPITime")? });
                match row.words[0] {
                    "Mean" => self.report.mean = times()?,
                    "Aggregate" => self.sums.aggregate = Some((row.line, times()?)),
                    _ => {}
                }
            }
            Table::Sites => {
                // an address stands alone, without a line
                let (Some(id), Some(call)) = (row.words.first().and_then(|w| w.parse().ok()), row.words.last()) else {
                    return Err(row.wrong("this is no call site: a number should come first"));
                };
                // deeper levels are the callers of the place
                if let ["0", file, rest @ ..] = &row.words[1..]
                    && !rest.is_empty()
                {
                    let line = rest[0].parse::<usize>().map_or(String::new(), |l| format!(":{l}"));
                    self.entry(id, call).place = format!("{file}{line}");
                }
            }
            Table::AggregateTime => {
                let (id, seconds) = (row.site()?, row.number("Time")? / 1e3);
                // of mpiP 3.5 on
                let count = if row.has("Count") { Some(row.number("Count")?) } else { None };
                self.sums.top.0 += row.share("MPI%")?;
                let site = self.entry(id, row.text("Call")?);
                (site.count, site.seconds) = (count.or(site.count), seconds);
            }
            // how many of all were as large as its option -m asked for
            Table::AggregateSent if row.words[..2.min(row.words.len())] == ["Total", "send/collective"] => {}
            Table::AggregateSent => {
                let (id, count, bytes) = (row.site()?, row.number("Count")?, row.number("Total")?);
                self.sums.top.1 += row.share("Sent%")?;
                let site = self.entry(id, row.text("Call")?);
                // calls that send nothing are not counted here
                (site.count, site.bytes) = (site.count.or(Some(count)), bytes);
            }
            Table::Uses => self.report.uses.push(used::read(&row.words, row.has("Stride")).map_err(|e| row.wrong(e.to_string()))?),
            Table::Distances => self.report.distances.push(distances::read(&row.words).map_err(|e| row.wrong(e.to_string()))?),
            Table::Histogram => match Histogram::of(&row.words) {
                Some(of_call) => self.report.histogram.push(of_call),
                None => return Err(row.wrong("this is no call, share of time, and ranges of processes and bytes")),
            },
            Table::Time | Table::Sent => self.statistics(table, row)?,
            Table::Other => {}
        }
        Ok(())
    }

    /// A row of the tables of all sites: in full reports one for each task and one for all, marked `*`; concise ones have one a site.
    fn statistics(&mut self, table: Table, row: &Row) -> Result<()> {
        let (id, call) = (row.site()?, row.text("Name")?);
        *(if table == Table::Time { &mut self.sums.all_sites.0 } else { &mut self.sums.all_sites.1 }) = true;
        if !row.has("Rank") {
            let (tasks, mean) = (row.number("Tasks")?, row.number("Mean")?);
            if self.sums.most_tasks.is_none_or(|(_, most)| tasks > most) {
                self.sums.most_tasks = Some((row.line, tasks));
            }
            let site = self.entry(id, call);
            match table {
                Table::Time => site.seconds = tasks * mean / 1e3,
                _ => site.bytes = tasks * mean,
            }
            return Ok(());
        }
        let key = (call.to_string(), id);
        let rank = row.text("Rank")?;
        if rank != "*" {
            self.sums.seen.insert(key, row.line);
            if let Some(task) = rank.parse().ok().filter(|_| table == Table::Time) {
                let seconds = row.number("Mean")? / 1e3 * row.number("Count")?;
                self.entry(id, call).by_task.push((task, seconds));
            }
            return Ok(());
        }
        let count = row.number("Count")?;
        let mean = row.number("Mean")?;
        let sum = if table == Table::Sent { row.number("Sum")? } else { mean / 1e3 * count };
        self.sums.seen.remove(&key);
        let site = self.entry(id, call);
        if table == Table::Time {
            (site.count, site.seconds) = (Some(count), sum);
        } else {
            // processes that sent nothing are not counted here
            (site.count, site.bytes, site.mean_bytes) = (site.count.or(Some(count)), sum, Some(mean));
        }
        Ok(())
    }

    /// The number of tasks where none is listed, as in mpiP's own concise reports: as often as their mean is in their sum.
    fn tasks_by_sums(&self, last: usize) -> Result<usize> {
        let mean_s = self.report.mean.app_s;
        let Some((line, sum)) = self.sums.aggregate.filter(|_| mean_s > 0.0) else {
            return Err(self.wrong(last, "the report does not say how many tasks there were"));
        };
        let tasks = sum.app_s / mean_s;
        // both are given to so many digits
        let unsure = tasks * LAST_DIGIT_S / mean_s;
        if !(0.5..=MOST_TASKS).contains(&tasks) || unsure > 0.25 || (tasks - tasks.round()).abs() > 0.25 {
            let wrong = format!("{} s in all and {mean_s} s in the mean do not tell how many tasks there were", sum.app_s);
            return Err(self.wrong(line, wrong));
        }
        match self.sums.most_tasks {
            Some((line, most)) if most > tasks.round() => {
                Err(self.wrong(line, format!("a site of {most} tasks, of which there were {}", tasks.round())))
            }
            _ => Ok(tasks.round() as usize),
        }
    }

    /// What only the whole report can tell.
    fn close(mut self, last: usize) -> Result<Report> {
        if let Some(((call, id), line)) = self.sums.seen.iter().next() {
            return Err(self.wrong(*line, format!("the sum over all tasks (rank *) of {call} at site {id} is missing after this line")));
        }
        let tasks = self.report.tasks.len();
        if tasks > 0 {
            if self.report.nodes.is_empty() {
                self.report.nodes = vec![String::new(); tasks];
            }
            if tasks != self.report.nodes.len() {
                let line = self.sums.all.map_or(last, |a| a.0);
                return Err(self.wrong(line, format!("times of {tasks} tasks, but {} were assigned to nodes", self.report.nodes.len())));
            }
            let mean = |of: fn(&Times) -> f64| self.report.tasks.iter().map(of).sum::<f64>() / tasks as f64;
            self.report.mean = Times { app_s: mean(|t| t.app_s), mpi_s: mean(|t| t.mpi_s) };
        } else if let Some((_, sum)) = self.sums.all.filter(|_| !self.report.nodes.is_empty()) {
            let ranks = self.report.nodes.len() as f64;
            self.report.mean = Times { app_s: sum.app_s / ranks, mpi_s: sum.mpi_s / ranks };
        }
        if self.report.nodes.is_empty() {
            self.report.nodes = vec![String::new(); self.tasks_by_sums(last)?];
        }
        let Times { app_s, mpi_s } = self.report.mean;
        if app_s <= 0.0 {
            return Err(self.wrong(last, "the report has no times of tasks"));
        }
        if mpi_s > app_s * 1.01 {
            return Err(self.wrong(last, format!("{mpi_s} s in MPI of {app_s} s in all cannot be")));
        }
        // shares are rounded
        let listed = |of_all: bool, top: f64| if of_all || top > 0.99 || top == 0.0 { 1.0 } else { top };
        let Sums { all_sites, top, .. } = self.sums;
        self.report.listed = Listed { time_share: listed(all_sites.0, top.0), bytes_share: listed(all_sites.1, top.1) };
        self.report.sites = self.sites.into_values().collect();
        Ok(self.report)
    }
}
