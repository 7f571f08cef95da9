//! What somebody who was just woken mistakes, or is told wrongly.

use super::support::{Bench, Ran, usual};

use std::time::{Duration, SystemTime};

use retry_runtime::StopReason;
use retry_runtime::dead_letter::{
    Actor, BulkOperations as _, ClaimRequest, DeadLetter, DeadLetterStore as _, LetterState,
};
use retry_runtime::ledger::{AttemptLedger as _, LedgerKey};

fn first_operation(bench: &Bench) -> String {
    bench.json(&["ops"])["operations"][0]["operation"].as_str().unwrap().to_owned()
}

/// A letter whose replay died: its lease ended long ago.
fn with_a_lease_that_ended(bench: &Bench) {
    bench.fill(|store, bench| {
        let mut claim = ClaimRequest::new(["summarise"], "gone:4711");
        claim.lease = Duration::from_millis(1);
        let claimed = bench.wait(store.claim(claim, Actor::new("gone", ""))).unwrap();
        assert_eq!(claimed.len(), 1);
    });
}

// D15: what a runner that died left is seen, named with what to type, and taken back by the next real replay.
#[test]
fn a_lease_that_has_ended_holds_nobody_up() {
    let bench = Bench::with(2);
    with_a_lease_that_ended(&bench);
    bench.dlq(&["list"]).exits(0).says("replaying, lease over");
    bench.dlq(&[]).exits(0).says("dlq release page-0 ").says("its lease is over");
    bench.dlq(&["replay", "--all"]).exits(0).says("1 letter under way of whoever is gone");
    bench
        .dlq(&["replay", "--all", "--execute", "--exec", "true"])
        .exits(0)
        .warns("1 letter taken back")
        .says("2 of 2 matching recovered");
}

#[test]
fn a_letter_is_released_without_force_once_its_lease_is_over() {
    let bench = Bench::with(1);
    with_a_lease_that_ended(&bench);
    bench.dlq(&["release", "page-0"]).exits(0).says("is parked").says("taken back");
    bench.fill(|store, bench| {
        let claim = ClaimRequest::new(["summarise"], "busy:1");
        assert_eq!(bench.wait(store.claim(claim, Actor::new("busy", ""))).unwrap().len(), 1);
    });
    // Closing the store in order gave nothing back: that is for who claimed it.
    bench.dlq(&["release", "page-0"]).exits(1).warns("busy:1 replays it").warns("--force");
    bench.dlq(&["release", "page-0", "--force"]).exits(0).says("is parked");
}

#[test]
fn an_operation_whose_runner_died_says_so_and_how_to_go_on() {
    let bench = Bench::with(3);
    bench.dlq(&["replay", "--all", "--execute", "--enqueue"]).exits(0).says("it waits for a worker").says("--resume");
    let op = first_operation(&bench);
    bench.dlq(&["ops"]).exits(0).says("waits for a worker");
    bench.fill(|store, bench| {
        let take = store.take(op.clone(), "gone:1".into(), Duration::from_millis(1), false, Actor::new("gone", ""));
        bench.wait(take).unwrap();
    });
    let resume = format!("dlq replay --resume {op} --exec CMD...");
    bench.dlq(&["ops"]).exits(0).says("running, silent since");
    bench.dlq(&["ops", "show", &op]).exits(0).says("lease over").says(&resume);
    bench.dlq(&[]).exits(0).says(&resume);
    bench.dlq(&["replay", "--resume", &op, "--exec", "true"]).exits(0).says("3 of 3 matching recovered");
}

// Arrivals are parkings: neither a replay that fails nor a batch that is over says that it goes on.
#[test]
fn what_arrives_is_what_is_parked() {
    let bench = Bench::with(6);
    bench.dlq(&["replay", "--id", "page-0", "--execute", "--exec", "false"]).exits(1).says("1 still failing");
    bench
        .dlq(&[])
        .exits(0)
        .says("it has stopped for now: the newest parking was 59 min ago, before that one every 1 s");
    let steady = Bench::empty();
    let park = |ages: &[u64]| {
        steady.fill(|store, bench| {
            for age in ages {
                let at = SystemTime::now() - Duration::from_secs(*age);
                let mut letter = DeadLetter::new("summarise", StopReason::Exhausted, at);
                letter.job_id = Some(format!("steady-{age}"));
                bench.park(store, letter);
            }
        });
    };
    park(&[3_600, 3_000, 2_400, 1_800, 1_200]);
    steady.dlq(&[]).exits(0).says("yes: the newest parking was 20 min ago, before that one every 10 min");
    park(&[301, 300]);
    steady.dlq(&[]).exits(0).says("yes: the newest parking was 5 min ago");
}

