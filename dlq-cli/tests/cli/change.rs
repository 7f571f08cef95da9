//! What people do to letters.

use super::support::Bench;

// No destructive command without a filter, and none above a few letters without a word
#[test]
fn many_letters_are_asked_about() {
    let bench = Bench::with(30);
    bench.dlq(&["discard"]).exits(2).warns("--all");
    bench.dlq(&["discard", "--all"]).exits(2).warns("discard 30 letters").warns("--yes");
    bench
        .dlq(&["replay", "--all", "--execute", "--exec", "true"])
        .exits(2)
        .warns("replay 30 letters by the command `true`")
        .warns("--yes");
    assert_eq!(bench.count("parked"), 30);
    bench
        .dlq(&["discard", "--error-class", "permanent:403", "--reason", "private"])
        .exits(0)
        .says("10 of 10 matching discarded");
    bench.dlq(&["discard", "--limit", "3", "--all"]).exits(0).says("3 of 3 matching discarded");
    bench.dlq(&["discard", "--all", "--yes", "--reason", "over"]).exits(0).says("17 of 17 matching discarded");
    assert_eq!(bench.count("discarded"), 30);
    bench.dlq(&["discard", "--all", "--yes"]).exits(0).says("0 of 0 matching");
    bench.dlq(&["audit", "--by-hand", "--limit", "5"]).exits(0).says("ada@").says("private").says("operation_started");
    bench
        .dlq(&["restore", "--error-class", "permanent:403", "--reason", "too early"])
        .exits(0)
        .says("10 of 10 matching restored");
    assert_eq!(bench.count("parked"), 10);
    bench.dlq(&["prune", "--older-than", "0s"]).exits(2).warns("delete 20 closed letters for good");
    bench.dlq(&["prune", "--older-than", "1d", "--yes"]).exits(0).says("0 closed letters would be deleted");
    bench.dlq(&["prune", "--older-than", "0s", "--dry-run"]).exits(0).says("20 closed letters would be deleted");
    bench.dlq(&["prune", "--older-than", "0s", "--yes"]).exits(0).says("20 closed letters deleted");
    assert_eq!(bench.states().len(), 10, "what is owed is never pruned");
}

#[test]
fn one_letter_is_resolved_released_and_erased() {
    let bench = Bench::with(4);
    bench.dlq(&["resolve", "page-0", "--reason", "sent by hand"]).exits(0).says("recovered").says("owed no more");
    bench.dlq(&["resolve", "page-0", "--reason", "again"]).exits(1).warns("only a parked or abandoned");
    bench.dlq(&["restore", "--id", "page-0", "--status", "recovered"]).exits(0).says("1 of 1 matching restored");
    bench.dlq(&["release", "page-0", "--force"]).exits(1).warns("only a replaying letter");
    bench.dlq(&["erase", "page-1"]).exits(2).warns("erase 1 letter of job `page-1` for good");
    bench.dlq(&["erase", "page-1", "--yes", "--reason", "asked for"]).exits(0).says("erased: 1 letter, 1 payload");
    bench.dlq(&["show", "page-1"]).exits(1);
    assert_eq!(bench.states().len(), 3);
}

#[test]
fn a_payload_is_edited_with_its_difference_shown() {
    let bench = Bench::with(3);
    let editor = bench
        .script("editor", "sed -i 's/\"page\":2/\"page\":22/' \"$1\"; stat -c %a \"$1\" \"$(dirname \"$1\")\" > modes");
    let edit = |arguments: &[&str]| {
        let output = bench.command(arguments).env("EDITOR", &editor).output().unwrap();
        super::support::Ran::of(output, arguments)
    };
    edit(&["edit", "page-2"]).exits(2).warns("~ /page: 2 -> 22").warns("--yes");
    assert_eq!(bench.json(&["show", "page-2", "--raw"])["payload"]["page"], 2);
    edit(&["edit", "page-2", "--yes", "--reason", "off by twenty"])
        .exits(0)
        .warns("~ /page: 2 -> 22")
        .says("revision 2");
    assert!(std::fs::read_to_string(bench.path("modes")).unwrap().ends_with("700\n"), "others may read the payload");
    let shown = bench.json(&["show", "page-2", "--raw"]);
    assert_eq!((&shown["payload"]["page"], &shown["revisions"][1]["reason"]), (&22.into(), &"off by twenty".into()));
    edit(&["edit", "page-2", "--yes"]).exits(0).says("revision 3");
    std::fs::write(bench.path("same"), bench.json(&["show", "page-0", "--raw"])["payload"].to_string()).unwrap();
    bench.dlq(&["edit", "page-0", "--from", "same", "--yes"]).exits(0).says("nothing was changed");
    std::fs::write(bench.path("broken"), "{\"page\": ").unwrap();
    bench.dlq(&["edit", "page-0", "--from", "broken", "--yes"]).exits(1).warns("is not JSON").warns("line 1");
    let fails = bench.command(&["edit", "page-0", "--yes"]).env("EDITOR", "false").output().unwrap();
    assert_eq!(fails.status.code(), Some(1));
    let missing = bench.command(&["edit", "page-0", "--yes"]).env("EDITOR", "no-such-editor").output().unwrap();
    assert!(String::from_utf8(missing.stderr).unwrap().contains("cannot run the editor `no-such-editor`"));
    assert_eq!(bench.json(&["show", "page-0"])["letter"]["payload_revision"], 1);
}

#[test]
fn a_group_has_notes() {
    let bench = Bench::with(3);
    let group = bench.json(&["groups"])["groups"][0]["group"].as_str().unwrap().to_owned();
    bench.dlq(&["note", &group]).exits(0).says("nothing was noted");
    bench.dlq(&["note", &group, "the provider is at it"]).exits(0).says("the provider is at it").says("ada@");
    bench.dlq(&["groups"]).exits(0).says("note by ada@").says("the provider is at it");
    bench.dlq(&["note", "no-such-group", "x"]).exits(1).warns("no group");
}
