//! Named policies from texts, files and variables: what they set, what is refused, and how they are replaced.
#![cfg(feature = "config")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // tests fail by panicking
#![allow(clippy::items_after_statements)] // a static stands where it is used

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use retry_runtime::config::{Changes, ConfigError, NamedPolicy, Policies, Sources};
use retry_runtime::observe::{Level, Notice, set_listener};
use retry_runtime::{Backoff, Jitter, Policy, Retries};

/// Every notice of this process. The tests run at one time: each looks for its own words.
static HEARD: Mutex<Vec<Notice>> = Mutex::new(Vec::new());

fn listen() {
    static LISTENS: OnceLock<bool> = OnceLock::new();
    assert!(LISTENS.get_or_init(|| set_listener(|notice| HEARD.lock().unwrap().push(notice.clone()))));
}

fn heard(name: &str, words: &str) -> Vec<Notice> {
    let heard = HEARD.lock().unwrap();
    let is_meant = |notice: &&Notice| notice.name == name && notice.to_string().contains(words);
    heard.iter().filter(is_meant).cloned().collect()
}

const SECOND: Duration = Duration::from_secs(1);
const CODE: Policy = Policy::new().max_retries(9).base_delay(SECOND).max_delay(Duration::from_secs(30));

fn text(toml: &str) -> Sources {
    Sources::new().text("retry.toml", toml)
}

fn load(toml: &str) -> Result<Policies, ConfigError> {
    let policies = Policies::new();
    policies.load(text(toml)).map(|_| policies)
}

fn refused(toml: &str) -> String {
    load(toml).unwrap_err().to_string()
}

// 14.1: the keys of the attribute, over the code's own policy
#[test]
fn every_key_is_set_and_the_others_are_the_codes() {
    let policies = load(
        r#"
        [policy.all]
        max_retries = 0x10
        base_delay = "250ms"
        max_delay = "1h30m"
        backoff = "exponential(1.5)"
        jitter = "equal"
        max_retry_after = "1.5s"

        [policy.one]
        max_retries = "forever"

        [policy.none]
        "#,
    )
    .unwrap();
    let all = Policy::new()
        .max_retries(16)
        .base_delay(Duration::from_millis(250))
        .max_delay(Duration::from_secs(5400))
        .backoff(Backoff::Exponential(1.5))
        .jitter(Jitter::Equal)
        .max_retry_after(Duration::from_millis(1500));
    assert_eq!(policies.get_or("all", &CODE), all);
    assert_eq!(policies.get_or("one", &CODE), CODE.forever());
    assert_eq!(policies.get_or("none", &CODE), CODE);
    assert_eq!(policies.get_or("not_configured", &CODE), CODE);
    assert_eq!(Policies::new().get_or("all", &CODE), CODE, "nothing is loaded");
}

// 14.1: later files over earlier ones, variables over all, key by key
#[test]
fn what_comes_later_wins_key_by_key() {
    let policies = Policies::new();
    let sources = Sources::new()
        .text("first.toml", "[policy.gemini-pro]\nmax_retries = 1\nbase_delay = '2s'\njitter = 'full'")
        .text("second.toml", "policy.Gemini_Pro.max_retries = 2\npolicy.Gemini_Pro.base_delay = '3s'")
        .variables([
            ("RETRY_POLICY_GEMINI_PRO_MAX_RETRIES", "3"),
            ("RETRY_POLICY_WORKER_JITTER", "1s"),
            ("OTHER", "x"),
        ]);
    let changes = policies.load(sources).unwrap();
    assert_eq!(changes.to_string(), "changed: gemini_pro, worker");
    let gemini = CODE.max_retries(3).base_delay(3 * SECOND).jitter(Jitter::Full);
    for name in ["gemini-pro", "gemini_pro", "GEMINI_PRO", "Gemini-Pro"] {
        assert_eq!(policies.get_or(name, &CODE), gemini, "{name}");
    }
    // a policy that stands in no file
    assert_eq!(policies.get_or("worker", &CODE), CODE.jitter(Jitter::Additive(SECOND)));
}

