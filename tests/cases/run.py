#!/usr/bin/env python3
"""Compile (and run) the macro cases against a checkout of the project.

usage: run.py PROJECT [--cases DIR] [--only SUBSTRING] [--keep]

DIR holds pass/*.rs and fail/*.rs (default: beside this script). Each file's header says what it is:
  // source: where the fault was seen; what: what must hold
  // editions: 2021 2024      editions to try (default 2024)
  // level: core | decision | hard | stretch     core must all hold
  // expect: A | B            (fail) each line: one of the alternatives stands in the error text, letter case aside
  // errors: N or <=N         (fail) how many errors the compiler reports
  // no-primary-on-attribute  (fail) no error's primary span lies on the #[retry(..)] attribute
  //~ HERE on a line          (fail) the first error's primary span touches that line
DIR may hold built/*.rs as well: they are as fail/*.rs, but refused when they are built, not when they are checked; a file
NAME.stderr beside NAME.rs is then all that the compiler says, word by word (written anew where OVERWRITE is set).
A pass case compiles without a warning it denies, and runs to exit 0 within 20 s. Exit status 0 when every core case holds.
CASES_DIR, when set, is a directory that is kept: what was built there is used again the next time.
The last line reads: cases: core N/M, others N/M
"""
import argparse, json, os, re, shutil, subprocess, sys, tempfile
from pathlib import Path

ap = argparse.ArgumentParser()
ap.add_argument("project")
ap.add_argument("--cases", default=str(Path(__file__).resolve().parent))
ap.add_argument("--only", default="")
ap.add_argument("--keep", action="store_true")
args = ap.parse_args()
project, root = Path(args.project).resolve(), Path(args.cases)


def header(text):
    h = {"editions": ["2024"], "level": "core", "expect": [], "errors": None, "flags": set()}
    for line in text.splitlines():
        m = re.match(r"// ([a-z-]+)(?:: (.*))?$", line)
        if not line.startswith("//"):
            break
        if not m:
            continue
        key, value = m.group(1), (m.group(2) or "").strip()
        if key == "editions":
            h["editions"] = value.split()
        elif key == "level":
            h["level"] = value.split()[0]
        elif key == "expect":
            h["expect"].append([v.strip() for v in value.split(" | ")])
        elif key == "errors":
            h["errors"] = value
        elif key == "no-primary-on-attribute":
            h["flags"].add(key)
    return h


def cases(kind):
    return [p for p in sorted((root / kind).glob("*.rs")) if args.only in p.name]


def package(dir, edition, files):
    dir.mkdir(parents=True, exist_ok=True)
    (dir / "Cargo.toml").write_text(
        f'''[package]
name = "cases-{dir.name}"
version = "0.0.0"
edition = "{edition}"
autobins = false
publish = false
[workspace]
[profile.dev]
debug = false
[dependencies]
retry-runtime = {{ path = "{project}/retry-runtime", features = ["stores"] }}
tokio = {{ version = "1", features = ["full", "test-util"] }}
async-trait = "0.1"
thiserror = "2"
anyhow = "1"
futures = "0.3"
tracing = {{ version = "0.1", default-features = false, features = ["std", "attributes"] }}
'''
        + "".join(f'[[bin]]\nname = "c{f.stem}"\npath = "{f}"\n' for f in files)
    )
    # the versions that the project was tested with
    if (project / "Cargo.lock").exists() and not (dir / "Cargo.lock").exists():
        shutil.copy(project / "Cargo.lock", dir)


