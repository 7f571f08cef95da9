-- Schema 1. Never edited after its first release: later changes are migrations of their own.
-- All times are integer milliseconds since the Unix epoch, UTC; the views show seconds.

CREATE TABLE meta(
  key   TEXT NOT NULL PRIMARY KEY,
  value ANY
) STRICT, WITHOUT ROWID;

-- One row per (scope, kind, job id), whatever its state.
CREATE TABLE letter(
  seq                 INTEGER PRIMARY KEY AUTOINCREMENT,  -- keyset paging; never reused
  id                  TEXT NOT NULL UNIQUE,               -- UUIDv7
  scope               TEXT NOT NULL,
  kind                TEXT NOT NULL,                      -- the operation's name
  job_id              TEXT NOT NULL,
  model               TEXT,
  state               TEXT NOT NULL CHECK(state IN('parked','replaying','recovered','discarded','abandoned')),
  -- the newest failure
  reason              TEXT NOT NULL,
  disposition         TEXT NOT NULL CHECK(disposition IN('retryable','permanent','gone','unknown')),
  class               TEXT,
  code                INTEGER,
  error_class         TEXT NOT NULL,
  error_type          TEXT NOT NULL,
  error_message       TEXT NOT NULL,
  fingerprint         TEXT NOT NULL,
  fingerprint_version INTEGER NOT NULL,
  -- counts
  parkings            INTEGER NOT NULL DEFAULT 1 CHECK(parkings >= 1),
  attempts            INTEGER NOT NULL DEFAULT 0 CHECK(attempts >= 0),
  replays             INTEGER NOT NULL DEFAULT 0 CHECK(replays >= 0),
  crashes             INTEGER NOT NULL DEFAULT 0 CHECK(crashes >= 0),
  max_replays         INTEGER NOT NULL CHECK(max_replays >= 0),  -- compared with `replays`; raised, never reset
  max_crashes         INTEGER NOT NULL CHECK(max_crashes >= 0),  -- compared with `crashes`
  failed_again        INTEGER NOT NULL DEFAULT 0 CHECK(failed_again IN(0, 1)),
  -- the lease
  fence               INTEGER NOT NULL DEFAULT 0,
  owner               TEXT,
  lease_until         INTEGER,
  -- times
  not_before          INTEGER NOT NULL DEFAULT 0,         -- a server asked for it; 0: nobody did
  replay_after        INTEGER NOT NULL DEFAULT 0,         -- the back-off of standing workers; 0: none
  first_seen          INTEGER NOT NULL,
  last_seen           INTEGER NOT NULL,
  parked_at           INTEGER NOT NULL,
  closed_at           INTEGER,
  closed_by           TEXT,
  closed_reason       TEXT,
  -- the payload
  payload_revision    INTEGER NOT NULL DEFAULT 0 CHECK(payload_revision >= 0),  -- 0: none stored
  payload_size        INTEGER,                            -- of that revision, before encoding
  payload_altered     INTEGER NOT NULL DEFAULT 0 CHECK(payload_altered IN(0, 1)),
  payload_error       TEXT,                               -- how serialising it failed
  sequence_key        TEXT,
  writer              TEXT NOT NULL,
  CHECK((state = 'replaying') = (lease_until IS NOT NULL)),
  CHECK((state = 'replaying') = (owner IS NOT NULL)),
  CHECK((state IN('recovered','discarded','abandoned')) = (closed_at IS NOT NULL))
) STRICT;

