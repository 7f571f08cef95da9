//! Which SQLite libraries may use the write-ahead log.

/// Whether WAL is safe with this library.
///
/// SQLite 3.7.0 to 3.51.2 can corrupt a WAL database when one connection writes while another checkpoints; fixed in
/// 3.51.3, 3.50.7 and 3.44.6 (STORE S6).
pub(crate) const fn wal_is_safe(library: i32) -> bool {
    library >= 3_051_003
        || (library >= 3_050_007 && library < 3_051_000)
        || (library >= 3_044_006 && library < 3_045_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    // S6
    #[test]
    fn the_fixed_releases_pass_and_the_others_do_not() {
        for bad in [3_007_000, 3_040_001, 3_044_005, 3_046_000, 3_050_002, 3_050_006, 3_051_001, 3_051_002] {
            assert!(!wal_is_safe(bad), "{bad}");
        }
        for good in [3_044_006, 3_050_007, 3_051_003, 3_053_002, 3_054_001] {
            assert!(wal_is_safe(good), "{good}");
        }
    }

    #[test]
    fn the_bundled_library_passes() {
        assert!(wal_is_safe(rusqlite::version_number()));
    }
}