// 14.1: all mistakes at once, each with file and line, key, value, and what is accepted
#[test]
fn every_mistake_is_named_with_its_place() {
    let toml = r#"
[policy.gemini]
max_retries = -1
base_dealy = "1s"
jitter = "ful"
deadline = "10s"
backoff = { exponential = 1.5 }

[policy.gemini.class.rate_limit]
max_retries = 9

[policy."gem ini"]

[policy.a-b]
[policy.a_b]

[polcy.worker]
max_retries = 1
"#;
    let sources = text(toml).text("local.toml", "[policy]\nworker = 3").variables([
        ("RETRY_POLICY_WORKER_MAX_RETRIES", "six"),
        ("RETRY_POLICY_WORKER_MAX_RETRYS", "6"),
        ("RETRY_POLICY_WORKER_BASE_DELAY", ""),
    ]);
    let error = Policies::new().load(sources).unwrap_err();
    let keys = "max_retries, base_delay, max_delay, backoff, jitter, max_retry_after";
    let form = "a variable is RETRY_POLICY_<NAME>_<KEY> with the keys MAX_RETRIES, BASE_DELAY, MAX_DELAY, BACKOFF, JITTER, MAX_RETRY_AFTER";
    let expected = [
        "13 mistakes in the configuration of retries".to_owned(),
        "  retry.toml:3: policy.gemini.max_retries = -1: the value is a whole number from 0 to 4294967295, or \"forever\"".to_owned(),
        format!("  retry.toml:4: policy.gemini.base_dealy = \"1s\": no such key (did you mean `base_delay`?); the keys are {keys}"),
        "  retry.toml:5: policy.gemini.jitter = \"ful\": no such jitter (did you mean `full`?); the value is \"none\", \"full\", \"equal\", \"decorrelated\", or a duration to add, such as \"250ms\"".to_owned(),
        format!("  retry.toml:6: policy.gemini.deadline = \"10s\": `deadline` belongs to the function and is no key of a policy; the keys are {keys}"),
        "  retry.toml:7: policy.gemini.backoff = { exponential = 1.5 }: a table is no backoff; the value is \"exponential\", \"exponential(1.5)\", \"fixed\", \"linear\" or \"fibonacci\"".to_owned(),
        format!("  retry.toml:9: policy.gemini.class: the numbers of one class stand at the function, in `class(NAME, ..)`; the keys of a policy are {keys}"),
        "  retry.toml:12: policy.gem ini: the name of a policy consists of letters, digits, `-` and `_`, and begins with a letter".to_owned(),
        "  retry.toml:15: policy.a_b: `a-b` is the same policy: letter case, `-` and `_` make no difference".to_owned(),
        "  retry.toml:17: polcy: no such key (did you mean `policy`?); policies stand in tables `[policy.NAME]`".to_owned(),
        format!("  local.toml:2: policy.worker = 3: a table is expected: `[policy.NAME]` with the keys {keys}"),
        "  RETRY_POLICY_WORKER_BASE_DELAY = \"\": the duration is empty; the value is a duration such as \"250ms\", \"1.5s\", \"2m\" or \"1h30m\" (units ns, us, ms, s, m, h, d)".to_owned(),
        "  RETRY_POLICY_WORKER_MAX_RETRIES = six: the value is a whole number from 0 to 4294967295, or \"forever\"".to_owned(),
        format!("  RETRY_POLICY_WORKER_MAX_RETRYS = 6: it ends with no key (did you mean `MAX_RETRIES`?); {form}"),
    ];
    let found = error.to_string();
    for (found, expected) in found.lines().zip(&expected) {
        assert_eq!(found, expected);
    }
    assert_eq!(found.lines().count(), expected.len());
    let first = &error.mistakes()[0];
    assert_eq!((&*first.place, first.line, &*first.key), ("retry.toml", Some(3), "policy.gemini.max_retries"));
    let last = &error.mistakes()[error.mistakes().len() - 1];
    assert_eq!((last.line, &*last.key, &*last.value), (None, "RETRY_POLICY_WORKER_MAX_RETRYS", "6"));
}

