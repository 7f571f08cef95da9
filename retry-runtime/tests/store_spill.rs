//! The spill file: written whole, locked, imported once, and what cannot be read is set aside aloud.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]
#![cfg(unix)]

use std::collections::HashSet;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use retry_runtime::StopReason;
use retry_runtime::dead_letter::{Batch, DeadLetter, Payload, Reserve, Spill};
use retry_runtime::error::{StoreError, StoreErrorKind};
use retry_runtime::id::Id;

/// A directory of its own for each test, gone with it.
struct Dir(PathBuf);

impl Dir {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("retry-spill-{}", Id::new(SystemTime::now())));
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn spill(&self) -> Spill {
        Spill::in_dirs("jobs.db", [self.0.clone()])
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _left = fs::remove_dir_all(&self.0);
    }
}

fn letter(job: &str) -> DeadLetter {
    let at = UNIX_EPOCH + Duration::from_millis(1_767_323_045_006);
    let mut letter = DeadLetter::new("fetch", StopReason::Exhausted, at);
    letter.job_id = Some(job.into());
    letter.payload = Payload::Json(format!("{{\"id\":\"{job}\"}}"));
    letter
}

fn full() -> StoreError {
    StoreError::new(StoreErrorKind::Full, "the store is full")
}

fn collect(spill: &Spill) -> (Vec<DeadLetter>, retry_runtime::dead_letter::Import) {
    let mut letters = Vec::new();
    let done = spill.import(|batch: Batch| {
        letters.extend(batch.letters);
        Ok(())
    });
    (letters, done.unwrap())
}

// D8: one file per process, named after the store, readable by its owner only.
#[test]
fn one_private_file_takes_all_letters() {
    let dir = Dir::new();
    let spill = dir.spill();
    assert_eq!(dir.names(), Vec::<String>::new(), "nothing is created before the first letter");
    let first = spill.append(&letter("a")).unwrap();
    let second = spill.append(&letter("b")).unwrap();
    assert_eq!(first, second);
    let name = first.file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with("jobs.db.spill.") && name.ends_with(".ndjson"), "{name}");
    assert_eq!(fs::metadata(&first).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(spill.waiting().unwrap(), 2);
    let text = fs::read_to_string(&first).unwrap();
    for line in text.lines() {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(value["v"], 1);
        assert!(Id::parse(value["park_id"].as_str().unwrap()).is_some());
        assert_eq!(value["crc"].as_str().unwrap().len(), 8);
    }
}

// D8: import gives every letter back as it was, and renames the file.
#[test]
fn what_is_spilled_comes_back_and_the_file_is_done() {
    let dir = Dir::new();
    let spill = dir.spill();
    let sent = [letter("a"), letter("b")];
    for letter in &sent {
        spill.append(letter).unwrap();
    }
    let (letters, done) = collect(&spill);
    assert_eq!(letters, sent);
    assert_eq!((done.files, done.letters, done.bad_lines, done.busy), (1, 2, 0, 0));
    assert_eq!(spill.waiting().unwrap(), 0);
    assert!(dir.names()[0].ends_with(".ndjson.done"));
    // The next letter begins a new file, and only that one is imported again.
    let next = letter("c");
    spill.append(&next).unwrap();
    assert_eq!(collect(&spill).0, [next]);
}

// D8: when the store fails in the middle, the file waits for the next import.
#[test]
fn a_failing_import_leaves_the_file() {
    let dir = Dir::new();
    let spill = dir.spill();
    for n in 0..1_200 {
        spill.append(&letter(&n.to_string())).unwrap();
    }
    let mut batches = 0;
    let failed = spill.import(|batch| {
        batches += 1;
        assert!(batch.letters.len() <= 500);
        if batches == 2 { Err(full()) } else { Ok(()) }
    });
    assert_eq!(failed.unwrap_err().kind(), StoreErrorKind::Full);
    assert_eq!(spill.waiting().unwrap(), 1_200);
    let (letters, done) = collect(&spill);
    assert_eq!((letters.len(), done.files), (1_200, 1));
}

