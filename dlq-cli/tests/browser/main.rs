//! The dashboard in a real browser: Chromium without a window.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)] // tests fail by panicking

mod driver;
mod site;

use std::time::Duration;

use driver::{Browser, Scripts};
use retry_runtime::dead_letter::{
    Actor, BulkOperations as _, DeadLetterStore as _, Filter, LetterState, OperationRequest, OperationRunner, Payload,
    ReplayError, Verb,
};
use site::{Site, TOKEN, letter};

fn log_in(browser: &Browser, site: &Site) {
    browser.open(&site.at("/"));
    browser.wait("Your token");
    browser.picture("login");
    browser.fill("#token", TOKEN);
    browser.press("Log in");
    browser.wait("letters are owed");
}

/// Every page, with a name for its picture.
fn pages(site: &Site) -> Vec<(&'static str, String)> {
    let id = site.letter("page-7").letter_id;
    let plan = "/operations/new?verb=replay&q=kind%3Afetch_page+status%3Aparked";
    vec![
        ("overview", "/".to_owned()),
        ("letters", "/letters?q=owed".to_owned()),
        ("letter", format!("/letters/{id}")),
        ("groups", "/groups".to_owned()),
        ("plan", plan.to_owned()),
        ("operations", "/operations".to_owned()),
        ("ledger", "/ledger".to_owned()),
        ("counters", "/counters".to_owned()),
        ("audit", "/audit".to_owned()),
        ("wrong-filter", "/letters?q=colour%3Ared".to_owned()),
        ("missing", "/nothing".to_owned()),
    ]
}

/// The pages of an operation that is over, with a failure in it, and of one that waits for a worker.
fn operations(site: &Site) -> [String; 2] {
    let start = |kind: &str| {
        let mut filter = Filter::parked();
        filter.kinds.push(kind.to_owned());
        let request = OperationRequest::new(Verb::Replay, filter);
        site.runtime.block_on(site.store.start(request, Actor::new("ada", "the quota was raised"))).unwrap().id
    };
    let over = start("summarise");
    let runner = OperationRunner::new(site.store.clone()).name("worker-1").on("summarise", |job| async move {
        if job.job_id == "text-9" { Err(ReplayError::failed("still limited")) } else { Ok(()) }
    });
    site.runtime.block_on(runner.run(over.clone())).unwrap();
    [over, start("fetch_page")].map(|id| format!("/operations/{id}"))
}

/// No script or style was refused, and nothing failed to load (but the pages that are meant to).
#[track_caller]
fn no_complaints(browser: &Browser) {
    let complaints = browser.complaints();
    let meant = |line: &String| line.contains("/nothing") || line.contains("q=colour") || line.contains("/login");
    let others: Vec<_> = complaints.into_iter().filter(|line| !meant(line)).collect();
    assert!(others.is_empty(), "{others:?}");
}

// Line 5: log in, read, filter, replay with progress.
#[test]
fn a_parked_job_is_found_read_replayed_and_seen_recovered() {
    let site = Site::start();
    let browser = Browser::start(Scripts::On, 1280);
    log_in(&browser, &site);
    browser.wait("82 letters are owed");
    browser.wait("live");
    // By keys alone to the list and its filter.
    browser.keys("gl");
    browser.wait("of 82 matching");
    browser.keys("/");
    browser.keys("class:rate_limit\u{e007}");
    browser.wait("17 of 17 matching");
    browser.press("text-3");
    browser.wait("429 Too Many Requests");
    browser.press("Show the payload without its secrets");
    browser.wait("[redacted]");
    assert!(!browser.source().contains("sk-123"));
    browser.picture("payload");
    browser.press("letters of the same failure");
    browser.wait("17 of 17 matching");
    browser.press("Replay all 17 with the application's workers");
    browser.wait("Replay 17 letters?");
    browser.fill("#reason", "the quota was raised");
    browser.press("Replay 17 with the application's workers");
    browser.wait("waits for a worker");
    browser.picture("waiting");
    // The application's worker takes it, and the page follows without being asked.
    let op = site.runtime.block_on(site.store.operations(None, 1)).unwrap().remove(0);
    let runner = OperationRunner::new(site.store.clone()).name("worker-1").on("summarise", |job| async move {
        tokio::time::sleep(Duration::from_millis(400)).await;
        if job.job_id == "text-9" { Err(ReplayError::failed("still limited")) } else { Ok(()) }
    });
    let id = op.id.clone();
    let running = site.runtime.spawn(async move { runner.run(id).await.unwrap() });
    browser.wait("run by worker-1");
    browser.picture("progress");
    browser.wait("16 recovered, 1 still failing");
    browser.wait("done, 1 still failing");
    browser.picture("ended");
    site.runtime.block_on(running).unwrap();
    browser.press("Overview");
    browser.wait("66 letters are owed");
    browser.wait("recovered in 24 h");
    no_complaints(&browser);
}