// D: a typo is no success, whatever the command; what is there is named.
#[test]
fn names_that_no_letter_has_are_refused() {
    let bench = Bench::with(4);
    for command in ["list", "replay", "discard", "groups"] {
        let with = |more: &[&str]| bench.dlq(&[&[command], more].concat());
        with(&["--class", "timout"])
            .exits(1)
            .warns("no letter of class `timout`")
            .warns("did you mean --class timeout?");
        with(&["--kind", "nosuch"]).exits(1).warns("there are: summarise");
        with(&["--error-class", "permanent:404"]).exits(1).warns("--error-class permanent:403?");
        with(&["--group", "zzzz"]).exits(1).warns("no letter of group `zzzz`");
        with(&["--job", "page-99"]).exits(1).warns("no letter of a job `page-99`");
        with(&["--model", "small"]).exits(1).warns("no letter there has a model");
    }
    assert_eq!(bench.count("parked"), 4);
    // A group by its beginning, as ids.
    let group = bench.json(&["groups", "--class", "timeout"])["groups"][0]["group"].as_str().unwrap().to_owned();
    bench.dlq(&["list", "--group", &group[..8]]).exits(0).says("3 of 3 matching");
    // Where nothing is, nothing can be mistyped.
    Bench::with(0).dlq(&["list", "--class", "timeout"]).exits(0).says("0 of 0 matching");
}

#[test]
fn a_letter_in_another_state_is_named_with_what_to_type() {
    let bench = Bench::with(3);
    bench.dlq(&["discard", "--id", "page-0"]).exits(0);
    let id = bench.json(&["show", "page-0"])["letter"]["letter_id"].as_str().unwrap().to_owned();
    let replay = |more: &[&str]| bench.dlq(&[&["replay", "--id", "page-0"], more].concat());
    let said = format!("page-0 is discarded: dlq restore --id {id}");
    replay(&[]).exits(1).warns(&said);
    replay(&["--execute", "--exec", "true"]).exits(1).warns(&said);
    bench.dlq(&["discard", "--id", "page-0"]).exits(1).warns("page-0 is discarded: nothing is left to do");
    bench.dlq(&["restore", "--id", "page-1"]).exits(1).warns("page-1 is parked: it is parked, dlq replay");
    bench.dlq(&["replay", "--class", "timeout", "--execute", "--exec", "true"]).exits(0).says("1 of 1 matching");
    bench
        .dlq(&["replay", "--class", "timeout", "--execute", "--exec", "true"])
        .exits(0)
        .says("0 of 0 matching")
        .says("1 letter left out: discarded: dlq restore");
}

// What is done is not done again by a word that means another thing, and no replay is granted for nothing.
#[test]
fn what_was_recovered_is_restored_only_when_that_is_said() {
    let bench = Bench::with(2);
    bench.dlq(&["replay", "--id", "page-0", "--execute", "--exec", "true"]).exits(0);
    bench.dlq(&["restore", "--id", "page-0"]).exits(1).warns("page-0 is recovered: its work is done");
    bench.dlq(&["restore", "--id", "page-0", "--status", "recovered"]).exits(0).says("1 of 1 matching restored");
    let most = |job: &str| bench.json(&["show", job])["letter"]["max_replays"].clone();
    assert_eq!(most("page-0"), 5, "it has four left");
    bench.dlq(&["discard", "--id", "page-1"]).exits(0);
    bench.dlq(&["restore", "--id", "page-1"]).exits(0);
    assert_eq!(most("page-1"), 5);
    bench.dlq(&["discard", "--id", "page-1"]).exits(0);
    bench.dlq(&["restore", "--id", "page-1", "--more-replays", "2"]).exits(0);
    assert_eq!(most("page-1"), 7);
    for _ in 0..5 {
        bench.dlq(&["replay", "--id", "page-0", "--execute", "--exec", "false"]);
    }
    bench.dlq(&["restore", "--id", "page-0"]).exits(0).says("1 of 1 matching restored");
    assert_eq!(most("page-0"), 10, "it had none left");
}

