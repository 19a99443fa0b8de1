//! Folders of policies: a site has one for each of its partitions, and a job uses that of its hosts.

use super::Policy;
use crate::error::{Error, Result};
use std::path::{Path, PathBuf};

impl Policy {
    /// The policies of a folder, by name: its files `*.toml`.
    ///
    /// # Errors
    /// The folder cannot be read, or has none.
    pub fn files(folder: &Path) -> Result<Vec<PathBuf>> {
        let failed = |e: std::io::Error| Error::Io { action: "read", path: folder.into(), reason: e };
        let entries = std::fs::read_dir(folder).map_err(failed)?.collect::<std::io::Result<Vec<_>>>().map_err(failed)?;
        let mut files: Vec<PathBuf> =
            entries.into_iter().map(|e| e.path()).filter(|p| p.extension().is_some_and(|e| e == "toml")).collect();
        files.sort();
        if files.is_empty() {
            return Err(Error::invalid(format!("find a policy in {}: it has no *.toml", folder.display())));
        }
        Ok(files)
    }

    /// The first policy of a folder, by name, that has a host.
    ///
    /// # Errors
    /// None has it, or one that comes before cannot be read.
    pub fn of_host(folder: &Path, host: &str) -> Result<Policy> {
        let files = Policy::files(folder)?;
        for file in &files {
            let policy = Policy::read(file)?;
            if policy.groups.iter().any(|group| group.hosts.iter().any(|known| known == host)) {
                return Ok(policy);
            }
        }
        Err(Error::invalid(format!("find a policy for host \"{host}\" in {}: none of its {} has it", folder.display(), files.len())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_policy_by_name_that_has_a_host_is_its_policy() {
        let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("policies");
        assert!(Policy::files(&shipped).unwrap().len() > 1);
        let policy = Policy::of_host(&shipped, "orsay-7").unwrap();
        assert_eq!(policy.provenance.platform, "ccgrid2007");
        let none = Policy::of_host(&shipped, "nowhere").unwrap_err().to_string();
        assert!(none.contains("nowhere") && none.contains("policies"), "{none}");
        assert!(Policy::of_host(&shipped.join("none"), "orsay-7").is_err());
    }
}
