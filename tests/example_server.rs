//! The local server of the examples misbehaves as planned: each fault is first shown to bite.
#![allow(clippy::expect_used)] // a helper of a test fails as a test does

use std::error::Error;
use std::time::Duration;

use serde_json::{Value, json};
use support::plan::{Plan, Reply, SAMPLE_SEED};
use support::server::Server;

#[path = "../examples/support/mod.rs"]
mod support;

type Outcome = Result<(), Box<dyn Error>>;

fn client() -> reqwest::Client {
    support::http::client(Duration::from_secs(30), 0).expect("the client builds")
}

async fn ask(server: &Server, prompt: &str) -> reqwest::Result<reqwest::Response> {
    let url = format!("{}/v1beta/models/small:generateContent", server.url());
    let body = json!({"contents": [{"parts": [{"text": prompt}]}]});
    client().post(url).header("x-goog-api-key", "k").json(&body).send().await
}

async fn fetch(server: &Server, url: &str) -> reqwest::Result<reqwest::Response> {
    client().get(format!("{}/fetch?url={url}", server.url())).send().await
}

#[tokio::test]
async fn answers_like_gemini_and_remembers_who_asked() -> Outcome {
    let server = Server::start(Plan::good()).await?;
    let answer: Value = ask(&server, "hello").await?.json().await?;
    assert_eq!(answer["candidates"][0]["content"]["parts"][0]["text"], "small heard 5 letters");
    let seen = server.seen();
    assert_eq!((seen.len(), server.asked("hello")), (1, 1));
    assert_eq!(seen[0].headers["x-goog-api-key"], "k");
    Ok(())
}

#[tokio::test]
async fn a_request_that_makes_no_sense_is_400() -> Outcome {
    let server = Server::start(Plan::good()).await?;
    let answer = client().post(format!("{}/v1beta/models/small:count", server.url())).body("{}").send().await?;
    assert_eq!(answer.status(), 400);
    assert_eq!(answer.json::<Value>().await?["error"]["status"], "INVALID_ARGUMENT");
    Ok(())
}

#[tokio::test]
async fn rate_limits_carry_their_hint() -> Outcome {
    let plan = Plan::good().script("info", [Reply::RetryInfo("53s")]).script("header", [Reply::RetryAfter("7")]);
    let server = Server::start(plan).await?;
    let info = ask(&server, "info").await?;
    assert_eq!(info.status(), 429);
    assert_eq!(info.json::<Value>().await?.pointer("/error/details/0/retryDelay"), Some(&json!("53s")));
    let header = ask(&server, "header").await?;
    assert_eq!((header.status().as_u16(), header.headers()["retry-after"].to_str()?), (429, "7"));
    Ok(())
}

#[tokio::test]
async fn scripts_run_in_order_and_the_last_answer_stays() -> Outcome {
    let script = [Reply::Status(502), Reply::Google(503, "UNAVAILABLE", "stopped by SAFETY"), Reply::Good(10)];
    let server = Server::start(Plan::good().script("p", script)).await?;
    let mut statuses = Vec::new();
    for _ in 0..4 {
        statuses.push(ask(&server, "p").await?.status().as_u16());
    }
    assert_eq!(statuses, [502, 503, 200, 200]);
    assert_eq!(server.asked("p"), 4);
    Ok(())
}

#[tokio::test]
async fn a_hanging_answer_runs_into_the_clients_limit() -> Outcome {
    let server = Server::start(Plan::good().script("worker:u", [Reply::Hang])).await?;
    let url = format!("{}/fetch?url=u", server.url());
    let error = support::http::client(Duration::from_millis(200), 0)?.get(url).send().await.unwrap_err();
    assert!(error.is_timeout(), "{error:?}");
    Ok(())
}

#[tokio::test]
async fn a_cut_answer_starts_well_and_breaks_in_the_body() -> Outcome {
    let server = Server::start(Plan::good().script("p", [Reply::Cut])).await?;
    let answer = ask(&server, "p").await?;
    assert_eq!(answer.status(), 200);
    let error = answer.text().await.unwrap_err();
    assert!(error.is_body() || error.is_decode(), "{error:?}");
    let told = support::http::describe(error);
    assert!(!told.contains("127.0.0.1") && told.contains("reset"), "{told}");
    Ok(())
}

#[tokio::test]
async fn images_come_by_both_routes_each_with_its_own_faults() -> Outcome {
    let plan = Plan::good()
        .script("worker:https://i.example/a.png", [Reply::Status(403)])
        .script("direct:/gone.png", [Reply::Status(410)])
        .script("direct:/page.png", [Reply::Html]);
    let server = Server::start(plan).await?;
    assert_eq!(fetch(&server, "https%3A%2F%2Fi.example%2Fa.png").await?.status(), 403);
    let image = client().get(format!("{}/a.png?size=2", server.url())).send().await?;
    assert_eq!(image.headers()["content-type"], "image/png");
    assert_eq!(image.bytes().await?.len(), 20_000);
    assert_eq!(server.asked("direct:/a.png?size=2"), 1);
    assert_eq!(client().get(format!("{}/gone.png", server.url())).send().await?.status(), 410);
    let page = client().get(format!("{}/page.png", server.url())).send().await?;
    assert!(page.headers()["content-type"].to_str()?.starts_with("text/html"));
    Ok(())
}

#[tokio::test]
async fn a_repaired_server_answers_everybody_well() -> Outcome {
    let server = Server::start(Plan::good().script("p", [Reply::Status(500)])).await?;
    assert_eq!(ask(&server, "p").await?.status(), 500);
    server.repair();
    assert_eq!(ask(&server, "p").await?.status(), 200);
    Ok(())
}

/// The batches that the examples make when they are given none meet every fault that the examples promise to meet.
#[test]
fn the_sample_batches_meet_every_fault() {
    let plan = Plan::seeded(SAMPLE_SEED);
    let dealt = |key: &dyn Fn(u32) -> String| -> Vec<Reply> { (1..=100).map(|n| plan.reply(&key(n), 0)).collect() };
    let gemini = dealt(&|n| format!("prompt {n}"));
    for code in [400, 403, 404, 410, 418, 500, 503, 504] {
        assert!(gemini.iter().any(|reply| matches!(reply, Reply::Google(is, ..) if *is == code)), "no {code}");
    }
    assert!(gemini.iter().any(|reply| matches!(reply, Reply::Google(503, _, text) if text.contains("SAFETY"))));
    assert!(gemini.iter().any(|reply| matches!(reply, Reply::RetryInfo(_))));
    assert!(gemini.iter().any(|reply| matches!(reply, Reply::RetryAfter(_))));
    let worker = dealt(&|n| format!("worker:https://images.example/{n:03}.png"));
    for fault in [Reply::Hang, Reply::Cut, Reply::Html] {
        assert!(gemini.contains(&fault), "no {fault:?}");
        assert!(worker.contains(&fault), "no {fault:?} by the worker");
    }
    for code in [403, 404, 410, 451, 500] {
        assert!(worker.contains(&Reply::Status(code)), "no {code} by the worker");
    }
    let direct = dealt(&|n| format!("direct:/{n:03}.png"));
    for fault in [Reply::Status(403), Reply::Status(404), Reply::Cut] {
        assert!(direct.contains(&fault), "no {fault:?} directly");
    }
    let good = gemini.iter().filter(|reply| matches!(reply, Reply::Good(_))).count();
    assert!((50..80).contains(&good), "{good} of {} are good", gemini.len());
}