// A replay by hand that fails is no new failure of the program; what it was before is said.
#[test]
fn a_failed_replay_does_not_hide_what_it_was() {
    let bench = Bench::with(1);
    bench
        .dlq(&["replay", "--all", "--execute", "--exec", "false"])
        .exits(1)
        .says("they show their newest failure, unknown:exit_1 (was timeout): dlq list --error-class unknown:exit_1");
    bench.dlq(&["list"]).exits(0).says("unknown:exit_1, was timeout");
    bench.dlq(&["show", "page-0"]).exits(0).says("was        timeout").says("1 of 5 replays used, 0 died");
    let page = bench.dlq(&[]).exits(0);
    assert!(!page.out.contains("exit_1 of summarise"), "{}", page.out);
    bench.dlq(&["replay", "--all", "--execute", "--exec", "true"]).exits(0);
    bench.dlq(&["show", "page-0"]).exits(0).says("2 of 5 replays used, 0 died");
}

// Who parked, not who looked after it.
#[test]
fn a_letter_was_written_by_who_parked_it() {
    let bench = Bench::with(3);
    let before = bench.json(&[])["status"]["writers"].clone();
    bench.dlq(&["discard", "--all"]).exits(0);
    assert_eq!(bench.json(&[])["status"]["writers"], before);
}

#[test]
fn who_does_something_is_known_without_an_environment() {
    let bench = Bench::with(1);
    let user = std::process::Command::new("id").arg("-un").output().unwrap();
    let user = String::from_utf8(user.stdout).unwrap();
    let arguments = ["discard", "--all"];
    Ran::of(bench.command(&arguments).env_remove("USER").output().unwrap(), &arguments).exits(0);
    bench.dlq(&["audit", "--by-hand"]).exits(0).says(&format!("{}@", user.trim()));
}

#[test]
fn an_erasure_of_nothing_is_no_success() {
    let bench = Bench::with(1);
    bench.dlq(&["erase", "nonesuch", "--reason", "gdpr", "--yes"]).exits(1).warns("nothing of a job `nonesuch`");
    let audit = bench.dlq(&["audit"]).exits(0);
    assert!(!audit.out.contains("erased"), "{audit:?}");
}

#[test]
fn the_ledger_is_asked_by_state_in_all_scopes() {
    let bench = Bench::empty();
    bench.fill(|store, bench| {
        for (scope, key) in [("archive", "a"), ("archive", "b"), ("images", "c")] {
            bench.wait(store.begin(LedgerKey::new(scope, key), 5)).unwrap();
        }
    });
    bench.dlq(&["ledger", "--limit", "2"]).exits(0).says("2 of 3 matching");
    bench.dlq(&["ledger", "--status", "open"]).exits(0).says("3 of 3 matching").says("images");
    bench.dlq(&["ledger", "--status", "gone", "--limit", "3"]).exits(0).says("0 of 0 matching");
}

// Nothing could be begun: it does not lie about for ever, and what does has a way out.
#[test]
fn an_operation_that_had_nothing_to_do_is_over() {
    let bench = Bench::with(0);
    bench.fill(|store, bench| {
        let mut hinted = usual(10);
        hinted.not_before = Some(SystemTime::now() + Duration::from_secs(7_200));
        bench.park(store, hinted);
    });
    bench
        .dlq(&["replay", "--all", "--execute", "--exec", "true"])
        .exits(1)
        .says("nothing could be begun")
        .says("1 not due");
    bench.dlq(&[]).exits(0).says("REPLAYING   nobody");
    bench.dlq(&["replay", "--all", "--execute", "--force", "--exec", "no-such-command"]).exits(1).says("paused");
    let op = first_operation(&bench);
    bench.dlq(&[]).exits(0).says(&format!("to end it: dlq ops cancel {op}"));
    bench.dlq(&["ops", "cancel", &op]).exits(0);
    bench
        .dlq(&["replay", "--all", "--execute", "--force", "--exec", "cat; exit 0"])
        .exits(1)
        .says("for a line of one say --exec sh -c");
}