// What is no TOML, no text, or not there.
#[test]
fn a_file_that_cannot_be_read_is_a_mistake() {
    let found = refused("[policy.gemini]\nmax_retries = \nbase_delay = '1s\n");
    assert!(found.contains("retry.toml:2: ") && found.contains("retry.toml:3: "), "{found}");
    let twice = refused("[policy.gemini]\nmax_retries = 1\nmax_retries = 2\n");
    assert!(twice.contains("retry.toml:3: duplicate key"), "{twice}");

    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("missing.toml");
    let error = Policies::new().load(Sources::new().file(&missing)).unwrap_err().to_string();
    assert!(error.contains(&format!("{}: the file cannot be read: ", missing.display())), "{error}");
    assert!(Policies::new().load(Sources::new().optional_file(&missing)).unwrap().is_empty());
    // a file that may be missing may not be something else
    let error = Policies::new().load(Sources::new().optional_file(directory.path())).unwrap_err().to_string();
    assert!(error.contains("cannot be read"), "{error}");
    fs::write(&missing, b"[policy.\xff]").unwrap();
    let error = Policies::new().load(Sources::new().optional_file(&missing)).unwrap_err().to_string();
    assert!(error.contains("cannot be read") && error.contains("UTF-8"), "{error}");
}

// A long value, and one with line breaks, stay one line of the message.
#[test]
fn a_message_stays_readable_whatever_the_value() {
    let long = "x".repeat(500);
    let found = refused(&format!("[policy.a]\njitter = \"\"\"{long}\"\"\"\nbackoff = \"\"\"a\nb\"\"\""));
    assert_eq!(found.lines().count(), 3, "{found}");
    assert!(found.contains("xxx...: no such jitter") && !found.contains(&"x".repeat(61)), "{found}");
}

// 2.3: the builder's rules, also between a file, a variable and the code
#[test]
fn settings_that_contradict_each_other_are_refused() {
    // whatever the code says
    for (toml, words) in [
        ("base_delay = '10s'\nmax_delay = '5s'", "retry.toml:3: policy.p: max_delay 5s is below base_delay 10s"),
        (
            "max_retries = 'forever'\nbase_delay = '0s'",
            "retry.toml:3: policy.p: max_retries forever with base_delay 0s",
        ),
        ("jitter = '10s'\nmax_delay = '5s'", "policy.p: jitter 10s is longer than max_delay 5s"),
        ("max_retries = 'forever'\nmax_delay = '0s'", "policy.p: max_retries forever with base_delay 0s"),
    ] {
        let found = refused(&format!("[policy.p]\n{toml}"));
        assert!(found.contains(words), "{found}");
    }
    // each is possible with some policy of the code's
    for toml in ["base_delay = '10d'", "max_delay = '1ns'", "max_delay = '0s'", "jitter = '10d'", "base_delay = '0s'"] {
        let _fits = load(&format!("[policy.p]\n{toml}")).unwrap();
    }
    static POLICIES: Policies = Policies::of(&[&P]);
    static P: NamedPolicy = NamedPolicy::new(&POLICIES, "p", CODE);
    let found = POLICIES.load(text("[policy.p]\nbase_delay = '31s'")).unwrap_err().to_string();
    let expected = "retry.toml:2: policy.p: max_delay 30s is below base_delay 31s: it must be at least as long \
                    (`base_delay` at retry.toml:2, `max_delay` of the code)";
    assert!(found.contains(expected), "{found}");
    let both = text("[policy.p]\nbase_delay = '31s'").variables([("RETRY_POLICY_P_MAX_DELAY", "20s")]);
    let found = POLICIES.load(both).unwrap_err().to_string();
    let expected = "RETRY_POLICY_P_MAX_DELAY: max_delay 20s is below base_delay 31s: it must be at least as long \
                    (`base_delay` at retry.toml:2, `max_delay` at RETRY_POLICY_P_MAX_DELAY)";
    assert!(found.contains(expected), "{found}");
    assert_eq!(P.get(), CODE, "nothing of it is used");
}

