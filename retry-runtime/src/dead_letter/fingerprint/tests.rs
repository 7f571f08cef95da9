#![allow(clippy::unwrap_used)] // tests fail by panicking

use std::collections::HashMap;

use proptest::prelude::*;

use super::normal::normalise;
use super::*;

/// Messages of real programs and libraries, with the normal form of each: those of one form fall together.
const SEEN: &[(&str, &[&str])] = &[
    (
        "error sending request for url (https://<addr>)",
        &[
            "error sending request for url (https://api.example.com/v1/items/17?page=2&size=50)",
            "error sending request for url (https://other.example.org:8443/)",
        ],
    ),
    (
        "tcp connect error: <addr>: Connection refused (os error #)",
        &[
            "tcp connect error: 127.0.0.1:8080: Connection refused (os error 111)",
            "tcp connect error: db.internal:5432: Connection refused (os error 61)",
        ],
    ),
    (
        "dial tcp [<addr>]:#: connect: network is unreachable",
        &[
            "dial tcp [2001:db8::7]:443: connect: network is unreachable",
            "dial tcp [fe80::1]:80: connect: network is unreachable",
        ],
    ),
    ("dial tcp <addr>: i/o timeout", &["dial tcp 10.1.2.3:443: i/o timeout", "dial tcp 10.9.8.7:22: i/o timeout"]),
    ("deadline has elapsed", &["deadline has elapsed", "deadline  has\n elapsed "]),
    (
        "operation timed out after # (limit #)",
        &["operation timed out after 30.5s (limit 30s)", "operation timed out after 2m30s (limit 120s)"],
    ),
    (
        "HTTP status client error (# Not Found) for url (https://<addr>)",
        &["HTTP status client error (404 Not Found) for url (https://example.com/a/b)"],
    ),
    ("Too Many Requests: retry after #", &["Too Many Requests: retry after 30", "Too Many Requests: retry after 1.5"]),
    (
        "missing field <str> at line # column #",
        &["missing field `name` at line 1 column 27", "missing field `model` at line 20 column 3"],
    ),
    (
        "invalid type: string <str>, expected u# at line # column #",
        &[
            "invalid type: string \"abc\", expected u32 at line 1 column 9",
            "invalid type: string \"say \\\"hi\\\"\", expected u64 at line 2 column 10",
        ],
    ),
    (
        "duplicate key value violates unique constraint <str>",
        &[
            "duplicate key value violates unique constraint \"users_email_key\"",
            "duplicate key value violates unique constraint \"orders_pkey\"",
        ],
    ),
    (
        "Key (email)=(<addr>) already exists.",
        &["Key (email)=(ann@example.com) already exists.", "Key (email)=(bob.b+x@mail.example.co.uk) already exists."],
    ),
    (
        "relation <str> does not exist (SQLSTATE #)",
        &["relation \"jobs\" does not exist (SQLSTATE 42P01)", "relation \"items\" does not exist (SQLSTATE 42P01)"],
    ),
    ("ORA-#: unique constraint (APP.PK_T#) violated", &["ORA-00001: unique constraint (APP.PK_T1) violated"]),
    (
        "Unknown column <str> in <str>",
        &["Unknown column 'users.name' in 'field list'", "Unknown column 'o' in 'where clause'"],
    ),
    (
        "Duplicate entry <str> for key <str>",
        &["Duplicate entry '17-x' for key 'PRIMARY'", "Duplicate entry 'it's' for key 'name'"],
    ),
    ("can't connect to MySQL server on <str> (#)", &["can't connect to MySQL server on 'db1' (111)"]),
    ("I don't know, it wasn't me", &["I don't know, it wasn't me"]),
    ("the users' quota isn't enough", &["the users' quota isn't enough"]),
    (
        "No such file or directory (os error #): <path>",
        &[
            "No such file or directory (os error 2): /var/lib/app/17.json",
            "No such file or directory (os error 2): ./data/x",
        ],
    ),
    (
        "failed to open <str>: permission denied",
        &[
            "failed to open '/etc/shadow': permission denied",
            "failed to open \"C:\\Users\\ann\\x.txt\": permission denied",
        ],
    ),
    ("cannot read <path>: access denied", &["cannot read C:\\Users\\ann\\x.txt: access denied"]),
    ("panicked at <path>:#:#", &["panicked at src/main.rs:12:5", "panicked at crates/app/src/lib.rs:7:13"]),
    ("main.rs:#", &["main.rs:12", "main.rs:345"]),
    (
        "job <id> not found",
        &[
            "job 0190b5a2-77aa-7bbb-8ccc-123456789abc not found",
            "job 01ARZ3NDEKTSV4RRFFQ69G5FAV not found",
            "job deadbeefcafe not found",
            "job 507f1f77bcf86cd799439011 not found",
            "job a1b2c3 not found",
            "job 0x1F not found",
        ],
    ),
    ("job # not found", &["job 17 not found", "job 123456 not found"]),
    ("no such customer: cus_<id>", &["no such customer: cus_NffrFeUfNV2Hib", "no such customer: cus_9s6XKzkNRiz8i3"]),
    (
        "digest mismatch: expected sha#:<id>, found sha#:<id>",
        &["digest mismatch: expected sha256:9f86d081884c7d65, found sha256:60303ae22b998861"],
    ),
    (
        "invalid token <id>",
        &[
            "invalid token dGhpcyBpcyBhIHRlc3Q=",
            "invalid token YWJjZGVmZ2hpamts",
            "invalid token QWxhZGRpbjpvcGVuIHNlc2FtZTE9==",
        ],
    ),
    (
        "jwt <id>.<id>.<id> expired at <time>",
        &["jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5Q expired at 2024-01-02T03:04:05Z"],
    ),
    (
        "certificate expired on <time>",
        &[
            "certificate expired on 2024-01-02",
            "certificate expired on 2024-01-02T03:04:05.678+01:00",
            "certificate expired on 2024-01-02 03:04:05",
            "certificate expired on 2024/01/02 03:04:05.123",
        ],
    ),
    ("node# is not the leader", &["node3 is not the leader", "node17 is not the leader"]),
    ("worker-# died", &["worker-4 died", "worker-12 died"]),
    (
        "server v# is too old, v# needed",
        &["server v1.2.3 is too old, v1.10 needed", "server v2 is too old, v3.0.1 needed"],
    ),
    ("request took # of # allowed", &["request took 350ms of 300ms allowed", "request took 2s of 1500ms allowed"]),
    ("read # bytes, expected #", &["read 512 bytes, expected 1024", "read 0 bytes, expected 16KiB"]),
    ("disk is #% full", &["disk is 97% full", "disk is 99.5% full"]),
    (
        "request_id=<id> user=# status=#",
        &["request_id=9f8a7b6c5d user=42 status=500", "request_id=0a1b2c3d4e user=7 status=502"],
    ),
    (
        "failed to lookup address information: Name or service not known",
        &["failed to lookup address information: Name or service not known"],
    ),
    ("django.db.utils.OperationalError: server closed", &["django.db.utils.OperationalError: server closed"]),
    ("java.net.SocketTimeoutException: Read timed out", &["java.net.SocketTimeoutException: Read timed out"]),
    ("app::Error::Io(Os { code: #, kind: NotFound })", &["app::Error::Io(Os { code: 2, kind: NotFound })"]),
    ("expected and/or, found application/json", &["expected and/or, found application/json"]),
    ("GET <path> failed: HTTP/#", &["GET /v1/users/17 failed: HTTP/1.1", "GET /health failed: HTTP/2"]),
    ("s#://<addr> is not reachable", &["s3://bucket/key/17 is not reachable", "s3://other is not reachable"]),
    ("mail to <addr> bounced", &["mail to ann@example.com bounced", "mail to b@c.de bounced"]),
    ("quota of <addr> exceeded.", &["quota of ann@example.com exceeded."]),
    ("unbalanced ' and \" stay", &["unbalanced ' and \" stay"]),
    ("überlaufen: # Bücher für <str>", &["überlaufen: 17 Bücher für 'Jürgen'", "überlaufen: 3 Bücher für 'Zoë'"]),
];

