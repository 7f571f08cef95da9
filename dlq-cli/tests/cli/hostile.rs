//! Error texts, job ids and payloads are what some server sent: the terminal obeys none of it.

use super::support::{Bench, usual};

use std::os::unix::ffi::OsStringExt as _;
use std::process::Command;

use retry_runtime::dead_letter::Payload;

const HOSTILE: &str = "<script>alert(1)</script>\x1b]0;owned\x07\x1b[2J\x1b[31m\u{9b}5n\r\n\u{202e}gpj.exe\u{2066}\u{200b}\u{feff}\0\x7f\u{85}";

fn is_obeyed(c: char) -> bool {
    (c.is_control() && c != '\n')
        || ('\u{200b}'..='\u{200f}').contains(&c)
        || ('\u{202a}'..='\u{202e}').contains(&c)
        || ('\u{2066}'..='\u{2069}').contains(&c)
        || c == '\u{feff}'
}

#[test]
fn a_terminal_obeys_nothing() {
    let bench = Bench::empty();
    let id = bench.fill(|store, bench| {
        let mut letter = usual(1);
        letter.kind = format!("kind{HOSTILE}");
        letter.job_id = Some(format!("job{HOSTILE}"));
        letter.model = Some(HOSTILE.to_owned());
        letter.class = Some(format!("class{HOSTILE}"));
        letter.error_type = HOSTILE.to_owned();
        letter.error_message = format!("message{HOSTILE}");
        letter.payload = Payload::Json(serde_json::json!({ "text": HOSTILE, "raw": "\u{202e}x" }).to_string());
        letter.history[0].message = HOSTILE.to_owned();
        bench.park(store, letter)
    });
    bench.dlq(&["resolve", &id, "--reason", HOSTILE.replace('\0', "").as_str()]).exits(0);
    bench.dlq(&["restore", "--id", &id, "--status", "recovered", "--reason", &HOSTILE.replace('\0', "")]).exits(0);
    let group = bench.json(&["groups"])["groups"][0]["group"].as_str().unwrap().to_owned();
    bench.dlq(&["note", &group, &HOSTILE.replace('\0', "")]).exits(0);
    let op = bench.json(&["ops"])["operations"][0]["operation"].as_str().unwrap().to_owned();
    for arguments in [
        &[][..],
        &["summary"],
        &["list"],
        &["groups"],
        &["show", &id],
        &["show", &id, "--raw"],
        &["tail", "--limit", "1"],
        &["audit"],
        &["stats"],
        &["doctor", "--full", "--handled", "x"],
        &["replay", "--all"],
        &["ops"],
        &["ops", "show", &op],
        &["note", &group],
        &["prune", "--older-than", "0s", "--dry-run"],
        &[
            "replay",
            "--all",
            "--execute",
            "--exec",
            "sh",
            "-c",
            "printf 'a\\033[2J\\377'; printf 'b\\033[2J\\377' >&2; exit 3",
        ],
        &["list"],
        &["discard", "--all"],
    ] {
        let ran = bench.dlq(arguments);
        for (shown, name) in [(&ran.out, "stdout"), (&ran.err, "stderr")] {
            let obeyed: Vec<char> = shown.chars().filter(|c| is_obeyed(*c)).collect();
            assert!(obeyed.is_empty(), "dlq {} on {name}: {obeyed:?} in {shown:?}", arguments.join(" "));
        }
    }
}

#[test]
fn ten_megabytes_are_a_line() {
    let bench = Bench::empty();
    bench.fill(|store, bench| {
        let mut letter = usual(1);
        letter.error_message = "x".repeat(10 << 20);
        letter.payload = Payload::Json(format!("\"{}\"", "y".repeat(10 << 20)));
        bench.park(store, letter);
    });
    for arguments in [&[][..], &["list"], &["groups"], &["show", "page-1"], &["audit"], &["tail", "--limit", "1"]] {
        let ran = bench.dlq(arguments).exits(0);
        assert!(ran.out.len() < 40_000, "dlq {} printed {} bytes", arguments.join(" "), ran.out.len());
    }
    assert!(bench.dlq(&["show", "page-1", "--raw"]).exits(0).out.len() > 10 << 20);
    let copied = bench.script("copy", "cat > payload; exit 1");
    bench.dlq(&["replay", "--all", "--execute", "--exec", &copied.display().to_string()]).exits(1);
    assert_eq!(std::fs::metadata(bench.path("payload")).unwrap().len(), (10 << 20) + 2);
}

#[test]
fn what_is_no_utf_8_is_shown_too() {
    let bench = Bench::with(2);
    // A message that another program wrote into the file.
    let sql = "UPDATE letter SET error_message = CAST(x'62616420ff1b5b324a' AS TEXT), job_id = CAST(x'6a6f62fe' AS TEXT) WHERE job_id = 'page-1'";
    assert!(Command::new("sqlite3").arg(bench.db()).arg(sql).status().unwrap().success());
    let id = bench.json(&["list", "--limit", "1"])["letters"][0]["letter_id"].as_str().unwrap().to_owned();
    for arguments in [&[][..], &["list"], &["groups"], &["show", &id], &["export"]] {
        let output = bench.command(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?} {output:?}");
        assert!(!output.stdout.contains(&0x1b), "{arguments:?}");
        assert!(String::from_utf8(output.stdout).is_ok(), "{arguments:?}");
    }
    let odd = std::ffi::OsString::from_vec(b"page-\xff".to_vec());
    assert_eq!(bench.command(&["show"]).arg(odd).output().unwrap().status.code(), Some(2));
}
