//! A lock on a sample file, so that one process at a time writes to it: a sidecar that is locked for as long as its holder lives, and
//! says who that is.

use crate::error::{Error, Result};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What the text of a sidecar begins with: any other file is left as it is.
const BEGIN: &str = "process ";
/// So many bytes of it are shown.
const MOST_SHOWN: u64 = 200;

/// A lock that is held; dropped, it is released and its sidecar removed.
#[derive(Debug)]
pub struct Lock {
    path: PathBuf,
    file: File,
}

impl Lock {
    /// Locks a file; `None`, with a warning, where the file system has no locks.
    ///
    /// # Errors
    /// Another process holds it, which is named; or the sidecar cannot be made.
    pub fn take(path: &Path) -> Result<Option<Lock>> {
        let mut sidecar = path.as_os_str().to_owned();
        sidecar.push(".lock");
        let sidecar = PathBuf::from(sidecar);
        let io = |reason| Error::Io { action: "lock", path: sidecar.clone(), reason };
        loop {
            let Some(mut file) = open(&sidecar).map_err(io)? else { continue };
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(refusal(path, &sidecar, &mut file)),
                Err(TryLockError::Error(e)) => {
                    tracing::warn!("{}: no lock is to be had here ({e}): no other process must write to it now", path.display());
                    let _ = std::fs::remove_file(&sidecar);
                    return Ok(None);
                }
            }
            // its last holder may have removed it just now, and somebody else made another
            if !is_at(&sidecar, &file) {
                continue;
            }
            let text = begin_of(&mut file).map_err(io)?;
            if !text.is_empty() && !text.starts_with(BEGIN) {
                return Err(io(io::Error::other("it is no lock that collwise made: remove it, or name another sample file")));
            }
            let mut lock = Lock { path: sidecar.clone(), file };
            lock.sign().map_err(io)?;
            return Ok(Some(lock));
        }
    }

    /// Says who holds it.
    fn sign(&mut self) -> io::Result<()> {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_else(|_| "of unknown name".into());
        self.file.set_len(0)?;
        self.file.rewind()?;
        let text = format!("{BEGIN}{} on host {}, since {}\n", std::process::id(), host.trim(), crate::units::utc_now());
        self.file.write_all(text.as_bytes())
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // while it is held: afterwards it may be another's
        if is_at(&self.path, &self.file) {
            let _ = std::fs::remove_file(&self.path);
        }
        let _ = self.file.unlock();
    }
}

/// Opens a sidecar, or makes it; `None` if it was removed meanwhile. Follows no links, and waits for no pipe.
fn open(path: &Path) -> io::Result<Option<File>> {
    match OpenOptions::new().read(true).write(true).create_new(true).open(path) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
        made => return made.map(Some),
    }
    let opened = std::fs::symlink_metadata(path).and_then(|found| {
        if !found.is_file() {
            return Err(io::Error::other("it is no regular file: remove it, or name another sample file"));
        }
        // what another user holds can be read at least
        OpenOptions::new().read(true).write(true).open(path).or_else(|_| File::open(path))
    });
    match opened {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        opened => opened.map(Some),
    }
}

/// True if a path still names this file.
fn is_at(path: &Path, file: &File) -> bool {
    match (std::fs::symlink_metadata(path), file.metadata()) {
        (Ok(there), Ok(here)) => (there.dev(), there.ino()) == (here.dev(), here.ino()),
        _ => false,
    }
}

fn begin_of(file: &mut File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.take(MOST_SHOWN).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn refusal(path: &Path, sidecar: &Path, file: &mut File) -> Error {
    // whoever took it just now is about to sign it
    let mut text = String::new();
    for _ in 0..50 {
        text = file.rewind().and_then(|()| begin_of(file)).unwrap_or_default();
        if text.ends_with('\n') {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let holder = text.lines().next().filter(|line| line.starts_with(BEGIN)).unwrap_or("another process");
    let holder: String = holder.chars().filter(|c| !c.is_control()).collect();
    Error::invalid(format!(
        "write to {}: {holder}, writes to it (so says {}); wait until it is through, end it if it outlived its job, or name another file \
         with --samples",
        path.display(),
        sidecar.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn one_at_a_time_holds_it_and_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let (path, sidecar) = (folder.path().join("s.jsonl"), folder.path().join("s.jsonl.lock"));
        let held = Lock::take(&path).unwrap().unwrap();
        let said = Lock::take(&path).unwrap_err().to_string();
        let me = format!("process {} on host ", std::process::id());
        for word in [&me, "since 2", "s.jsonl.lock", "--samples", "outlived"] {
            assert!(said.contains(word), "{word}: {said}");
        }
        drop(held);
        assert!(!sidecar.exists());
        // what a killed process leaves
        std::fs::write(&sidecar, "process 1 on host gone, since ever and longer than what comes now, by far, so that it would show\n")
            .unwrap();
        let held = Lock::take(&path).unwrap();
        let text = std::fs::read_to_string(&sidecar).unwrap();
        assert!(text.starts_with(&me) && text.lines().count() == 1 && !text.contains("gone"), "{text}");
        drop(held);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn many_in_a_row_never_hold_it_together() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        let (inside, most) = (std::sync::atomic::AtomicUsize::new(0), std::sync::atomic::AtomicUsize::new(0));
        let order = std::sync::atomic::Ordering::SeqCst;
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut taken = 0;
                    while taken < 200 {
                        let Ok(lock) = Lock::take(&path) else { continue };
                        most.fetch_max(inside.fetch_add(1, order) + 1, order);
                        inside.fetch_sub(1, order);
                        drop(lock);
                        taken += 1;
                    }
                });
            }
        });
        assert_eq!(most.into_inner(), 1);
    }

    #[test]
    fn what_lies_in_its_place_is_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let (path, sidecar, other) = (folder.path().join("s"), folder.path().join("s.lock"), folder.path().join("other"));
        std::fs::write(&other, "mine").unwrap();
        symlink(&other, &sidecar).unwrap();
        assert!(Lock::take(&path).unwrap_err().to_string().contains("no regular file"));
        std::fs::remove_file(&sidecar).unwrap();
        symlink(folder.path().join("new"), &sidecar).unwrap();
        assert!(Lock::take(&path).unwrap_err().to_string().contains("no regular file"));
        assert!(!folder.path().join("new").exists());
        std::fs::remove_file(&sidecar).unwrap();
        std::fs::rename(&other, &sidecar).unwrap();
        assert!(Lock::take(&path).unwrap_err().to_string().contains("no lock that collwise made"));
        assert_eq!(std::fs::read_to_string(&sidecar).unwrap(), "mine");
    }
}
