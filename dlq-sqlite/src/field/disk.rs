//! Sizes of files and of what is left on their disk.

use std::path::Path;

/// The size of a file; 0 where there is none.
pub(crate) fn size(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// The sizes of all files below a directory together; 0 where there is none.
pub(crate) fn size_below(directory: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(directory) else { return 0 };
    let sizes = entries.filter_map(Result::ok).map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => size_below(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    });
    sizes.sum()
}

/// How many bytes this user may still write on the disk of a directory; `None` where the system does not tell.
pub(crate) fn free(directory: &Path) -> Option<u64> {
    #[cfg(unix)]
    {
        let told = rustix::fs::statvfs(directory).ok()?;
        Some(told.f_bavail.saturating_mul(told.f_frsize))
    }
    #[cfg(not(unix))]
    {
        let _ = directory;
        None
    }
}

/// A size for people.
pub(crate) fn bytes(n: u64) -> String {
    for (unit, shift) in [("GiB", 30), ("MiB", 20), ("KiB", 10)] {
        if n >= 1 << shift {
            let tenths = (n >> (shift - 10)).saturating_mul(10) >> 10;
            return format!("{}.{} {unit}", tenths / 10, tenths % 10);
        }
    }
    format!("{n} bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_for_people() {
        let said = [0, 1_023, 1_024, 1_536, 64 << 20, (3 << 30) + (1 << 29)].map(bytes);
        assert_eq!(said, ["0 bytes", "1023 bytes", "1.0 KiB", "1.5 KiB", "64.0 MiB", "3.5 GiB"]);
    }

    #[test]
    #[cfg(unix)]
    fn the_system_tells_what_is_free() {
        assert!(free(&std::env::temp_dir()).is_some_and(|free| free > 0));
        assert_eq!(free(Path::new("/not/there/at/all")), None);
    }
}