#[test]
fn messages_fall_together_as_people_would_have_it() {
    let mut forms = HashMap::new();
    let all = SEEN.iter().flat_map(|(form, messages)| messages.iter().map(move |message| (form, message)));
    let wrong: Vec<_> = all.filter(|(form, message)| normalise(message) != **form).collect();
    assert!(wrong.is_empty(), "{:#?}", wrong.iter().map(|(_, m)| (m, normalise(m))).collect::<Vec<_>>());
    for (form, messages) in SEEN {
        let group = fingerprint("fetch", None, "E", messages.first().unwrap());
        if let Some(other) = forms.insert(group, form) {
            panic!("{form} and {other} fall together");
        }
    }
    assert!(SEEN.iter().map(|(_, messages)| messages.len()).sum::<usize>() > 70);
}

#[test]
fn the_rule_of_version_2_never_changes() {
    assert_eq!(FINGERPRINT_VERSION, 2);
    let pinned = [
        (fingerprint("", None, "", ""), "994f76653e2a3951"),
        (fingerprint("fetch", Some("timeout"), "E", "after 3s"), "40384f0d23956ca8"),
        (fingerprint("fetch", None, "app::Error", "job 01ARZ3NDEKTSV4RRFFQ69G5FAV at /x: 'y'"), "c89db909a706812d"),
    ];
    for (found, wanted) in pinned {
        assert_eq!(found, wanted);
    }
    assert_ne!(fingerprint("ab", Some("c"), "", ""), fingerprint("a", Some("bc"), "", ""));
}