// D8: a torn line goes to `.bad`, and the rest is imported.
#[test]
fn a_torn_line_is_set_aside_and_the_rest_imported() {
    let dir = Dir::new();
    let path = {
        let spill = dir.spill();
        for job in ["a", "b", "c"] {
            spill.append(&letter(job)).unwrap();
        }
        spill.append(&letter("d")).unwrap()
    };
    let text = fs::read_to_string(&path).unwrap();
    let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
    lines[1] = lines[1].replace("fetch", "FETCH");
    let torn = lines[3].len() / 2;
    lines[3].truncate(torn);
    fs::write(&path, lines.join("\n")).unwrap();
    let (letters, done) = collect(&dir.spill());
    let jobs: Vec<_> = letters.iter().map(|letter| letter.job_id.as_deref().unwrap()).collect();
    assert_eq!(jobs, ["a", "c"]);
    assert_eq!((done.letters, done.bad_lines), (2, 2));
    let names = dir.names();
    assert!(names[0].ends_with(".ndjson.bad") && names[1].ends_with(".ndjson.done"), "{names:?}");
    let bad = fs::read_to_string(dir.0.join(&names[0])).unwrap();
    assert_eq!(bad.lines().collect::<Vec<_>>(), [&lines[1], &lines[3]]);
}

// D8, S7: what a later version wrote stays where it is.
#[test]
fn lines_of_a_later_version_are_left_alone() {
    let dir = Dir::new();
    let path = dir.0.join("jobs.db.spill.20260101T000000Z-x.ndjson");
    fs::write(&path, "{\"v\":99,\"new\":true}\n").unwrap();
    let (letters, done) = collect(&dir.spill());
    assert!(letters.is_empty());
    assert_eq!((done.files, done.refused), (0, 1));
    assert!(path.exists());
    assert_eq!(dir.spill().waiting().unwrap(), 1);
}

// D8: a version that was damaged is no later one, and keeps no other line from coming home
#[test]
fn a_damaged_version_is_a_bad_line() {
    let dir = Dir::new();
    let spill = dir.spill();
    for job in ["a", "b", "c"] {
        spill.append(&letter(job)).unwrap();
    }
    let path = spill.files().unwrap().remove(0);
    drop(spill);
    let text = fs::read_to_string(&path).unwrap();
    let (first, rest) = text.split_once('\n').unwrap();
    fs::write(&path, format!("{first}\n{}", rest.replacen("{\"v\":1", "{\"v\":3", 1))).unwrap();
    let (letters, done) = collect(&dir.spill());
    let jobs: Vec<_> = letters.iter().filter_map(|letter| letter.job_id.as_deref()).collect();
    assert_eq!(jobs, ["a", "c"]);
    assert_eq!((done.files, done.bad_lines, done.refused), (1, 1, 0));
}

// D8: many letters, one write and one sync; every line is one by itself
#[test]
fn letters_are_spilled_together() {
    let dir = Dir::new();
    let spill = dir.spill();
    let sent: Vec<_> = (0..100).map(|n| letter(&n.to_string())).collect();
    let path = spill.append_all(&sent.iter().collect::<Vec<_>>()).unwrap();
    assert_eq!(spill.append(&letter("more")).unwrap(), path);
    assert_eq!(spill.waiting().unwrap(), 101);
    drop(spill);
    let (letters, done) = collect(&dir.spill());
    assert_eq!((letters.len(), done.bad_lines), (101, 0));
    assert_eq!(letters.iter().take(100).collect::<Vec<_>>(), sent.iter().collect::<Vec<_>>());
}

// D8: other stores' files in the same directory are none of ours.
#[test]
fn files_of_other_stores_are_left_alone() {
    let dir = Dir::new();
    let other = Spill::in_dirs("other.db", [dir.0.clone()]);
    other.append(&letter("a")).unwrap();
    drop(other);
    assert_eq!(collect(&dir.spill()).1.files, 0);
}

// D8: a file is locked while its process lives, and imported once that process is dead.
#[test]
fn a_living_process_keeps_its_file() {
    let dir = Dir::new();
    let mut child = child("spill_and_wait", &dir.0);
    wait_for(|| dir.spill().waiting().unwrap() == 3);
    let (letters, done) = collect(&dir.spill());
    assert_eq!((letters.len(), done.busy, done.files), (0, 1, 0));
    child.kill().unwrap();
    child.wait().unwrap();
    let (letters, done) = collect(&dir.spill());
    assert_eq!((letters.len(), done.busy, done.files), (3, 0, 1));
}