-- The job before the kind: a job is also looked for by its id alone.
CREATE UNIQUE INDEX letter_job ON letter(scope, job_id, kind);
-- Standing workers and replays take the letters of one kind that are due longest.
CREATE INDEX letter_claim ON letter(scope, kind, not_before, seq) WHERE state = 'parked';
CREATE INDEX letter_lease ON letter(lease_until) WHERE state = 'replaying';
-- Lists, page by page. (Every index ends in seq, the row's own number.)
CREATE INDEX letter_seen ON letter(state, last_seen);
-- Covers the counts over groups: the letters themselves are not read.
CREATE INDEX letter_group ON letter(state, fingerprint, error_class, kind, scope, first_seen, last_seen, attempts);

-- How many letters there are of each sort, kept by the triggers below, so that a summary never scans.
CREATE TABLE tally(
  scope       TEXT NOT NULL,
  state       TEXT NOT NULL,
  kind        TEXT NOT NULL,
  error_class TEXT NOT NULL,
  n           INTEGER NOT NULL,
  PRIMARY KEY(scope, state, kind, error_class)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER letter_tally_insert AFTER INSERT ON letter BEGIN
  INSERT INTO tally(scope, state, kind, error_class, n) VALUES(new.scope, new.state, new.kind, new.error_class, 1)
    ON CONFLICT(scope, state, kind, error_class) DO UPDATE SET n = n + 1;
END;

CREATE TRIGGER letter_tally_update AFTER UPDATE OF scope, state, kind, error_class ON letter
WHEN old.state <> new.state OR old.error_class <> new.error_class OR old.kind <> new.kind OR old.scope <> new.scope
BEGIN
  UPDATE tally SET n = n - 1
    WHERE scope = old.scope AND state = old.state AND kind = old.kind AND error_class = old.error_class;
  INSERT INTO tally(scope, state, kind, error_class, n) VALUES(new.scope, new.state, new.kind, new.error_class, 1)
    ON CONFLICT(scope, state, kind, error_class) DO UPDATE SET n = n + 1;
END;

CREATE TRIGGER letter_tally_delete AFTER DELETE ON letter BEGIN
  UPDATE tally SET n = n - 1
    WHERE scope = old.scope AND state = old.state AND kind = old.kind AND error_class = old.error_class;
END;

-- Every payload a letter ever had; replay uses the newest revision.
CREATE TABLE payload(
  seq        INTEGER NOT NULL REFERENCES letter(seq) ON DELETE CASCADE,
  revision   INTEGER NOT NULL CHECK(revision >= 1),
  encoding   TEXT NOT NULL,           -- 'json': `bytes` is the JSON text
  size       INTEGER NOT NULL,        -- bytes before encoding
  bytes      BLOB,
  blob       TEXT,                    -- the name of a file beside the database, for what is too large for a row
  sha256     BLOB NOT NULL,           -- of the bytes before encoding
  source     TEXT NOT NULL,           -- 'park', 'edit', 'import'
  actor      TEXT,
  created_at INTEGER NOT NULL,
  PRIMARY KEY(seq, revision),
  CHECK((bytes IS NULL) <> (blob IS NULL))
) STRICT;

-- Every parking that was ever taken. Those of pruned letters stay, so that a late line is known.
CREATE TABLE parking(
  park_id   TEXT NOT NULL PRIMARY KEY,  -- UUIDv7
  seq       INTEGER NOT NULL,
  letter_id TEXT NOT NULL,              -- the answer that was given
  reason    TEXT NOT NULL,
  attempts  INTEGER NOT NULL,
  failed_at INTEGER NOT NULL,
  taken_at  INTEGER NOT NULL,
  origin    TEXT NOT NULL,              -- 'live', 'spill', 'import'
  writer    TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- The history: one row per failed attempt that a parking, a replay or a crash reported.
CREATE TABLE attempt(
  id      INTEGER PRIMARY KEY,
  seq     INTEGER NOT NULL REFERENCES letter(seq) ON DELETE CASCADE,
  park_id TEXT,                         -- of a live call's attempt
  fence   INTEGER,                      -- of a replay's attempt
  outcome TEXT NOT NULL CHECK(outcome IN('failed','succeeded','gone','crashed')),
  late    INTEGER NOT NULL DEFAULT 0 CHECK(late IN(0, 1)),
  number  INTEGER NOT NULL,
  at      INTEGER NOT NULL,
  took_us INTEGER NOT NULL,
  class   TEXT,
  code    INTEGER,
  message TEXT,
  wait_ms INTEGER
) STRICT;
CREATE INDEX attempt_letter ON attempt(seq);

-- What happened to letters and to the store, append-only.
CREATE TABLE event(
  id     INTEGER PRIMARY KEY,
  seq    INTEGER,                       -- NULL: about the store
  at     INTEGER NOT NULL,
  what   TEXT NOT NULL,
  actor  TEXT,
  reason TEXT,
  op_id  TEXT,
  before TEXT,
  after  TEXT,
  detail TEXT
) STRICT;
CREATE INDEX event_letter ON event(seq) WHERE seq IS NOT NULL;

-- Processes that hold leases, renewed by their store's thread.
CREATE TABLE owner(
  id          TEXT NOT NULL PRIMARY KEY,
  description TEXT NOT NULL,
  started_at  INTEGER NOT NULL,
  seen_at     INTEGER NOT NULL,
  lease_until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Jobs written down before their first attempt, removed on success.
CREATE TABLE journal(
  park_id      TEXT NOT NULL PRIMARY KEY,
  scope        TEXT NOT NULL,
  kind         TEXT NOT NULL,
  job_id       TEXT,
  model        TEXT,
  sequence_key TEXT,
  owner        TEXT NOT NULL,
  accepted_at  INTEGER NOT NULL,
  encoding     TEXT,
  size         INTEGER,
  bytes        BLOB,
  blob         TEXT,
  sha256       BLOB
) STRICT;
CREATE INDEX journal_owner ON journal(owner);

-- Durable bulk operations with frozen members.
CREATE TABLE op(
  id          TEXT NOT NULL PRIMARY KEY,
  verb        TEXT NOT NULL,
  status      TEXT NOT NULL CHECK(status IN('pending','running','paused','done','cancelled','failed')),
  filter      TEXT NOT NULL,
  filter_hash TEXT NOT NULL,
  options     TEXT NOT NULL DEFAULT '{}',
  cutoff_seq  INTEGER NOT NULL,
  actor       TEXT NOT NULL,
  reason      TEXT NOT NULL,
  fence       INTEGER NOT NULL DEFAULT 0,
  runner      TEXT,
  lease_until INTEGER,
  canary      INTEGER,
  rate        REAL,
  concurrency INTEGER,
  stop_ratio  REAL,
  stop_after  INTEGER,
  note        TEXT,
  created_at  INTEGER NOT NULL,
  updated_at  INTEGER NOT NULL,
  finished_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE op_item(
  op_id    TEXT NOT NULL,
  seq      INTEGER NOT NULL,
  revision INTEGER NOT NULL,
  outcome  TEXT NOT NULL DEFAULT 'pending',
  detail   TEXT,
  at       INTEGER,
  PRIMARY KEY(op_id, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX op_item_outcome ON op_item(op_id, outcome, seq);

CREATE TABLE group_note(
  id                  INTEGER PRIMARY KEY,
  fingerprint         TEXT NOT NULL,
  fingerprint_version INTEGER NOT NULL,
  note                TEXT NOT NULL,
  actor               TEXT NOT NULL,
  at                  INTEGER NOT NULL
) STRICT;
CREATE INDEX group_note_group ON group_note(fingerprint, at);

-- Parkings per hour, for trends.
CREATE TABLE arrival(
  hour  INTEGER NOT NULL,               -- hours since the epoch
  scope TEXT NOT NULL,
  kind  TEXT NOT NULL,
  class TEXT NOT NULL,                  -- the error class
  n     INTEGER NOT NULL,
  PRIMARY KEY(hour, scope, kind, class)
) STRICT, WITHOUT ROWID;

CREATE TABLE ledger(
  scope      TEXT NOT NULL,
  key        TEXT NOT NULL,
  status     TEXT NOT NULL CHECK(status IN('open','ok','gone')),
  attempts   INTEGER NOT NULL CHECK(attempts >= 0),
  next_at    INTEGER NOT NULL DEFAULT 0,  -- 0: at any time
  generation INTEGER NOT NULL DEFAULT 0,  -- raised by each reset
  first_seen INTEGER NOT NULL,
  last_seen  INTEGER NOT NULL,
  PRIMARY KEY(scope, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE daily(
  day       TEXT NOT NULL,              -- YYYY-MM-DD, UTC
  operation TEXT NOT NULL,
  counter   TEXT NOT NULL,
  value     INTEGER NOT NULL,
  PRIMARY KEY(day, operation, counter)
) STRICT, WITHOUT ROWID;

-- What retention removed.
CREATE TABLE pruned(
  day   TEXT NOT NULL,
  scope TEXT NOT NULL,
  state TEXT NOT NULL,
  kind  TEXT NOT NULL,
  class TEXT NOT NULL,
  n     INTEGER NOT NULL,
  PRIMARY KEY(day, scope, state, kind, class)
) STRICT, WITHOUT ROWID;

-- The public face: these three views do not change when the tables do.

CREATE VIEW dead_letter AS
SELECT l.job_id,
       l.kind,
       CASE WHEN p.encoding = 'json' AND p.bytes IS NOT NULL THEN CAST(p.bytes AS TEXT) END AS payload_json,
       l.model,
       l.error_class,
       l.error_message,
       l.attempts,
       l.state              AS status,
       l.first_seen / 1000.0 AS first_seen,
       l.last_seen / 1000.0  AS last_seen,
       l.id                 AS letter_id,
       l.scope,
       l.reason,
       l.closed_at / 1000.0  AS closed_at,
       p.size               AS payload_size,
       p.encoding           AS payload_encoding
  FROM letter l LEFT JOIN payload p ON p.seq = l.seq AND p.revision = l.payload_revision;

CREATE VIEW attempt_ledger AS
SELECT key, scope, status, attempts, first_seen / 1000.0 AS first_seen, last_seen / 1000.0 AS last_seen
  FROM ledger;

CREATE VIEW daily_stats AS
SELECT day, operation, counter, value FROM daily;
