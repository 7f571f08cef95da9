-- Schema 2: what operators need. Additive: a program of schema 1 goes on reading and writing such a file, and leaves the
-- new columns at their defaults.

-- Every list walks one index in its own order, at any depth: one state, and by at most one more column.
DROP INDEX letter_seen;
CREATE INDEX letter_seen ON letter(scope, state, last_seen);
CREATE INDEX letter_kind_seen ON letter(scope, kind, state, last_seen);
CREATE INDEX letter_class_seen ON letter(scope, class, state, last_seen) WHERE class IS NOT NULL;
CREATE INDEX letter_error_class_seen ON letter(scope, error_class, state, last_seen);
CREATE INDEX letter_fingerprint_seen ON letter(scope, fingerprint, state, last_seen);
CREATE INDEX letter_model_seen ON letter(scope, model, state, last_seen) WHERE model IS NOT NULL;
DROP INDEX letter_group;
CREATE INDEX letter_group ON letter(scope, state, fingerprint, error_class, kind, first_seen, last_seen, attempts);
-- Retention.
CREATE INDEX letter_closed ON letter(state, closed_at) WHERE closed_at IS NOT NULL;

-- A letter's history is bounded: what was cut out of its middle is counted.
ALTER TABLE letter ADD COLUMN history_entries INTEGER NOT NULL DEFAULT 0;
ALTER TABLE letter ADD COLUMN history_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE letter ADD COLUMN history_cut INTEGER NOT NULL DEFAULT 0;
ALTER TABLE letter ADD COLUMN history_cut_at INTEGER NOT NULL DEFAULT 0;  -- so many are kept from before the cut
UPDATE letter SET history_entries = (SELECT count(*) FROM attempt a WHERE a.seq = letter.seq),
                  history_bytes = (SELECT coalesce(sum(length(CAST(message AS BLOB))), 0) FROM attempt a WHERE a.seq = letter.seq);

-- Edits say why; files beside the database are kept as long as a row names them.
ALTER TABLE payload ADD COLUMN reason TEXT;
CREATE INDEX payload_blob ON payload(blob) WHERE blob IS NOT NULL;
CREATE INDEX journal_blob ON journal(blob) WHERE blob IS NOT NULL;

-- The parkings of a letter travel with it.
CREATE INDEX parking_letter ON parking(seq);

-- The audit of a part of the file: events say it themselves, since their letter may be gone. (NULL: of a program of
-- schema 1, or about the whole file.)
ALTER TABLE event ADD COLUMN scope TEXT;
-- What an operation did.
CREATE INDEX event_op ON event(op_id) WHERE op_id IS NOT NULL;

-- Operations belong to a part of the file, like letters.
ALTER TABLE op ADD COLUMN scope TEXT NOT NULL DEFAULT 'default';
CREATE INDEX op_scope ON op(scope, id);

-- Results, and failures among them, from which on the failure ratio and the ramp count.
ALTER TABLE op ADD COLUMN results_before INTEGER NOT NULL DEFAULT 0;
ALTER TABLE op ADD COLUMN failures_before INTEGER NOT NULL DEFAULT 0;

-- For which operation a letter is being replayed.
CREATE INDEX op_item_running ON op_item(seq) WHERE outcome = 'running';

-- How many members of an operation ended how, kept by the triggers below, so that progress never scans.
CREATE TABLE op_count(
  op_id   TEXT NOT NULL,
  outcome TEXT NOT NULL,
  n       INTEGER NOT NULL,
  PRIMARY KEY(op_id, outcome)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER op_item_insert AFTER INSERT ON op_item BEGIN
  INSERT INTO op_count(op_id, outcome, n) VALUES(new.op_id, new.outcome, 1)
    ON CONFLICT(op_id, outcome) DO UPDATE SET n = n + 1;
END;

CREATE TRIGGER op_item_update AFTER UPDATE OF outcome ON op_item WHEN old.outcome <> new.outcome BEGIN
  UPDATE op_count SET n = n - 1 WHERE op_id = old.op_id AND outcome = old.outcome;
  INSERT INTO op_count(op_id, outcome, n) VALUES(new.op_id, new.outcome, 1)
    ON CONFLICT(op_id, outcome) DO UPDATE SET n = n + 1;
END;

CREATE TRIGGER op_item_delete AFTER DELETE ON op_item BEGIN
  UPDATE op_count SET n = n - 1 WHERE op_id = old.op_id AND outcome = old.outcome;
END;

-- Parkings of a failure group per hour. (Those by class are in `arrival`.)
CREATE TABLE trend(
  scope       TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  hour        INTEGER NOT NULL,         -- hours since the epoch
  n           INTEGER NOT NULL,
  PRIMARY KEY(scope, fingerprint, hour)
) STRICT, WITHOUT ROWID;

-- The ledger page by page, by status.
CREATE INDEX ledger_status ON ledger(scope, status, key);

-- Notes belong to a part of the file, like letters.
ALTER TABLE group_note ADD COLUMN scope TEXT NOT NULL DEFAULT 'default';
DROP INDEX group_note_group;
CREATE INDEX group_note_group ON group_note(scope, fingerprint);

-- Above this value a day's counter is worth a look.
CREATE TABLE threshold(
  operation TEXT NOT NULL,
  counter   TEXT NOT NULL,
  above     INTEGER NOT NULL,
  actor     TEXT NOT NULL,
  at        INTEGER NOT NULL,
  PRIMARY KEY(operation, counter)
) STRICT, WITHOUT ROWID;
