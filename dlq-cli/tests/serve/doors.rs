//! Who comes in, what they may do, and what others cannot make them do.

use std::sync::Arc;
use std::time::Duration;

use dlq_cli::serve::{Dashboard, Identity, ListenError, Role, Tokens, TokensError, listen, new_token};
use retry_runtime::dead_letter::{LetterState, MemoryStore};

use crate::client::{Client, acting, client, dashboard, events, one, store};

fn tokens() -> Tokens {
    Tokens::new()
        .with(Identity::new("vic", Role::Viewer), "dlq_viewer")
        .with(Identity::new("ole", Role::Operator), "dlq_operator")
        .with(Identity::new("ada", Role::Admin), "dlq_admin")
}

async fn locked(store: &Arc<MemoryStore>) -> Client {
    client(store, Dashboard::new(Arc::clone(store)).tokens(tokens()).allow_actions(true).hosts(["dlq.example"])).await
}

async fn logged_in(store: &Arc<MemoryStore>, token: &str) -> Client {
    let mut client = locked(store).await;
    let page = client.page("/login?next=/letters").await;
    let done = client.submit(&page, "/login", &[("token", token), ("next", "/letters")]).await;
    assert_eq!(done.is(303).header("location"), "/letters");
    client
}

#[tokio::test]
async fn nobody_comes_in_until_it_is_said_who() {
    let store = store().await;
    let mut client = Client::new(Dashboard::new(Arc::clone(&store)).router());
    for path in ["/", "/letters", "/login", "/live", "/audit"] {
        client.get(path).await.is(403).lacks("page-");
    }
}

#[tokio::test]
async fn a_token_lets_in_by_a_form_or_a_header_and_nothing_else_does() {
    let store = store().await;
    let mut client = locked(&store).await;
    let away = client.get("/letters?q=owed").await;
    assert_eq!(away.is(303).header("location"), "/login?next=%2Fletters%3Fq%3Dowed");
    let mut program = client.clone().with("accept", "*/*");
    assert_eq!(program.get("/letters").await.is(401).header("www-authenticate"), "Bearer");
    client.get("/live").await.is(303);
    client.page("/assets/dlq.css").await;

    let page = client.page("/login").await;
    client.submit(&page, "/login", &[("token", "dlq_wrong")]).await.is(403).says("nobody's");
    let wrong = events(&*store, 1).await;
    assert_eq!((wrong[0].0.as_str(), wrong[0].1.as_str()), ("login_refused", "nobody"));
    client.get("/letters").await.is(303);

    let done = client.submit(&page, "/login", &[("token", "dlq_operator"), ("next", "//evil.example")]).await;
    assert_eq!(done.is(303).header("location"), "/");
    let cookie = done.header("set-cookie");
    assert!(
        cookie.starts_with("dlq_session=") && cookie.contains("; HttpOnly") && cookie.contains("; SameSite=Strict"),
        "{cookie}"
    );
    let came = events(&*store, 1).await;
    assert_eq!((came[0].0.as_str(), came[0].1.as_str()), ("logged_in", "ole"));
    let letters = client.page("/letters").await;
    letters.says("page-0").says("ole").says("operator").says("Log out");

    let copy = client.clone();
    assert_eq!(client.submit(&letters, "/logout", &[]).await.is(303).header("location"), "/");
    client.get("/letters").await.is(303);
    let mut copy = copy;
    copy.get("/letters").await.is(303); // the session is over, not only its cookie

    let mut program = locked(&store).await.with("accept", "*/*").with("authorization", "Bearer dlq_viewer");
    program.page("/letters").await.says("vic");
    let mut stranger = locked(&store).await.with("authorization", "Bearer dlq_nobody");
    stranger.get("/letters").await.is(303).lacks("page-0");
    let mut forged = locked(&store).await;
    forged.cookies.insert("dlq_session".to_owned(), "0".repeat(64));
    forged.get("/letters").await.is(303);
}

#[tokio::test]
async fn cookies_go_by_tls_alone_where_there_is_tls() {
    let store = store().await;
    let mut client = Client::new(dashboard(&store).behind_tls(true).router());
    assert!(client.page("/").await.header("set-cookie").ends_with("; HttpOnly; SameSite=Strict; Secure"));
}