#[test]
fn a_letter_is_edited_discarded_and_restored() {
    let site = Site::start();
    let browser = Browser::start(Scripts::On, 1280);
    log_in(&browser, &site);
    let id = site.letter("page-private").letter_id;
    browser.open(&site.at(&format!("/letters/{id}")));
    browser.press("Edit the payload");
    browser.wait("What you save becomes a revision of its own");
    browser.fill("#json", r#"{"page": "page-public", "model": "small", "api_key": "sk-123"}"#);
    browser.fill("#reason", "it has moved");
    browser.press("See what changes");
    browser.wait("page-public");
    browser.wait("What changes");
    browser.picture("edit");
    browser.press("Save this as a new revision");
    browser.wait("revision 2 of 2");
    let detail = site.runtime.block_on(site.store.get(id.clone())).unwrap().unwrap();
    assert!(matches!(&detail.payload, Payload::Json(json) if json.contains("page-public")), "{detail:?}");

    browser.press("Discard");
    browser.fill("form[action$='/discard'] input[name=reason]", "the page is gone");
    browser.press("Discard this letter");
    browser.wait("It can be restored until retention deletes it");
    assert_eq!(site.letter("page-private").state, LetterState::Discarded);
    browser.picture("discarded");
    browser.press("Restore");
    browser.press("Park this letter again");
    browser.wait("Parked again.");
    assert_eq!(site.letter("page-private").state, LetterState::Parked);
    no_complaints(&browser);
}

// A second tab, a pause, and a connection that is lost.
#[test]
fn pages_follow_what_happens_elsewhere() {
    let mut site = Site::start();
    let browser = Browser::start(Scripts::On, 1280);
    log_in(&browser, &site);
    browser.wait("live");
    let first = browser.tab();
    let second = browser.new_tab();
    browser.switch(&second);
    let id = site.letter("page-1").letter_id;
    browser.open(&site.at(&format!("/letters/{id}")));
    browser.press("Discard");
    browser.fill("form[action$='/discard'] input[name=reason]", "seen twice");
    browser.press("Discard this letter");
    browser.wait("It can be restored");
    browser.switch(&first);
    browser.wait("81 letters are owed");
    // Paused: nothing moves until it goes on.
    browser.press("Pause updates");
    browser.wait("paused");
    site.runtime.block_on(site.store.discard(site.letter("page-2").letter_id, Actor::new("bob", ""))).unwrap();
    std::thread::sleep(Duration::from_secs(4));
    assert!(browser.text().contains("81 letters are owed"));
    browser.press("Go on with updates");
    browser.wait("80 letters are owed");
    // Where somebody is writing, the page is theirs.
    browser.press("Note");
    browser.fill("input[name=note]", "half a sen");
    site.park(letter("fetch_page", "page-new", "timeout", "no answer"));
    std::thread::sleep(Duration::from_secs(4));
    assert_eq!(browser.run("return document.querySelector('input[name=note]').value"), "half a sen");
    browser.run("document.querySelectorAll('details[open]').forEach((open) => { open.open = false; }); document.activeElement.blur()");
    browser.wait("81 letters are owed");

    site.go();
    browser.wait("connection lost, trying again");
    site.park(letter("fetch_page", "page-later", "timeout", "no answer"));
    site.serve();
    // A restart logs everybody out: the page stays, and says so on the next click.
    browser.press("Letters");
    browser.wait("Your token");
    browser.fill("#token", TOKEN);
    browser.press("Log in");
    browser.wait("of 82 matching");
}

// Line 5: no JavaScript.
#[test]
fn everything_works_without_scripts() {
    let site = Site::start();
    let browser = Browser::start(Scripts::Off, 1280);
    log_in(&browser, &site);
    assert!(!browser.text().contains("Pause updates"), "what needs a script is not shown without");
    browser.picture("no-scripts");
    browser.press("Letters");
    browser.fill("#q", "class:rate_limit");
    browser.press("Show");
    browser.wait("17 of 17 matching");
    browser.click("tbody tr:nth-child(1) input[type=checkbox]");
    browser.click("tbody tr:nth-child(2) input[type=checkbox]");
    browser.press("Discard the selected letters");
    browser.wait("Discard 2 letters?");
    browser.fill("#reason", "not needed");
    browser.press("Discard 2 letters");
    browser.wait("Discard of 2 letters");
    let op = site.runtime.block_on(site.store.operations(None, 1)).unwrap().remove(0);
    while !site.runtime.block_on(site.store.operation(op.id.clone())).unwrap().unwrap().status.is_over() {
        std::thread::sleep(Duration::from_millis(50));
    }
    browser.open(&browser.address());
    browser.wait("2 discarded");
    browser.press("Counters");
    browser.wait("degraded above 500");
    browser.find("figure svg.days");
    browser.press("Overview");
    browser.wait("80 letters are owed");
    browser.press("Note");
    browser.fill("input[name=note]", "known");
    browser.press("Keep the note");
    browser.wait("Noted.");
    browser.press("Log out");
    browser.wait("Your token");
}

// Line 3: usable at 380 px; line 5: axe-core finds nothing serious, in the light and in the dark.
#[test]
fn every_page_fits_a_narrow_screen_and_is_accessible() {
    let site = Site::start();
    let browser = Browser::start(Scripts::On, 1280);
    let axe = include_str!("axe-4.14.1.min.js");
    let audit = |name: &str| {
        browser.run(axe);
        let found = browser.run_later(
            "const done = arguments[arguments.length - 1];
             axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] }).then((report) => done(
               report.violations.map((found) => [found.impact, found.id, found.nodes.map((node) => node.html + ' ' + node.failureSummary)])));",
        );
        let found = found.as_array().unwrap();
        let serious =
            found.iter().filter(|found| found[0] == "serious" || found[0] == "critical" || found[0] == "moderate");
        let serious: Vec<_> = serious.map(ToString::to_string).collect();
        assert!(serious.is_empty(), "{name}: {serious:#?}");
    };
    browser.open(&site.at("/login"));
    audit("login");
    log_in(&browser, &site);
    let judge = |name: &str| {
        for dark in [false, true] {
            browser.dark(dark);
            browser.resize(1280, 900);
            browser.find("main");
            audit(name);
            browser.picture(&format!("{name}-{}", if dark { "dark" } else { "light" }));
            browser.resize(380, 800);
            let width = browser.run("return document.documentElement.scrollWidth");
            assert_eq!(width, 380, "{name} is too wide");
            let cut = browser.run(
                "return [...document.querySelectorAll('nav a, .cards td')].filter((part) =>
                   part.getBoundingClientRect().right > innerWidth).map((part) => part.outerHTML)",
            );
            assert_eq!(cut, serde_json::json!([]), "{name}");
            audit(&format!("{name}, narrow"));
            browser.picture(&format!("{name}-narrow{}", if dark { "-dark" } else { "" }));
        }
        browser.dark(false);
        browser.resize(1280, 900);
    };
    let mut heads = std::collections::BTreeSet::new();
    for (name, path) in pages(&site) {
        browser.open(&site.at(&path));
        if name != "missing" {
            let head = browser.run("return document.querySelector('header').getBoundingClientRect().height");
            heads.insert(head.to_string());
        }
        judge(name);
    }
    assert_eq!(heads.len(), 1, "the head of pages jumps: {heads:?}");
    // What only a form leads to.
    let id = site.letter("page-7").letter_id;
    browser.open(&site.at(&format!("/letters/{id}")));
    browser.press("Show the payload without its secrets");
    browser.wait("[redacted]");
    judge("payload-shown");
    browser.press("Edit the payload");
    browser.wait("What you save becomes a revision of its own");
    judge("edit-form");
    browser.fill("#json", r#"{"page": "page-8", "model": "small", "api_key": "sk-123"}"#);
    browser.press("See what changes");
    browser.wait("What changes");
    judge("edit-review");
    for (name, path) in ["operation-over", "operation-waiting"].into_iter().zip(operations(&site)) {
        browser.open(&site.at(&path));
        judge(name);
    }
    browser.open(&site.at("/operations"));
    judge("operations-two");
    browser.press("Log out");
    browser.wait("Your token");
    judge("login");
    browser.fill("#token", "dlq_nobody");
    browser.press("Log in");
    browser.wait("That token is nobody's");
    judge("login-refused");
    no_complaints(&browser);
}

