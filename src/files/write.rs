//! Writing files.
//!
//! A regular file is replaced whole, through a temporary neighbour, so that a reader or an interrupt never meets half a file; everything
//! else (devices, pipes, what this process was handed open) is written through.

use super::failed;
use crate::error::Result;
use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

/// The mode of a new file, of which the umask takes its part.
const NEW_MODE: u32 = 0o666;
/// The mode of a temporary while it lacks the mode of what it replaces, which may be for its owner only.
const OWN_MODE: u32 = 0o600;
/// Links are followed so often, as Linux does.
const MOST_LINKS: usize = 40;

/// Writes a file. A regular one is replaced whole or not at all, and keeps its mode and, where that is allowed, its owner; behind a
/// link, the file that it names. Devices, pipes, and `/dev/stdout` wherever it leads are written through.
///
/// # Errors
/// [`crate::error::Error::Io`] with the path. Nothing is left behind.
pub fn write_text(path: &Path, text: &str) -> Result<()> {
    let written = target(path).and_then(|target| match target {
        Target::Regular(path, before) => replace(&path, before.as_ref(), text.as_bytes()),
        Target::Device => OpenOptions::new().write(true).open(path)?.write_all(text.as_bytes()),
        Target::Descriptor(number) => write_to_descriptor(path, number, text.as_bytes()),
    });
    written.map_err(failed("write", path))
}

/// Finds out, before hours of measuring, whether a file could be written. Leaves no trace; what a device or a pipe takes shows only when
/// it is written to.
///
/// # Errors
/// [`crate::error::Error::Io`] with the path.
pub fn check_writable(path: &Path) -> Result<()> {
    let checked = target(path).and_then(|target| match target {
        // a file without a name: it is gone with its handle
        Target::Regular(path, _) => tempfile::tempfile_in(folder(&path)).map(drop),
        Target::Device | Target::Descriptor(_) => Ok(()),
    });
    checked.map_err(failed("write", path))
}

/// The one path, without links, of the regular file that a path names, or of the place for a new one; `None` if it names a device or a
/// pipe, beside which nothing should lie.
///
/// # Errors
/// [`crate::error::Error::Io`] with the path: no file can be there.
pub fn regular_path(path: &Path) -> Result<Option<PathBuf>> {
    let found = target(path).and_then(|target| match target {
        Target::Regular(path, _) => Ok(Some(std::fs::canonicalize(folder(&path))?.join(path.file_name().unwrap_or_default()))),
        Target::Device | Target::Descriptor(_) => Ok(None),
    });
    found.map_err(failed("write", path))
}

/// Where a path leads.
enum Target {
    /// To a regular file, or where one can be made; its path without links, and what is there.
    Regular(PathBuf, Option<Metadata>),
    /// To a device or a pipe.
    Device,
    /// To what this process has open under this number.
    Descriptor(Option<u32>),
}

fn target(path: &Path) -> io::Result<Target> {
    let mut path = path.to_path_buf();
    for _ in 0..MOST_LINKS {
        if let Some(number) = descriptor(&path) {
            // it is open
            return std::fs::metadata(&path).map(|_| Target::Descriptor(number));
        }
        let found = match std::fs::symlink_metadata(&path) {
            Ok(found) => found,
            Err(e) if e.kind() == io::ErrorKind::NotFound && path.file_name().is_some() => return Ok(Target::Regular(path, None)),
            Err(e) => return Err(e),
        };
        let kind = found.file_type();
        if kind.is_dir() {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder"));
        } else if kind.is_socket() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a socket"));
        } else if !kind.is_symlink() {
            return Ok(if kind.is_file() { Target::Regular(path, Some(found)) } else { Target::Device });
        }
        path = folder(&path).join(std::fs::read_link(&path)?);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a link to a link, and so on without end"))
}