type Form = (&'static str, Role, &'static [(&'static str, &'static str)]);

/// Every form, whom it takes, and what it would do.
const FORMS: &[Form] = &[
    ("/letters/ID/discard", Role::Operator, &[("reason", "x")]),
    ("/letters/ID/resolve", Role::Operator, &[("reason", "x")]),
    ("/letters/ID/restore", Role::Operator, &[("more_replays", "1")]),
    ("/letters/ID/edit", Role::Operator, &[]),
    ("/letters/ID/edit", Role::Operator, &[("step", "save"), ("base", "1"), ("payload", "{}")]),
    ("/letters/ID/release", Role::Admin, &[("reason", "x")]),
    ("/groups/note", Role::Operator, &[("group", "g"), ("note", "n")]),
    ("/operations", Role::Operator, &[("verb", "replay"), ("filter", "{}"), ("expected", "99")]),
    ("/operations", Role::Admin, &[("verb", "replay"), ("filter", "{}"), ("expected", "99"), ("force", "1")]),
    ("/operations/OP/pause", Role::Operator, &[]),
    ("/ledger/reset", Role::Admin, &[("scope", "s"), ("key", "k"), ("reason", "x")]),
    ("/counters/threshold", Role::Admin, &[("operation", "o"), ("counter", "c"), ("above", "1")]),
];

// Line 4: roles, and refusals are written down.
#[tokio::test]
async fn each_role_may_do_what_is_its_own() {
    for (token, role) in [("dlq_viewer", Role::Viewer), ("dlq_operator", Role::Operator), ("dlq_admin", Role::Admin)] {
        for (path, needed, fields) in FORMS {
            let store = store().await;
            let mut client = logged_in(&store, token).await;
            let id = one(&*store, "page-0").await.letter_id;
            let answer = client.post(&path.replace("ID", &id), fields).await;
            let said = events(&*store, 1).await;
            if role >= *needed {
                assert_ne!(answer.status, 403, "{role:?} {path}: {}", answer.body);
            } else {
                answer.is(403).says("it takes the role");
                assert_eq!(said[0].0, "refused", "{role:?} {path}");
                assert!(said[0].2.contains("it takes the role"), "{said:?}");
            }
        }
    }
    let store = store().await;
    let mut viewer = logged_in(&store, "dlq_viewer").await;
    viewer.page("/").await.lacks("Replay 20").lacks("Keep the note");
    viewer.get("/operations/new?verb=replay&all=1").await.is(403);
    let id = one(&*store, "page-0").await.letter_id;
    viewer.page(&format!("/letters/{id}")).await.lacks("Discard").lacks("Edit the payload");
    viewer.page("/letters").await.lacks("Discard").lacks("type=\"checkbox\"");
}

#[tokio::test]
async fn without_leave_nothing_is_changed_by_anybody() {
    let store = store().await;
    let mut client = client(&store, dashboard(&store)).await;
    let id = one(&*store, "page-0").await.letter_id;
    for (path, _, fields) in FORMS {
        client.post(&path.replace("ID", &id), fields).await.is(403).says("--allow-actions");
    }
    assert_eq!(one(&*store, "page-0").await.state, LetterState::Parked);
    client.page("/").await.says("only reading").lacks("Replay 20");
    let said = events(&*store, 1).await;
    assert_eq!((said[0].0.as_str(), said[0].1.as_str()), ("refused", "ann"));
}