// D8: a full disk leaves whole lines only. The child's files may not grow beyond 2 KiB.
#[test]
fn a_full_disk_leaves_whole_lines_only() {
    let dir = Dir::new();
    let me = std::env::current_exe().unwrap();
    let script = "trap '' XFSZ; ulimit -f 2; exec \"$0\" --exact child_spills_until_full --ignored --nocapture";
    let output = Command::new("bash").args(["-c", script]).arg(me).env("SPILL_DIR", &dir.0).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let stdout = String::from_utf8_lossy(&output.stdout);
    let kept: HashSet<_> = stdout.lines().filter_map(|line| line.strip_prefix("kept ")).collect();
    assert!(stdout.contains("full: Full"), "{stdout}");
    let (letters, done) = collect(&dir.spill());
    let found: HashSet<_> = letters.iter().map(|letter| letter.job_id.as_deref().unwrap()).collect();
    assert!(found.len() >= 3, "{found:?}");
    assert_eq!(found, kept);
    assert_eq!(done.bad_lines, 0);
}

// D8: the first directory that takes it.
#[test]
fn the_next_directory_takes_what_the_first_does_not() {
    let dir = Dir::new();
    let state = dir.0.join("state").join("deeper");
    let spill = Spill::in_dirs("jobs.db", [dir.0.join("missing"), state.clone()]);
    let path = spill.append(&letter("a")).unwrap();
    assert_eq!(path.parent().unwrap(), state);
    assert_eq!(fs::metadata(&state).unwrap().permissions().mode() & 0o777, 0o700);
    assert!(!dir.0.join("missing").exists(), "a missing store directory is a fault, not a wish");
    assert_eq!(collect(&spill).1.letters, 1);
    let nowhere = Spill::in_dirs("jobs.db", [dir.0.join("missing")]);
    assert_eq!(nowhere.append(&letter("b")).unwrap_err().kind(), StoreErrorKind::Unavailable);
}

// D8: a file that somebody took away is not written into the void.
#[test]
fn a_file_taken_away_is_replaced() {
    let dir = Dir::new();
    let spill = dir.spill();
    let first = spill.append(&letter("a")).unwrap();
    fs::remove_file(&first).unwrap();
    let second = spill.append(&letter("b")).unwrap();
    assert_ne!(first, second);
    assert_eq!(collect(&spill).0.len(), 1);
}

// D8: many threads, one import after the other: every letter comes home.
#[test]
fn nothing_is_lost_between_writers_and_importers() {
    let dir = Dir::new();
    let spill = dir.spill();
    let mut found = HashSet::new();
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|thread| {
                let spill = &spill;
                scope
                    .spawn(move || (0..40).for_each(|n| drop(spill.append(&letter(&format!("{thread}-{n}"))).unwrap())))
            })
            .collect();
        while !writers.iter().all(std::thread::ScopedJoinHandle::is_finished) {
            found.extend(collect(&spill).0.into_iter().map(|letter| letter.job_id.unwrap()));
        }
    });
    found.extend(collect(&spill).0.into_iter().map(|letter| letter.job_id.unwrap()));
    assert_eq!(found.len(), 160);
}

// D8: the reserve is really there, and really gone.
#[test]
fn the_reserve_takes_room_and_gives_it_free() {
    let dir = Dir::new();
    let reserve = Reserve::beside(dir.0.join("jobs.db"));
    assert!(!reserve.free());
    reserve.fill().unwrap();
    reserve.fill().unwrap();
    let path = dir.0.join("jobs.db.reserve");
    let found = fs::metadata(&path).unwrap();
    assert_eq!(found.len(), 4 << 20);
    assert!(std::os::unix::fs::MetadataExt::blocks(&found) * 512 >= 4 << 20, "a hole takes no room");
    assert_eq!(found.permissions().mode() & 0o777, 0o600);
    assert!(reserve.free());
    assert!(!path.exists());
}