// A contradiction that shows when the code's policy is known: said, and the code's policy holds.
#[test]
fn a_late_contradiction_is_said_once_and_not_used() {
    listen();
    let policies = load("[policy.late]\nbase_delay = '31s'").unwrap();
    for _ in 0..3 {
        assert_eq!(policies.get_or("late", &CODE), CODE);
    }
    let said = heard("config_rejected", "policy.late");
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].level == Level::Error && said[0].operation == "late", "{}", said[0]);
    assert!(said[0].message.ends_with("the policy of the code stays in force"), "{}", said[0]);
    // another policy of the code's has room for it
    let wide = CODE.max_delay(60 * SECOND);
    assert_eq!(policies.get_or("late", &wide), wide.base_delay(31 * SECOND));
}

// 14.1: a misspelt policy is no silent default
#[test]
fn names_that_the_program_does_not_have_are_refused() {
    static POLICIES: Policies = Policies::of(&[&GEMINI, &WORKER]);
    static GEMINI: NamedPolicy = NamedPolicy::new(&POLICIES, "gemini-pro", CODE);
    static WORKER: NamedPolicy = NamedPolicy::new(&POLICIES, "worker", CODE);
    let sources = text("[policy.gemini_pro]\nmax_retries = 1\n[policy.wroker]\n")
        .variables([("RETRY_POLICY_GEMINI_MAX_RETRIES", "2"), ("RETRY_POLICY_GEMINI_PRO_MAX_RETRIES", "2")]);
    let error = POLICIES.load(sources).unwrap_err();
    assert_eq!(
        error.to_string(),
        "2 mistakes in the configuration of retries\n  \
         retry.toml:3: policy.wroker: no such policy (did you mean `worker`?); the policies are gemini-pro, worker\n  \
         RETRY_POLICY_GEMINI_MAX_RETRIES: no such policy (did you mean `gemini-pro`?); the policies are gemini-pro, worker"
    );
    assert_eq!(GEMINI.get(), CODE, "nothing of it is used");
    assert_eq!((GEMINI.name(), GEMINI.default()), ("gemini-pro", &CODE));
    static NONE: Policies = Policies::of(&[]);
    let error = NONE.load(text("policy.x.max_retries = 1")).unwrap_err().to_string();
    assert!(error.contains("policy.x: no such policy: this program has none"), "{error}");
}

// A name that nobody can configure is said, once: its policy would never change.
#[test]
fn asking_for_an_impossible_name_is_said() {
    listen();
    static POLICIES: Policies = Policies::of(&[&KNOWN]);
    static KNOWN: NamedPolicy = NamedPolicy::new(&POLICIES, "known", CODE);
    static STRAY: NamedPolicy = NamedPolicy::new(&POLICIES, "stray", CODE);
    for _ in 0..2 {
        assert_eq!((KNOWN.get(), STRAY.get()), (CODE, CODE));
        assert_eq!(Policies::new().get_or("host:8080", &CODE), CODE);
    }
    assert_eq!(heard("unknown_policy", "[stray]").len(), 1);
    assert_eq!(heard("unknown_policy", "[host:8080]").len(), 1);
    assert!(heard("unknown_policy", "[known]").is_empty());
}