def cargo(dir, verb):
    """Run cargo over all bins; returns {stem: [compiler messages]}, and the set of stems built."""
    env = dict(os.environ, CARGO_TARGET_DIR=str(scratch / "target"), CARGO_TERM_COLOR="never")
    p = subprocess.run(["cargo", verb, "--bins", "--keep-going", "--quiet", "--message-format=json"], cwd=dir, env=env,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    said, built = {}, {}
    for line in p.stdout.splitlines():
        try:
            m = json.loads(line)
        except ValueError:
            continue
        name = m.get("target", {}).get("name", "")[1:]
        if m.get("reason") == "compiler-message" and "bin" in m["target"]["kind"]:
            said.setdefault(name, []).append(m["message"])
        elif m.get("reason") == "compiler-artifact" and m.get("executable"):
            built[name] = m["executable"]
    if p.returncode and not said:
        sys.exit("cargo failed before any case was compiled:\n" + p.stderr[-3000:])
    return said, built


def errors(messages):
    return [m for m in messages if m["level"] in ("error", "error: internal compiler error") and not m["message"].startswith("aborting due")]


def judge_pass(f, h, said, built, clippy):
    bad = errors(said.get(f.stem, [])) + errors(clippy.get(f.stem, []))
    if bad:
        return "does not compile: " + bad[0]["message"].splitlines()[0]
    exe = built.get(f.stem)
    if not exe:
        return "was not built"
    try:
        p = subprocess.run([exe], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=20)
    except subprocess.TimeoutExpired:
        return "did not end within 20 s"
    return "" if p.returncode == 0 else f"exit {p.returncode}: " + (p.stdout.strip().splitlines() or ["no output"])[-1][:200]


def judge_fail(f, h, said, kind):
    bad = errors(said.get(f.stem, []))
    if not bad:
        return "compiles, and must not"
    # the rendered text quotes source lines, so words must come from the messages, labels and suggestions
    words = []
    def gather(m):
        words.append(m["message"])
        words.extend(w for s in m["spans"] for w in (s["label"], s["suggested_replacement"]) if w)
        for c in m.get("children", []):
            gather(c)
    for m in bad:
        gather(m)
        if m.get("code"):
            words.append(m["code"]["code"])
    said_text = "\n".join(words).lower()
    # a constant that says no is a panic while compiling
    if "panicked" in said_text and kind == "fail":
        return "the macro panicked"
    for alternatives in h["expect"]:
        if not any(a.lower() in said_text for a in alternatives):
            return f"says nothing of {' or '.join(alternatives)!r}: " + bad[0]["message"].splitlines()[0][:160]
    if h["errors"]:
        n, limit = len(bad), int(h["errors"].lstrip("<="))
        if (n > limit) if h["errors"].startswith("<=") else (n != limit):
            return f"{n} errors, wanted {h['errors']}: " + " / ".join(m["message"].splitlines()[0][:70] for m in bad[:4])
    source = f.read_text().splitlines()
    here = [i + 1 for i, l in enumerate(source) if "//~ HERE" in l]
    if here:
        primary = [s for m in bad for s in m["spans"] if s["is_primary"]]
        if not any(s["line_start"] <= l <= s["line_end"] and s["line_end"] - s["line_start"] <= 3 for s in primary for l in here):
            return f"points at lines {sorted({s['line_start'] for s in primary})}, not at {here}"
    if "no-primary-on-attribute" in h["flags"]:
        for m in bad:
            for s in m["spans"]:
                if s["is_primary"] and "#[retry" in source[s["line_start"] - 1]:
                    return "points at the attribute"
    return ""


def judge_text(f, said):
    """Compares all that is said with the file beside the case, if there is one."""
    wanted = f.with_suffix(".stderr")
    if not wanted.exists():
        return ""
    text = "\n".join(m["rendered"] for m in errors(said.get(f.stem, [])))
    # where the sources lie, and at which line of ours: neither is the user's
    text = text.replace(str(f), f.name).replace(f"{project}/", "")
    text = re.sub(r"(--> (?:retry-runtime|retry-derive)/\S+?):\d+:\d+", r"\1", text)
    if os.environ.get("OVERWRITE"):
        wanted.write_text(text)
    return "" if text == wanted.read_text() else f"does not say what {wanted.name} says:\n{text}"


kept = os.environ.get("CASES_DIR")
scratch = Path(kept).resolve() if kept else Path(tempfile.mkdtemp(prefix="cases-"))
score = {"core": [0, 0], "others": [0, 0]}
for kind in ("pass", "fail", "built"):
    every = [(f, header(f.read_text())) for f in cases(kind)]
    for edition in sorted({e for _, h in every for e in h["editions"]}):
        mine = [(f, h) for f, h in every if edition in h["editions"]]
        if not mine:
            continue
        dir = scratch / f"{kind}{edition}"
        package(dir, edition, [f for f, _ in mine])
        said, built = cargo(dir, "check" if kind == "fail" else "build")
        clippy = cargo(dir, "clippy")[0] if kind == "pass" and any("clippy::" in f.read_text() for f, _ in mine) else {}
        clippy = {k: v for k, v in clippy.items() if "clippy::" in (root / kind / (k + ".rs")).read_text()}
        for f, h in mine:
            why = judge_pass(f, h, said, built, clippy) if kind == "pass" else judge_fail(f, h, said, kind) or judge_text(f, said)
            s = score["core" if h["level"] == "core" else "others"]
            s[1] += 1
            s[0] += not why
            if why:
                print(f"{kind}/{f.name} [{edition}, {h['level']}]: {why}")
if not (args.keep or kept):
    subprocess.run(["rm", "-rf", str(scratch)])
elif args.keep:
    print("kept:", scratch)
print("cases: core {}/{}, others {}/{}".format(*score["core"], *score["others"]))
sys.exit(0 if score["core"][0] == score["core"][1] and score["core"][1] else 1)