#[tokio::test]
async fn a_form_of_another_page_changes_nothing() {
    let store = store().await;
    let mut client = acting(&store).await;
    let id = one(&*store, "page-0").await.letter_id;
    let page = client.page(&format!("/letters/{id}")).await;
    let path = format!("/letters/{id}/discard");
    // No token, somebody else's, an old browser's.
    client.raw(&path, &[("reason", "x")]).await.is(403);
    client.raw(&path, &[("reason", "x"), ("csrf", "")]).await.is(403);
    let mut other = acting(&store).await;
    let theirs = other.page(&format!("/letters/{id}")).await.csrf();
    client.raw(&path, &[("reason", "x"), ("csrf", &theirs)]).await.is(403);
    let mut fresh = client.clone();
    fresh.cookies.clear();
    fresh.submit(&page, &path, &[("reason", "x")]).await.is(403);
    // The token is right, and the page is another site's.
    for (name, value) in [
        ("origin", "http://evil.example"),
        ("origin", "null"),
        ("origin", "http://127.0.0.1:7001"),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
    ] {
        client.clone().with(name, value).submit(&page, &path, &[("reason", "x")]).await.is(403).says("another site");
    }
    assert_eq!(one(&*store, "page-0").await.state, LetterState::Parked);
    assert!(events(&*store, 4).await.iter().all(|(what, ..)| what == "refused"), "a wrong token is written down");
    client.clone().with("origin", "http://127.0.0.1:7000").submit(&page, &path, &[("reason", "x")]).await.is(303);
    assert_eq!(one(&*store, "page-0").await.state, LetterState::Discarded);
}

// A page asked for changes nothing: links can be followed by anybody.
#[tokio::test]
async fn getting_changes_nothing() {
    let store = store().await;
    let mut client = acting(&store).await;
    let id = one(&*store, "page-0").await.letter_id;
    let before = events(&*store, 500).await;
    for path in [
        "/",
        "/letters",
        "/operations/new?verb=discard&all=1",
        "/groups",
        "/audit",
        "/counters",
        "/ledger",
        "/operations",
    ] {
        client.page(path).await;
    }
    for (path, ..) in FORMS.iter().filter(|(path, ..)| *path != "/operations") {
        client.get(&path.replace("ID", &id)).await.is(405);
    }
    client.get(&format!("/letters/{id}/payload")).await.is(405);
    assert_eq!(events(&*store, 500).await, before);
}

// DNS rebinding: another site's name that points to this machine.
#[tokio::test]
async fn only_known_names_are_answered() {
    let store = store().await;
    let router = dashboard(&store).hosts(["dlq.example"]).router();
    for good in
        ["localhost", "localhost:7000", "127.0.0.1:7000", "[::1]:7000", "192.168.1.7", "dlq.example", "DLQ.example:80"]
    {
        Client::new(router.clone()).with("host", good).page("/").await;
    }
    for bad in
        ["evil.example", "evil.example:7000", "localhost.evil.example", "127.0.0.1.evil.example", "", "localhost:x"]
    {
        Client::new(router.clone()).with("host", bad).get("/").await.is(421).says("--host NAME").lacks("page-");
    }
}

#[tokio::test]
async fn a_service_says_who_is_there_and_the_audit_has_the_name() {
    let store = store().await;
    let dashboard = Dashboard::new(Arc::clone(&store)).allow_actions(true).identify(|request| {
        let user = request.headers.get("x-user")?.to_str().ok()?;
        let role = if user == "ole" { Role::Operator } else { Role::Viewer };
        Some(Identity::new(user, role))
    });
    let mut nobody = client(&store, dashboard).await;
    nobody.get("/").await.is(403).lacks("page-");
    let id = one(&*store, "page-0").await.letter_id;
    let path = format!("/letters/{id}/discard");
    let mut viewer = nobody.clone().with("x-user", "vic");
    viewer.post(&path, &[("reason", "x")]).await.is(403);
    // The token of somebody else in the same browser is not one's own.
    let page = viewer.page(&format!("/letters/{id}")).await;
    let mut operator = viewer.clone().with("x-user", "ole");
    operator.submit(&page, &path, &[("reason", "x")]).await.is(403);
    operator.post(&path, &[("reason", "the page is gone")]).await.is(303);
    let said = events(&*store, 1).await;
    assert_eq!(said[0], ("discarded".to_owned(), "ole".to_owned(), "the page is gone|".to_owned()));
}