// Of policies with any name, the misspelt one is what nobody asks for.
#[test]
fn names_that_nobody_asked_for_are_listed() {
    let policies = load("[policy.used]\n[policy.never-asked]\n").unwrap();
    let _code = policies.get_or("USED", &CODE);
    assert_eq!(policies.unused(), ["never_asked"]);
    // a reload forgets nobody
    policies.load(text("[policy.used]\nmax_retries = 1\n[policy.never-asked]\n")).unwrap();
    assert_eq!(policies.unused(), ["never_asked"]);
}

// A program's own file, with a table for policies.
#[test]
fn policies_may_stand_under_a_table_of_a_larger_file() {
    let policies = Policies::new();
    let file = "[server]\nport = 80\n[retry.policy.gemini]\nmax_retries = 1\n";
    policies.load(text(file).under("retry")).unwrap();
    assert_eq!(policies.get_or("gemini", &CODE), CODE.max_retries(1));
    assert!(policies.load(text("[server]\n").under("retry")).unwrap().names == ["gemini"]);
    let error = policies.load(text("[retry]\npolcy = {}").under("retry")).unwrap_err().to_string();
    assert!(error.contains("retry.toml:2: retry.polcy: no such key (did you mean `policy`?)"), "{error}");
    let error = policies.load(text("retry = 3").under("retry")).unwrap_err().to_string();
    assert!(error.contains("retry.toml:1: retry = 3: a table is expected: `[retry.policy.NAME]`"), "{error}");
}

// 14.1: a bad reload keeps the old one and says so
#[test]
fn a_bad_reload_keeps_what_was_there_and_says_so() {
    listen();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("reloaded.toml");
    let write = |toml: &str| fs::write(&path, toml).unwrap();
    let policies = Policies::new();
    let retries = || policies.get_or("gemini", &CODE).retries();
    let said = || heard("config_rejected", "reloaded.toml").len();

    write("policy.gemini.max_retries = 1");
    assert_eq!(policies.load(Sources::new().file(&path)).unwrap().names, ["gemini"]);
    assert_eq!(policies.refresh(), Ok(None));
    write("policy.gemini.max_retries = 2");
    assert_eq!(policies.refresh().unwrap().map(|changes| changes.names), Some(vec!["gemini".to_owned()]));
    assert_eq!(retries(), Retries::Limited(2));
    // nothing but a comment
    write("# more\npolicy.gemini.max_retries = 2");
    assert_eq!(policies.refresh().unwrap().map(|changes| changes.to_string()), Some("no policy changed".to_owned()));

    write("policy.gemini.max_retries = 3\npolicy.worker.jitter = 'much'");
    assert!(policies.refresh().is_err());
    assert_eq!((retries(), said()), (Retries::Limited(2), 1));
    // the same mistake is not said again by a watch, but by who asks
    assert_eq!((policies.refresh(), said()), (Ok(None), 1));
    assert!(policies.reload().is_err());
    assert_eq!(said(), 2);
    let notice = &heard("config_rejected", "reloaded.toml")[0];
    assert!(
        notice.level == Level::Error && notice.message.contains("reloaded.toml:2: policy.worker.jitter"),
        "{notice}"
    );
    assert!(notice.message.ends_with("the configuration before it stays in force"), "{notice}");

    // a contradiction with what the code has shown of its policies since
    write("policy.gemini.base_delay = '31s'");
    assert!(policies.reload().unwrap_err().to_string().contains("`max_delay` of the code"));
    fs::remove_file(&path).unwrap();
    assert!(policies.reload().unwrap_err().to_string().contains("cannot be read"));
    assert_eq!(retries(), Retries::Limited(2));
    write("");
    assert_eq!(policies.reload().unwrap().to_string(), "changed: gemini");
    assert_eq!(retries(), CODE.retries());
}