// What an editor was given is not lost when it cannot be saved.
#[test]
fn what_was_written_in_an_editor_is_kept() {
    let bench = Bench::with(1);
    let editor = bench.script("editor", "echo '{\"page\": oops' > \"$1\"");
    let arguments = ["edit", "page-0", "--yes"];
    let ran = Ran::of(bench.command(&arguments).env("EDITOR", &editor).output().unwrap(), &arguments)
        .exits(1)
        .warns("is not JSON")
        .warns("what you wrote is in");
    let file = ran.err.split("--from ").nth(1).unwrap().trim().to_owned();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "{\"page\": oops");
    std::fs::write(&file, "{\"page\":1}").unwrap();
    bench.dlq(&["edit", "page-0", "--yes", "--from", &file]).exits(0).says("revision 2");
    std::fs::remove_dir_all(std::path::Path::new(&file).parent().unwrap()).unwrap();
}

// What was done in the last hour, in a line each, with how it ended; what there is none of is said too.
#[test]
fn the_first_page_says_how_it_ended_and_what_there_is_none_of() {
    let bench = Bench::with(4);
    bench.dlq(&["replay", "--class", "timeout", "--execute", "--reason", "up again", "--exec", "true"]).exits(0);
    bench.dlq(&["discard", "--all"]).exits(0);
    let page = bench
        .dlq(&[])
        .exits(0)
        .says("(up again): done, 3 recovered")
        .says(": done, 1 discarded")
        .says("spilled 0")
        .says("log ")
        .says("1 letter discarded already: dlq list --status discarded");
    assert!(!page.out.contains("letters, first"), "recovered ones are no news: {}", page.out);
    assert_eq!(page.out.matches("dlq list --status discarded").count(), 1);
}

// In a pipe nothing is cut.
#[test]
fn a_pipe_gets_whole_messages() {
    let bench = Bench::with(0);
    let message = "no answer ".repeat(30);
    bench.fill(|store, bench| {
        let mut letter = usual(0);
        letter.error_message.clone_from(&message);
        bench.park(store, letter);
    });
    bench.dlq(&["list"]).exits(0).says(message.trim());
}

#[test]
fn a_file_that_is_there_is_not_written_over() {
    let bench = Bench::with(1);
    std::fs::write(bench.path("out"), "").unwrap();
    bench.dlq(&["export", "--all", "--out", "out"]).exits(1).warns("`out` is there already");
    let there = format!("sqlite:{}", bench.path("out").display());
    bench.dlq(&["migrate", "--to", &there]).exits(1).warns("is there already").warns("where nothing is yet");
}

#[test]
fn what_is_gone_was_discarded_and_can_come_back() {
    let bench = Bench::with(1);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/typo", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        use std::io::{Read as _, Write as _};
        let (mut stream, _) = listener.accept().unwrap();
        let mut seen = [0; 4_096];
        let _read = stream.read(&mut seen).unwrap();
        stream.write_all(b"HTTP/1.1 404 X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").unwrap();
    });
    let ran = bench
        .dlq(&["replay", "--all", "--execute", "--http", &url])
        .exits(1)
        .says("gone: 1 letter discarded")
        .says("if the address was wrong: dlq restore --id ");
    let restore = ran.out.lines().find_map(|line| line.split("wrong: dlq ").nth(1)).unwrap();
    bench.dlq(&restore.split(' ').collect::<Vec<_>>()).exits(0).says("1 of 1 matching restored");
    assert_eq!(bench.states(), [("page-0".to_owned(), LetterState::Parked.as_str().to_owned())]);
}

#[test]
fn a_damaged_file_has_a_way_on() {
    let bench = Bench::with(200);
    let mut whole = super::support::bytes(&bench.db());
    let end = whole.len();
    whole[4_096..end].fill(0xff);
    std::fs::write(bench.db(), whole).unwrap();
    for arguments in [&[][..], &["list"], &["groups"]] {
        bench.dlq(arguments).exits(1).warns("dlq doctor --full").warns("dlq salvage FILE");
    }
}