fn child(test: &str, dir: &Path) -> std::process::Child {
    let me = std::env::current_exe().unwrap();
    Command::new(me)
        .args(["--exact", &format!("child_{test}"), "--ignored"])
        .env("SPILL_DIR", dir)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

fn wait_for(mut condition: impl FnMut() -> bool) {
    let end = std::time::Instant::now() + Duration::from_secs(30);
    while !condition() {
        assert!(std::time::Instant::now() < end, "waited for 30 s");
        std::thread::yield_now();
    }
}

fn spill_of_child() -> Option<Spill> {
    std::env::var_os("SPILL_DIR").map(|dir| Spill::in_dirs("jobs.db", [PathBuf::from(dir)]))
}

#[test]
#[ignore = "run by a_living_process_keeps_its_file"]
fn child_spill_and_wait() {
    let Some(spill) = spill_of_child() else { return };
    for job in ["a", "b", "c"] {
        spill.append(&letter(job)).unwrap();
    }
    std::thread::park_timeout(Duration::from_secs(60));
}

#[test]
#[ignore = "run by a_full_disk_leaves_whole_lines_only"]
fn child_spills_until_full() {
    let Some(spill) = spill_of_child() else { return };
    for n in 0..100 {
        match spill.append(&letter(&n.to_string())) {
            Ok(_) => println!("kept {n}"),
            Err(error) => {
                println!("full: {:?}", error.kind());
                std::io::stdout().flush().unwrap();
                return;
            }
        }
    }
}

// D8: letters of a scope come home to it, whoever brings them
#[test]
fn a_line_tells_its_scope_and_a_batch_has_one() {
    let dir = Dir::new();
    for (scope, jobs) in [(Some("red"), ["a", "b"]), (None, ["c", "d"]), (Some("r\"\u{0}"), ["e", "f"])] {
        let spill = scope.into_iter().fold(dir.spill(), Spill::in_scope);
        for job in jobs {
            spill.append(&letter(job)).unwrap();
        }
    }
    // As one file: whatever a file holds, no batch mixes scopes.
    let text: String = dir.names().iter().map(|name| fs::read_to_string(dir.0.join(name)).unwrap()).collect();
    for name in dir.names() {
        fs::remove_file(dir.0.join(name)).unwrap();
    }
    fs::write(dir.0.join("jobs.db.spill.1.ndjson"), text).unwrap();
    let mut found = Vec::new();
    let done = dir.spill().import(|batch| {
        let jobs: Vec<_> = batch.letters.iter().map(|letter| letter.job_id.clone().unwrap()).collect();
        found.push((batch.scope, jobs.concat()));
        Ok(())
    });
    assert_eq!(done.unwrap().letters, 6);
    found.sort_by(|one, two| one.1.cmp(&two.1));
    let wanted = [(Some("red"), "ab"), (None, "cd"), (Some("r\"\u{0}"), "ef")];
    assert_eq!(found, wanted.map(|(scope, jobs)| (scope.map(str::to_owned), jobs.to_owned())));
}

// D8: what is spilled may be larger than the memory
#[test]
fn large_letters_come_home_a_few_at_a_time() {
    let dir = Dir::new();
    let spill = dir.spill();
    for job in 0..20 {
        let mut large = letter(&job.to_string());
        large.payload = Payload::Json(format!("\"{}\"", "x".repeat(1 << 20)));
        spill.append(&large).unwrap();
    }
    // Lines that cannot be read are no letters: a file is read to its end all the same.
    let path = spill.append(&letter("last but one")).unwrap();
    spill.release();
    let mut file = fs::OpenOptions::new().append(true).open(path).unwrap();
    for _ in 0..20 {
        file.write_all(format!("{}\n", "y".repeat(1 << 20)).as_bytes()).unwrap();
    }
    spill.append(&letter("last")).unwrap();
    spill.release();
    let mut sizes = Vec::new();
    let done = spill.import(|batch| {
        sizes.push(batch.letters.len());
        Ok(())
    });
    let done = done.unwrap();
    assert_eq!((done.letters, done.bad_lines), (22, 20));
    assert!(sizes.iter().all(|size| *size <= 9), "{sizes:?}");
}

// D8: an importer that takes a file away before its owner has locked it
#[test]
fn no_letter_is_refused_because_others_import() {
    let dir = Dir::new();
    let ended = std::sync::atomic::AtomicBool::new(false);
    let (spilled, imported) = std::thread::scope(|scope| {
        let importers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut letters = 0;
                    while !ended.load(std::sync::atomic::Ordering::SeqCst) {
                        letters += collect(&dir.spill()).0.len();
                    }
                    letters
                })
            })
            .collect();
        // A new file for each letter.
        let spilled: Vec<_> = (0..400).map(|job| dir.spill().append(&letter(&job.to_string())).map(drop)).collect();
        ended.store(true, std::sync::atomic::Ordering::SeqCst);
        (spilled, importers.into_iter().map(|importer| importer.join().unwrap()).sum::<usize>())
    });
    assert!(spilled.iter().all(Result::is_ok), "{:?}", spilled.iter().find(|spilled| spilled.is_err()));
    assert!(imported + collect(&dir.spill()).0.len() >= 400);
}