// After a load that failed, a reload reads the new sources.
#[test]
fn a_failed_load_is_mended_by_a_reload() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("mended.toml");
    let policies = load("policy.gemini.max_retries = 1").unwrap();
    assert!(policies.load(Sources::new().file(&path)).is_err());
    assert_eq!(policies.get_or("gemini", &CODE), CODE.max_retries(1), "what was in force stays");
    fs::write(&path, "policy.gemini.max_retries = 2").unwrap();
    assert!(policies.refresh().unwrap().is_some());
    assert_eq!(policies.get_or("gemini", &CODE), CODE.max_retries(2));
}

// 14.1: a reload is atomic: no thread sees one key of the old and one of the new, nor goes back to the code between
#[test]
fn no_thread_sees_half_a_reload() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("atomic.toml");
    let write = |n: u32| fs::write(&path, format!("[policy.p]\nmax_retries = {n}\nbase_delay = '{n}s'")).unwrap();
    write(1);
    let policies = Policies::new();
    policies.load(Sources::new().file(&path)).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut seen = [false; 3];
                    while !done.load(Ordering::Relaxed) {
                        let policy = policies.get_or("p", &CODE);
                        let Retries::Limited(n) = policy.retries() else { panic!("{policy:?}") };
                        assert_eq!(policy.get_base_delay(), n * SECOND);
                        seen[usize::try_from(n).unwrap()] = true;
                    }
                    seen
                })
            })
            .collect();
        for n in 0..200 {
            write(n % 2 + 1);
            policies.reload().unwrap();
        }
        done.store(true, Ordering::Relaxed);
        let seen = readers.into_iter().map(|reader| reader.join().unwrap());
        assert!(seen.fold(false, |any, [_, one, two]| any || (one && two)), "the threads ran at one time");
    });
}

// What a service does with it: values that can be kept, sent and printed.
#[test]
fn the_types_can_be_shared() {
    fn shareable<T: Send + Sync + std::fmt::Debug + 'static>() {}
    shareable::<Policies>();
    shareable::<NamedPolicy<'static>>();
    shareable::<ConfigError>();
    shareable::<Changes>();
    let policies = load("policy.p.max_retries = 1").unwrap();
    assert!(format!("{policies:?}").contains("Loaded"));
}

/// Whether a key has come to what it says.
type Holds = fn(&Policy) -> bool;

/// The keys of a policy as a file has them, with what each must come to.
const KEYS: [(&str, Holds); 12] = [
    ("max_retries = 6", |policy| policy.retries() == Retries::Limited(6)),
    ("max_retries = 0", |policy| policy.retries() == Retries::Limited(0)),
    ("max_retries = 'forever'", |policy| policy.retries() == Retries::Forever),
    ("base_delay = '0s'", |policy| policy.get_base_delay().is_zero()),
    ("base_delay = '20s'", |policy| policy.get_base_delay() == 20 * SECOND),
    ("base_delay = '100s'", |policy| policy.get_base_delay() == 100 * SECOND),
    ("max_delay = '0s'", |policy| policy.get_max_delay().is_zero()),
    ("max_delay = '50s'", |policy| policy.get_max_delay() == 50 * SECOND),
    ("backoff = 'linear'", |policy| policy.get_backoff() == Backoff::Linear),
    ("jitter = 'full'", |policy| policy.get_jitter() == Jitter::Full),
    ("jitter = '40s'", |policy| policy.get_jitter() == Jitter::Additive(40 * SECOND)),
    ("max_retry_after = '7s'", |policy| policy.get_max_retry_after() == 7 * SECOND),
];

/// Policies of a program, some of which contradict themselves.
fn codes() -> Vec<Policy> {
    let plain = Policy::new();
    vec![
        CODE,
        plain.base_delay(120 * SECOND), // above the default of `max_delay`
        plain.max_delay(Duration::from_millis(1)),
        plain.backoff(Backoff::Exponential(0.5)),
        plain.backoff(Backoff::Exponential(f64::NAN)),
        plain.forever().base_delay(Duration::ZERO),
        plain.jitter(Jitter::Additive(500 * SECOND)),
        plain.base_delay(120 * SECOND).backoff(Backoff::Exponential(0.5)).jitter(Jitter::Additive(500 * SECOND)),
    ]
}