#[test]
fn a_message_counts_up_to_its_256th_byte() {
    let long = "word ".repeat(1_000);
    let form = normalise(&long);
    assert!((250..=256).contains(&form.len()), "{}", form.len());
    assert_eq!(normalise(&format!("{long} and more")), form);
    assert_eq!(normalise(&"x".repeat(100_000)), "<id>");
    assert_eq!(normalise(&"ä".repeat(100_000)), "<id>");
}

// Linear: a quote that never closes is looked for once.
#[test]
fn hostile_messages_take_no_time() {
    for hostile in ["'a ", "\"`", "'x\"", "((((", "a'b'", "0.", "a:", "/", "<", "1-", "::", "\\\"", "=", "@", "a@"] {
        let began = std::time::Instant::now();
        let form = normalise(&hostile.repeat(50_000));
        assert!(form.len() <= 256, "{hostile}");
        assert!(began.elapsed() < std::time::Duration::from_secs(20), "{hostile}: {:?}", began.elapsed());
    }
}

/// Texts of what the rules look for, in any order.
fn texts() -> impl Strategy<Value = String> {
    let parts = prop::sample::select(vec![
        "a",
        "deadbeef",
        "1",
        "23.5",
        "ms",
        "'",
        "\"",
        "`",
        " ",
        "  ",
        "/",
        ":",
        "::",
        ".",
        "@",
        "x.y",
        "=",
        "==",
        "#",
        "<id>",
        "<str>",
        "<time>",
        "<",
        ">",
        "http://",
        "\\",
        "C:\\",
        "2024-01-02",
        "T03:04:05Z",
        "10.0.0.1",
        ":80",
        "(",
        ")",
        ",",
        "don't",
        "-",
        "_",
        "0x1F",
        "é",
        "a1b2c3",
        "QWxhZGRpbjpvcGVuIHNlc2FtZTE9",
        "\n",
        "0190b5a2-77aa-7bbb-8ccc-123456789abc",
    ]);
    prop_oneof![prop::collection::vec(parts, 0..60).prop_map(|parts| parts.concat()), "\\PC{0,80}", ".{0,300}"]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if std::env::var_os("SOAK").is_some() { 200_000 } else { 2_000 }))]

    #[test]
    fn a_normal_form_is_its_own_normal_form(text in texts()) {
        let form = normalise(&text);
        prop_assert!(form.len() <= 256);
        prop_assert_eq!(normalise(&form), form);
    }

    #[test]
    fn numbers_and_ids_make_no_difference(a in any::<u64>(), b in any::<u64>(), x in any::<u128>(), y in any::<u128>()) {
        let message = |n: u64, id: u128| {
            let uuid = format!("{id:032x}");
            let uuid = [&uuid[..8], &uuid[8..12], &uuid[12..16], &uuid[16..20], &uuid[20..]].join("-");
            format!("job {uuid} of worker {n} failed in {n}ms at http://h/{n}: \"{id}\" (0x{n:x})")
        };
        prop_assert_eq!(normalise(&message(a, x)), normalise(&message(b, y)));
    }
}
