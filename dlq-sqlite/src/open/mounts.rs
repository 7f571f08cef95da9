//! Whether a path lies on a network file system.
//!
//! WAL needs memory shared by all openers, and network locks are not to be trusted (STORE S6). Linux tells the type of
//! every mount in `/proc/self/mountinfo`; elsewhere nothing is known and nothing is refused.

use std::path::{Path, PathBuf};

/// Types that are reached over a network, or through a proxy that does not share memory.
const NETWORK: &[&str] = &[
    "9p",
    "afs",
    "ceph",
    "cifs",
    "coda",
    "fuse.ceph",
    "fuse.davfs",
    "fuse.glusterfs",
    "fuse.gcsfuse",
    "fuse.rclone",
    "fuse.s3fs",
    "fuse.sshfs",
    "gfs2",
    "glusterfs",
    "lustre",
    "ncpfs",
    "nfs",
    "nfs4",
    "ocfs2",
    "smb3",
    "smbfs",
    "vboxsf",
    "virtiofs",
    "vmhgfs",
];

/// The network file system type on which `path` (a file, perhaps not there yet) lies.
pub(crate) fn network_file_system(path: &Path) -> Option<String> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    let there = path.ancestors().find_map(|ancestor| {
        let ancestor = if ancestor.as_os_str().is_empty() { Path::new(".") } else { ancestor };
        ancestor.canonicalize().ok()
    })?;
    let found = type_of(&mounts, &there)?;
    NETWORK.contains(&found.as_str()).then_some(found)
}

/// The type of the mount that holds `path`: the longest mount point that is a prefix, the later one where two are equal.
fn type_of(mountinfo: &str, path: &Path) -> Option<String> {
    mountinfo
        .lines()
        .filter_map(|line| {
            // 36 35 98:0 /root /mount/point options [optional fields] - type source super-options
            let (left, right) = line.split_once(" - ")?;
            let point = unescape(left.split(' ').nth(4)?);
            let kind = right.split(' ').next()?;
            path.starts_with(&point).then(|| (point.components().count(), kind.to_owned()))
        })
        .max_by_key(|(depth, _)| *depth)
        .map(|(_, kind)| kind)
}

/// Space, tab, newline and backslash are written in octal.
fn unescape(text: &str) -> PathBuf {
    PathBuf::from(text.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:30 / /srv/nfs\\040share rw,relatime - nfs4 server:/x rw
31 30 0:31 / /srv/nfs\\040share/local rw - tmpfs tmpfs rw
32 22 0:32 / /home/u/drive rw - fuse.sshfs u@host:/ rw";

    // S6: the longest mount point decides, and escapes are read.
    #[test]
    fn the_innermost_mount_decides() {
        for (path, kind) in [
            ("/var/lib/app/jobs.db", "ext4"),
            ("/srv/nfs share/jobs.db", "nfs4"),
            ("/srv/nfs share/local/jobs.db", "tmpfs"),
            ("/home/u/drive/jobs.db", "fuse.sshfs"),
            ("/home/u/drive2/jobs.db", "ext4"),
        ] {
            assert_eq!(type_of(MOUNTS, Path::new(path)).as_deref(), Some(kind), "{path}");
        }
    }

    #[test]
    fn a_local_path_is_not_refused() {
        assert_eq!(network_file_system(&std::env::temp_dir().join("not-there.db")), None);
    }
}