// 14.1: never a silent default. Every pair of keys, beside every policy, known beforehand or not: what was loaded holds, or
// a mistake says that it does not.
#[test]
fn every_key_that_is_loaded_holds_or_is_told_of() {
    listen();
    let (mut held, mut refused, mut late) = (0, 0, 0);
    for (number, code) in codes().into_iter().enumerate() {
        for (first, (key, holds)) in KEYS.iter().enumerate() {
            for (second, (other, also_holds)) in KEYS.iter().enumerate() {
                let other_is_set = key.split_once(' ').map(|key| key.0) != other.split_once(' ').map(|key| key.0);
                let toml = if other_is_set { format!("{key}\n{other}") } else { (*key).to_owned() };
                let all_hold = |policy: &Policy| holds(policy) && (!other_is_set || also_holds(policy));
                let name = format!("p{number}_{first}_{second}");
                // the policy is known at the second load: it has been asked for
                let policies = Policies::new();
                let loaded = policies.load(text(&format!("[policy.{name}]\n{toml}")));
                let found = policies.get_or(&name, &code);
                let told = heard("config_rejected", &format!("policy.{name}:")).len();
                match (loaded, policies.reload()) {
                    (Ok(_), Ok(_)) if all_hold(&found) => held += 1,
                    (Ok(_), Err(error)) if told == 1 => {
                        let of_the_code = format!("{code:?}") == format!("{found:?}"); // NaN is not itself
                        assert!(of_the_code && error.to_string().contains(&name), "{toml}: {error}");
                        late += 1;
                    }
                    (Err(_), Err(error)) if error.mistakes().iter().all(|mistake| mistake.message.contains('`')) => {
                        refused += 1;
                    }
                    (loaded, reloaded) => panic!("{toml:?} beside {code:?}: {loaded:?}, {found:?}, {reloaded:?}"),
                }
                // the emergency
                if key.starts_with("max_retries = 0") {
                    assert!(found.retries() == Retries::Limited(0), "{toml} beside {code:?}");
                }
            }
        }
    }
    assert!(held > 500 && refused > 50 && late > 50, "{held} held, {refused} were refused, {late} at first use");
}

// the same with the policies known beforehand
#[test]
fn what_the_code_says_against_itself_takes_nothing_from_a_configuration() {
    static POLICIES: Policies = Policies::of(&[&GEMINI]);
    static GEMINI: NamedPolicy =
        NamedPolicy::new(&POLICIES, "gemini", Policy::new().base_delay(Duration::from_secs(120)));
    let _changes = POLICIES.load(text("[policy.gemini]\nmax_retries = 6")).unwrap();
    assert_eq!(GEMINI.get().retries(), Retries::Limited(6));
    assert_eq!(GEMINI.get().wait_range(0), (60 * SECOND, 60 * SECOND), "waits are cut as ever");
    let _changes = POLICIES.load(text("").variables([("RETRY_POLICY_GEMINI_MAX_RETRIES", "0")])).unwrap();
    assert_eq!(GEMINI.get().retries(), Retries::Limited(0));
    let error = POLICIES.load(text("[policy.gemini]\njitter = '90s'")).unwrap_err().to_string();
    assert!(error.contains("jitter 90s is longer than max_delay 60s"), "behind the code's own mistake: {error}");
}

// each policy of the code that a configuration contradicts is told of
#[test]
fn each_late_contradiction_is_told_of() {
    listen();
    let policies = load("[policy.late_twice]\nbase_delay = '31s'").unwrap();
    for _ in 0..3 {
        assert_eq!(policies.get_or("late_twice", &CODE), CODE);
        let other = CODE.max_retries(4);
        assert_eq!(policies.get_or("late_twice", &other), other);
    }
    assert_eq!(heard("config_rejected", "policy.late_twice").len(), 2);
}
