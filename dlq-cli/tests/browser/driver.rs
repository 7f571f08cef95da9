//! A real browser, driven by `WebDriver`: JSON over HTTP to `chromedriver`.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// One browser at a time: the machine may be small.
static ONE: Mutex<()> = Mutex::new(());

/// How long a page may take to become what is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Browser {
    driver: Child,
    port: u16,
    session: String,
    _one: MutexGuard<'static, ()>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scripts {
    On,
    Off,
}

impl Browser {
    pub(crate) fn start(scripts: Scripts, width: u32) -> Self {
        let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let mut driver =
            Command::new("chromedriver").arg("--port=0").stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect(
                "these tests need `chromium` and `chromedriver` (Debian: chromium-driver); ./test installs them",
            );
        let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines();
        let port =
            lines.find_map(|line| line.unwrap().split_once("successfully on port ").map(|(_, port)| port.to_owned()));
        let port = port.expect("a port").trim_end_matches('.').parse().unwrap();
        let mut browser = Self { driver, port, session: String::new(), _one: one };
        let javascript = if scripts == Scripts::On { 1 } else { 2 };
        let wanted = json!({"capabilities": {"alwaysMatch": {
            "browserName": "chrome",
            "goog:loggingPrefs": {"browser": "ALL"},
            "goog:chromeOptions": {
                "args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--lang=en", format!("--window-size={width},900")],
                "prefs": {"profile.default_content_setting_values.javascript": javascript},
            },
        }}});
        let session = browser.send("POST", "/session", &wanted);
        browser.session = session["sessionId"].as_str().unwrap().into();
        browser.resize(width, 900);
        browser
    }

    /// The size of the page itself, smaller than a window can be.
    pub(crate) fn resize(&self, width: u32, height: u32) {
        let params = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.cdp("Emulation.setDeviceMetricsOverride", &params);
    }

    pub(crate) fn dark(&self, dark: bool) {
        let scheme = if dark { "dark" } else { "light" };
        self.cdp(
            "Emulation.setEmulatedMedia",
            &json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]}),
        );
    }

    fn cdp(&self, command: &str, params: &Value) -> Value {
        self.post("/goog/cdp/execute", &json!({"cmd": command, "params": params}))
    }

    pub(crate) fn open(&self, address: &str) {
        self.post("/url", &json!({"url": address}));
    }

    pub(crate) fn address(&self) -> String {
        self.get("/url").as_str().unwrap().to_owned()
    }

    pub(crate) fn source(&self) -> String {
        self.get("/source").as_str().unwrap().to_owned()
    }

    /// What the page shows.
    pub(crate) fn text(&self) -> String {
        let body = self.find("body");
        self.get(&format!("/element/{body}/text")).as_str().unwrap().to_owned()
    }

    /// Waits until the page shows it.
    #[track_caller]
    pub(crate) fn wait(&self, text: &str) {
        let until = Instant::now() + PATIENCE;
        loop {
            // A page that is just being replaced has no body.
            let shown = self.try_text().unwrap_or_default();
            if shown.contains(text) {
                return;
            }
            assert!(Instant::now() < until, "never `{text}` at {}: {shown}", self.address());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn try_text(&self) -> Option<String> {
        let body = self.try_find("css selector", "body")?;
        let answer = self.try_send("GET", &format!("/session/{}/element/{body}/text", self.session), &Value::Null);
        answer.ok()?.as_str().map(str::to_owned)
    }

    #[track_caller]
    pub(crate) fn find(&self, css: &str) -> String {
        self.wait_for("css selector", css)
    }

    #[track_caller]
    fn wait_for(&self, by: &str, what: &str) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = self.try_find(by, what) {
                return found;
            }
            assert!(Instant::now() < until, "no `{what}` at {}: {}", self.address(), self.source());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn try_find(&self, by: &str, what: &str) -> Option<String> {
        let path = format!("/session/{}/element", self.session);
        let found = self.try_send("POST", &path, &json!({"using": by, "value": what})).ok()?;
        found.as_object()?.values().next()?.as_str().map(str::to_owned)
    }

    #[track_caller]
    pub(crate) fn click(&self, css: &str) {
        let element = self.find(css);
        self.post(&format!("/element/{element}/click"), &json!({}));
    }

    /// Clicks the link or button with this text.
    #[track_caller]
    pub(crate) fn press(&self, text: &str) {
        let path = format!("//*[self::a or self::button or self::summary][contains(normalize-space(.), \"{text}\")]");
        let element = self.wait_for("xpath", &path);
        self.post(&format!("/element/{element}/click"), &json!({}));
    }

    #[track_caller]
    pub(crate) fn fill(&self, css: &str, text: &str) {
        let element = self.find(css);
        self.post(&format!("/element/{element}/clear"), &json!({}));
        self.post(&format!("/element/{element}/value"), &json!({"text": text}));
    }

    /// Keys, wherever the focus is.
    pub(crate) fn keys(&self, keys: &str) {
        let keys: Vec<_> = keys
            .chars()
            .flat_map(|key| ["keyDown", "keyUp"].map(|what| json!({"type": what, "value": key.to_string()})))
            .collect();
        self.post("/actions", &json!({"actions": [{"type": "key", "id": "keys", "actions": keys}]}));
    }

    pub(crate) fn run(&self, script: &str) -> Value {
        self.post("/execute/sync", &json!({"script": script, "args": []}))
    }

    pub(crate) fn run_later(&self, script: &str) -> Value {
        self.post("/execute/async", &json!({"script": script, "args": []}))
    }

    pub(crate) fn new_tab(&self) -> String {
        let tab = self.post("/window/new", &json!({"type": "tab"}));
        tab["handle"].as_str().unwrap().to_owned()
    }

    pub(crate) fn tab(&self) -> String {
        self.get("/window").as_str().unwrap().to_owned()
    }

    pub(crate) fn switch(&self, tab: &str) {
        self.post("/window", &json!({"handle": tab}));
    }

    /// What the browser complained about since the last time.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let log = self.post("/se/log", &json!({"type": "browser"}));
        let lines = log.as_array().unwrap().iter().filter(|line| line["level"] != "INFO" && line["level"] != "DEBUG");
        lines.map(|line| line["message"].as_str().unwrap().to_owned()).collect()
    }

    /// A picture of the page, in the directory that `DLQ_SCREENSHOTS` names.
    pub(crate) fn picture(&self, name: &str) {
        let Ok(directory) = std::env::var("DLQ_SCREENSHOTS") else { return };
        let picture = self.cdp("Page.captureScreenshot", &json!({"captureBeyondViewport": true}));
        std::fs::create_dir_all(&directory).unwrap();
        let picture = decode(picture["data"].as_str().unwrap());
        std::fs::write(format!("{directory}/{name}.png"), picture).unwrap();
    }

    #[track_caller]
    fn post(&self, path: &str, body: &Value) -> Value {
        self.send("POST", &format!("/session/{}{path}", self.session), body)
    }

    #[track_caller]
    fn get(&self, path: &str) -> Value {
        self.send("GET", &format!("/session/{}{path}", self.session), &Value::Null)
    }

    #[track_caller]
    fn send(&self, method: &str, path: &str, body: &Value) -> Value {
        self.try_send(method, path, body).unwrap_or_else(|error| panic!("{method} {path} {body}: {error}"))
    }

    fn try_send(&self, method: &str, path: &str, body: &Value) -> Result<Value, String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).map_err(|error| error.to_string())?;
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Type: application/json\r\n"
        );
        write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len()).map_err(|error| error.to_string())?;
        stream.set_read_timeout(Some(2 * PATIENCE)).map_err(|error| error.to_string())?;
        let (mut stream, mut head, mut length) = (BufReader::new(stream), String::new(), 0);
        // It keeps the connection, whatever it is told.
        while !head.ends_with("\r\n\r\n") {
            let from = head.len();
            if stream.read_line(&mut head).map_err(|error| error.to_string())? == 0 {
                return Err("no answer".to_owned());
            }
            if let Some((name, value)) = head[from..].split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).map_err(|error| error.to_string())?;
        let answer: Value = serde_json::from_slice(&body).map_err(|error| error.to_string())?;
        let value = answer["value"].clone();
        if head.starts_with("HTTP/1.1 200") { Ok(value) } else { Err(value["message"].to_string()) }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ended = self.try_send("DELETE", &format!("/session/{}", self.session), &Value::Null);
        let _killed = self.driver.kill();
        let _waited = self.driver.wait();
    }
}

/// Base64, as pictures come.
fn decode(text: &str) -> Vec<u8> {
    let digit = |c: u8| match c {
        b'A'..=b'Z' => u32::from(c - b'A'),
        b'a'..=b'z' => u32::from(c - b'a') + 26,
        b'0'..=b'9' => u32::from(c - b'0') + 52,
        b'+' => 62,
        _ => 63,
    };
    let mut out = Vec::new();
    for four in text.trim_end_matches('=').as_bytes().chunks(4) {
        let bits = four.iter().fold(0, |bits, c| bits << 6 | digit(*c)) << (6 * (4 - four.len()));
        out.extend(bits.to_be_bytes()[1..].iter().take(four.len() - 1));
    }
    out
}