/// The number of what this process has open, if the path names that: `/dev/stdout`, `/dev/fd/1`, `/proc/self/fd/1`. `None` inside: no
/// number.
fn descriptor(path: &Path) -> Option<Option<u32>> {
    let open = std::fs::canonicalize("/dev/fd").ok()?;
    let number = path.file_name()?.to_str()?.parse().ok();
    (std::fs::canonicalize(folder(path)).ok()? == open).then_some(number)
}

/// Writes where this process writes already: opened anew, a file would be written from its start.
fn write_to_descriptor(path: &Path, number: Option<u32>, bytes: &[u8]) -> io::Result<()> {
    match number {
        Some(1) => {
            let mut out = io::stdout().lock();
            out.write_all(bytes)?;
            out.flush()
        }
        Some(2) => io::stderr().lock().write_all(bytes),
        _ => OpenOptions::new().append(true).open(path)?.write_all(bytes),
    }
}

/// The folder that a file is in.
fn folder(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Puts a file in the place of another, or where there is none.
fn replace(path: &Path, before: Option<&Metadata>, bytes: &[u8]) -> io::Result<()> {
    let mode = if before.is_some() { OWN_MODE } else { NEW_MODE };
    // dropped before it has its name, it is removed
    let mut temporary =
        tempfile::Builder::new().prefix(".collwise-").permissions(Permissions::from_mode(mode)).tempfile_in(folder(path))?;
    temporary.write_all(bytes)?;
    if let Some(before) = before {
        keep_owner_and_mode(temporary.as_file(), before)?;
    }
    temporary.persist(path).map(drop).map_err(|e| e.error)
}

/// Gives a file the owner and group of another where that is allowed, and its mode; a group that is not the same gets no more than
/// everybody.
fn keep_owner_and_mode(file: &File, before: &Metadata) -> io::Result<()> {
    let _ = fchown(file, Some(before.uid()), Some(before.gid())).or_else(|_| fchown(file, None, Some(before.gid())));
    let mut mode = before.mode() & 0o777;
    if file.metadata()?.gid() != before.gid() {
        mode &= 0o707 | (mode & 0o007) << 3;
    }
    file.set_permissions(Permissions::from_mode(mode))
}

#[cfg(test)]
mod tests {
    use super::super::{read_damaged_text, read_text};
    use super::*;
    use std::os::unix::fs::symlink;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().mode() & 0o7777
    }

    fn count(folder: &Path) -> usize {
        std::fs::read_dir(folder).unwrap().count()
    }

    fn pipe(path: &Path) {
        assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
    }

    #[test]
    fn a_file_is_replaced_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.toml");
        write_text(&path, "x = 1\n").unwrap();
        write_text(&path, "x = 2\n").unwrap();
        assert_eq!(read_text(&path).unwrap(), "x = 2\n");
        assert_eq!(count(folder.path()), 1, "no temporary file stays");
        let bad = folder.path().join("no/such/folder/a.toml");
        assert!(write_text(&bad, "").unwrap_err().to_string().contains("no/such/folder"));
        assert!(write_text(folder.path(), "").unwrap_err().to_string().contains("it is a folder"));
    }

    #[test]
    fn a_file_keeps_its_mode_and_a_new_one_has_that_of_the_umask() {
        let folder = tempfile::tempdir().unwrap();
        let (path, plain) = (folder.path().join("a"), folder.path().join("b"));
        write_text(&path, "1").unwrap();
        std::fs::write(&plain, "1").unwrap();
        assert_eq!(mode(&path), mode(&plain));
        for wanted in [0o600, 0o640, 0o444, 0o755] {
            std::fs::set_permissions(&path, Permissions::from_mode(wanted)).unwrap();
            write_text(&path, "2").unwrap();
            assert_eq!(mode(&path), wanted);
        }
    }

    #[test]
    fn a_file_keeps_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        write_text(&path, "1").unwrap();
        if std::os::unix::fs::chown(&path, Some(12345), Some(23456)).is_err() {
            eprintln!("SKIPPED: only root gives files away");
            return;
        }
        write_text(&path, "2").unwrap();
        let found = std::fs::metadata(&path).unwrap();
        assert_eq!((found.uid(), found.gid()), (12345, 23456));
    }

    #[test]
    fn links_stay_and_what_they_name_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("sub")).unwrap();
        std::fs::write(at("sub/real"), "1").unwrap();
        symlink("sub/real", at("link")).unwrap();
        symlink("link", at("again")).unwrap();
        symlink("sub/new", at("dangling")).unwrap();
        symlink("round", at("round")).unwrap();
        write_text(&at("again"), "2").unwrap();
        write_text(&at("dangling"), "3").unwrap();
        assert_eq!((read_text(&at("sub/real")).unwrap(), read_text(&at("sub/new")).unwrap()), ("2".into(), "3".into()));
        for link in ["link", "again", "dangling", "round"] {
            assert!(at(link).symlink_metadata().unwrap().is_symlink(), "{link}");
        }
        assert!(write_text(&at("round"), "4").is_err() && check_writable(&at("round")).is_err());
        assert_eq!((count(folder.path()), count(&at("sub"))), (5, 2), "no temporary file stays");
    }

    #[test]
    fn devices_and_pipes_are_written_through() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("pipe"), folder.path().join("null"));
        pipe(&path);
        symlink("/dev/null", &link).unwrap();
        let reader = std::thread::spawn({
            let path = path.clone();
            move || read_text(&path).unwrap()
        });
        write_text(&path, "through").unwrap();
        assert_eq!(reader.join().unwrap(), "through");
        write_text(&link, "gone").unwrap();
        let full = write_text(Path::new("/dev/full"), "no room").unwrap_err().to_string();
        assert!(full.contains("write /dev/full"), "{full}");
        assert!(path.symlink_metadata().unwrap().file_type().is_fifo() && link.symlink_metadata().unwrap().is_symlink());
        assert!(std::fs::metadata("/dev/null").unwrap().file_type().is_char_device());
        assert_eq!(count(folder.path()), 2);
    }

    #[test]
    fn checking_leaves_no_trace_and_waits_for_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        pipe(&at("pipe"));
        std::fs::write(at("mine"), "kept").unwrap();
        // what once could be foreseen
        symlink(at("mine"), at(&format!("new.{}.tmp", std::process::id()))).unwrap();
        let before = std::fs::metadata(folder.path()).unwrap();
        for name in ["pipe", "mine", "new"] {
            check_writable(&at(name)).unwrap();
        }
        let after = std::fs::metadata(folder.path()).unwrap();
        assert_eq!((read_text(&at("mine")).unwrap(), count(folder.path())), ("kept".into(), 3));
        assert_eq!((before.mtime(), before.mtime_nsec()), (after.mtime(), after.mtime_nsec()), "the folder was written to");
        assert!(check_writable(folder.path()).is_err() && check_writable(&at("no/such/file")).is_err());
        check_writable(Path::new("/dev/stdout")).unwrap();
        std::fs::create_dir(at("sub")).unwrap();
        symlink("../mine", at("sub/link")).unwrap();
        let whole = |name: &str| Some(std::fs::canonicalize(folder.path()).unwrap().join(name));
        for (name, found) in [("new", "new"), ("sub/../new", "new"), ("sub/link", "mine")] {
            assert_eq!(regular_path(&at(name)).unwrap(), whole(found));
        }
        assert_eq!((regular_path(&at("pipe")).unwrap(), regular_path(Path::new("/dev/stdout")).unwrap()), (None, None));
    }

    #[test]
    fn what_is_no_text_is_marked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, b"a\xffb\n").unwrap();
        assert_eq!(read_damaged_text(&path).unwrap(), "a\u{fffd}b\n");
        assert!(read_text(&path).is_err());
    }
}
