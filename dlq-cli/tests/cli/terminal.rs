//! Once through a real terminal: colour, the question, the bar, Ctrl-C as it is typed.

use super::support::{Bench, until};

use std::process::Command;

struct Terminal {
    socket: std::path::PathBuf,
    commands: std::cell::Cell<u32>,
}

impl Terminal {
    fn new(bench: &Bench) -> Self {
        let terminal = Self { socket: bench.path("tmux"), commands: std::cell::Cell::new(0) };
        let store = format!("DLQ_STORE=sqlite:{}", bench.db().display());
        let directory = bench.path("");
        let new = [
            "new-session",
            "-d",
            "-x",
            "120",
            "-y",
            "50",
            "-e",
            &store,
            "-e",
            "PS1=$ ",
            "-e",
            "USER=ada",
            "-c",
            directory.to_str().unwrap(),
            "sh",
        ];
        terminal.tmux(&new);
        terminal
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let output = Command::new("tmux")
            .arg("-f")
            .arg("/dev/null")
            .arg("-S")
            .arg(&self.socket)
            .args(arguments)
            .output()
            .unwrap();
        assert!(output.status.success(), "{arguments:?} {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// What is typed, with Enter behind it.
    fn types(&self, text: &str) {
        self.tmux(&["send-keys", "-l", text]);
        self.tmux(&["send-keys", "Enter"]);
    }

    fn dlq(&self, arguments: &str) {
        // Each with an end of its own: what is still on the screen from the one before is no answer.
        self.commands.set(self.commands.get() + 1);
        let (dlq, nth) = (env!("CARGO_BIN_EXE_dlq"), self.commands.get());
        self.types(&format!("clear; {dlq} {arguments}; echo \"command {nth} ended with $?\""));
    }

    /// The screen, with its colours.
    fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-e"])
    }

    fn ends(&self, code: i32) -> String {
        self.shows(&format!("command {} ended with {code}", self.commands.get()))
    }

    fn shows(&self, text: &str) -> String {
        until(&format!("`{text}` on the screen:\n{}", self.screen()), || self.screen().contains(text));
        self.screen()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ended = Command::new("tmux").arg("-S").arg(&self.socket).arg("kill-server").status();
    }
}

/// The line with the title.
fn titled(screen: &str) -> &str {
    screen.lines().find(|line| line.contains("OWED")).unwrap()
}

#[test]
fn in_a_real_terminal() {
    let bench = Bench::with(30);
    let script = bench.script("job", "until test -e go; do sleep 0.01; done; echo x >> done").display().to_string();
    let terminal = Terminal::new(&bench);

    terminal.dlq("");
    let screen = terminal.ends(0);
    assert!(titled(&screen).contains("1m") && screen.contains("30 parked"), "no colour:\n{screen}");

    terminal.dlq("list --limit 3");
    let screen = terminal.ends(0);
    assert!(screen.contains("3 of 30 matching"), "{screen}");

    terminal.types("export NO_COLOR=1");
    terminal.dlq("");
    let screen = terminal.ends(0);
    assert!(!titled(&screen).contains("1m"), "colour in spite of NO_COLOR:\n{screen}");

    terminal.dlq("discard --all");
    terminal.shows("Type 30 to go on:");
    terminal.types("yes");
    terminal.shows("nothing was done");
    terminal.ends(1);

    terminal.dlq(&format!("replay --all --execute --exec {script}"));
    terminal.shows("Type 30 to go on:");
    terminal.types("30");
    // The bar, with its rate and what is left.
    let screen = terminal.shows("of 30");
    assert!(screen.contains("/s") && screen.contains("left"), "{screen}");
    terminal.tmux(&["send-keys", "C-c"]);
    terminal.shows("pausing");
    until("the pause", || bench.json(&["ops"])["operations"][0]["status"] == "paused");
    std::fs::write(bench.path("go"), "").unwrap();
    let screen = terminal.ends(130);
    assert!(screen.contains("1 recovered") && screen.contains("to go on: dlq replay --resume"), "{screen}");
    // Ctrl-C in the terminal was not for the job under way.
    assert_eq!(std::fs::read_to_string(bench.path("done")).unwrap(), "x\n");
    assert_eq!((bench.count("recovered"), bench.count("parked")), (1, 29));
}

// What is wrong stands on top when the editor opens again, and a short yes is one.
#[test]
fn an_editor_opens_again_with_what_was_wrong() {
    let bench = Bench::with(1);
    bench.script(
        "editor",
        "if test -e again; then cp \"$1\" again; echo '{\"page\":7}' > \"$1\"; else touch again; echo '{oops' > \"$1\"; fi",
    );
    let terminal = Terminal::new(&bench);
    terminal.types("export EDITOR=./editor");
    terminal.dlq("edit page-0");
    terminal.shows("Type yes to go on:");
    terminal.types("y");
    let screen = terminal.ends(0);
    assert!(screen.contains("saved as revision 2"), "{screen}");
    let again = std::fs::read_to_string(bench.path("again")).unwrap();
    assert!(again.starts_with("# ") && again.contains("is not JSON") && again.ends_with("\n{oops"), "{again}");
}