// Line 0: what is asked at night is on the first screen, without scrolling, and the first failure as well.
#[test]
fn the_first_screen_answers_before_anybody_scrolls() {
    let site = Site::start();
    let browser = Browser::start(Scripts::On, 1280);
    browser.resize(1280, 800);
    log_in(&browser, &site);
    browser.picture("first-screen");
    let ends = |css: &str| {
        browser.run(&format!("return document.querySelector('{css}').getBoundingClientRect().bottom")).as_f64().unwrap()
    };
    assert!(ends(".night") < 620.0, "{}", ends(".night"));
    assert!(ends(".card .message") < 800.0, "{}", ends(".card .message"));
    // One way to write days and numbers, by the server and in plots.
    browser.open(&site.at("/counters"));
    browser.find(".u-legend");
    let legends = browser.run("return [...document.querySelectorAll('.u-legend')].map((legend) => legend.innerText)");
    let said = legends.to_string();
    assert!(said.contains("700\u{202f}000") && said.contains("500\u{202f}000"), "{said}");
    assert!(!said.contains("--") && !said.contains('/'), "{said}");
    browser.picture("plots");
    no_complaints(&browser);
}

// Line 4: what a server sent is not obeyed by a browser either.
#[test]
fn a_browser_obeys_no_letter() {
    let site = Site::start();
    let evil = "</pre><script>window.obeyed = 1</script><img src=x onerror='window.obeyed = 2'><svg onload='window.obeyed = 3'>\u{202e}gpj.exe\u{1b}[31m";
    let mut hostile = letter(evil, evil, "timeout", evil);
    hostile.payload = Payload::Json(serde_json::json!({"text": evil}).to_string());
    site.park(hostile);
    let browser = Browser::start(Scripts::On, 1280);
    log_in(&browser, &site);
    let id = site.letter(evil).letter_id;
    for path in [
        "/".to_owned(),
        "/letters?q=owed".to_owned(),
        "/groups".to_owned(),
        format!("/letters/{id}"),
        "/audit".to_owned(),
    ] {
        browser.open(&site.at(&path));
        browser.find("main");
        assert!(browser.run("return window.obeyed ?? null").is_null(), "{path}");
        assert!(browser.run("return document.querySelectorAll('img, svg[onload], main script').length") == 0, "{path}");
    }
    browser.open(&site.at(&format!("/letters/{id}")));
    browser.press("Show the payload without its secrets");
    browser.wait("window.obeyed");
    browser.picture("hostile");
    browser.press("Edit the payload");
    browser.wait("See what changes");
    assert!(browser.run("return window.obeyed ?? null").is_null());
    no_complaints(&browser);
}