// Payloads: hidden until asked for, and that is written down.
#[tokio::test]
async fn who_sees_a_payload_is_written_down() {
    let store = store().await;
    let mut viewer = logged_in(&store, "dlq_viewer").await;
    let id = one(&*store, "page-0").await.letter_id;
    let shown = viewer.post(&format!("/letters/{id}/payload"), &[]).await;
    shown.is(200).says("&#34;page&#34;: 7").says("[redacted]").lacks("hunter2");
    let said = events(&*store, 1).await;
    assert_eq!(said[0], ("payload_shown".to_owned(), "vic".to_owned(), "|redacted, revision 1".to_owned()));
    let mut operator = logged_in(&store, "dlq_operator").await;
    operator.post(&format!("/letters/{id}/edit"), &[]).await.is(200).says("hunter2");
    let said = events(&*store, 1).await;
    assert_eq!(said[0], ("payload_shown".to_owned(), "ole".to_owned(), "|in full, to edit it, revision 1".to_owned()));
    operator.page(&format!("/letters/{id}")).await.says("payload shown").says("in full, to edit it");
}

// Whoever knocks all day does not fill the disk.
#[tokio::test]
async fn refusals_are_written_down_so_often_a_minute() {
    let store = store().await;
    let mut client = client(&store, dashboard(&store)).await;
    for _ in 0..50 {
        client.raw("/operations", &[]).await.is(403);
    }
    let written = events(&*store, 500).await.iter().filter(|(what, ..)| what == "refused").count();
    assert_eq!(written, 30);
}

#[tokio::test]
async fn an_address_that_others_reach_wants_tokens() {
    let store = store().await;
    let open = listen(dashboard(&store), "0.0.0.0:0".parse().unwrap()).await;
    let Err(ListenError::Open(_)) = &open else { panic!("{open:?}") };
    assert!(open.unwrap_err().to_string().contains("nobody would have to log in"));
    let v6 = listen(dashboard(&store), "[::]:0".parse().unwrap()).await;
    assert!(matches!(v6, Err(ListenError::Open(_))));
    let asks = listen(Dashboard::new(Arc::clone(&store)).tokens(tokens()), "0.0.0.0:0".parse().unwrap()).await;
    assert!(asks.is_ok(), "{asks:?}");
    let here = listen(dashboard(&store), "127.0.0.1:0".parse().unwrap()).await.unwrap();
    let address = here.address();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let served = tokio::spawn(here.run(async { drop(stopped.await) }));
    // By a socket: also on an address of its own it looks at the names.
    for (host, status) in [("127.0.0.1", "200"), ("evil.example", "421")] {
        let answer = by_socket(address, &format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
    }
    stop.send(()).unwrap();
    tokio::time::timeout(Duration::from_secs(10), served).await.unwrap().unwrap();
}

async fn by_socket(address: std::net::SocketAddr, request: &str) -> String {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

// A file that others may read is none.
#[cfg(unix)]
#[test]
fn the_file_of_tokens_is_its_owner_s_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tokens");
    let (token, line) = new_token("ole", Role::Operator).unwrap();
    assert!(!line.contains(token.trim_start_matches("dlq_")), "the file never has the token");
    std::fs::write(&path, format!("# who may come in\n\n{line} # night shift\n")).unwrap();
    for mode in [0o644, 0o640, 0o606, 0o660] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        let error = Tokens::read(&path).unwrap_err();
        assert!(matches!(error, TokensError::TooOpen(..)) && error.to_string().contains("chmod 600"), "{error}");
    }
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    let tokens = Tokens::read(&path).unwrap();
    assert_eq!(tokens.identify(&token), Some(Identity::new("ole", Role::Operator)));
    assert_eq!(tokens.identify("dlq_other"), None);
    for (text, says) in [
        ("", "names nobody"),
        ("ole operator", "line 1"),
        ("ole king 00", "`king` is no role"),
        ("ole viewer 00", "64 hexadecimal"),
    ] {
        std::fs::write(&path, text).unwrap();
        let error = Tokens::read(&path).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
    for name in ["", "a b", "a#", "a\n"] {
        assert!(new_token(name, Role::Viewer).is_err(), "{name:?}");
    }
    assert!(Tokens::read(directory.path().join("none")).unwrap_err().to_string().contains("cannot read"));
}
