/**
 * Plain SQL, so that the same tables serve PostgreSQL. `sum` chains each row to the one before: a lost or changed row
 * shows.
 */
export const SCHEMA_VERSION = 4;

export const schema = `
CREATE TABLE IF NOT EXISTS streams (
  stream     TEXT PRIMARY KEY,
  last_seq   INTEGER NOT NULL,
  last_sum   INTEGER NOT NULL,
  at         TEXT NOT NULL,
  epoch      INTEGER NOT NULL,
  owner      TEXT,
  expires_at INTEGER
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS streams_by_time ON streams (at);
CREATE TABLE IF NOT EXISTS events (
  stream  TEXT NOT NULL,
  seq     INTEGER NOT NULL,
  type    TEXT NOT NULL,
  version INTEGER NOT NULL,
  at      TEXT NOT NULL,
  data    TEXT NOT NULL,
  sum     INTEGER NOT NULL,
  PRIMARY KEY (stream, seq)
) WITHOUT ROWID;
`;

/**
 * What came with version 2. A lease runs out by the clock of the boot it was taken in (`boot`, `expires_ticks`);
 * `expires_at` stays for people, for older versions of Caisson, and for another boot. `heads` has what each stream has
 * come to: it can be made again from the events at any time. It has row ids and no index: an append writes one page
 * more for it, not three, and a list reads it whole.
 */
export const schemaSince2 = `
ALTER TABLE streams ADD COLUMN boot TEXT;
ALTER TABLE streams ADD COLUMN expires_ticks INTEGER;
CREATE TABLE heads (
  stream  TEXT PRIMARY KEY,
  seq     INTEGER NOT NULL,
  version INTEGER NOT NULL,
  open    INTEGER NOT NULL,
  head    TEXT NOT NULL,
  damage  TEXT
);
`;

/**
 * What came with version 3: the order of all appends, over all streams, for those who follow more than one. One row for
 * each append, written by triggers, so that also a process of an older Caisson that has the log open leaves nothing
 * out. What was there before has one row for each stream, in the order of their last events.
 */
export const schemaSince3 = `
CREATE TABLE feed (
  position INTEGER PRIMARY KEY,
  stream   TEXT NOT NULL,
  from_seq INTEGER NOT NULL,
  to_seq   INTEGER NOT NULL
);
INSERT INTO feed SELECT sum(last_seq) OVER (ORDER BY at, stream), stream, 1, last_seq FROM streams WHERE last_seq > 0;
CREATE TRIGGER streams_begun AFTER INSERT ON streams WHEN NEW.last_seq > 0 BEGIN
  INSERT INTO feed VALUES ((SELECT coalesce(max(position), 0) FROM feed) + NEW.last_seq, NEW.stream, 1, NEW.last_seq);
END;
CREATE TRIGGER streams_grown AFTER UPDATE OF last_seq ON streams WHEN NEW.last_seq > OLD.last_seq BEGIN
  INSERT INTO feed VALUES (
    (SELECT coalesce(max(position), 0) FROM feed) + NEW.last_seq - OLD.last_seq, NEW.stream, OLD.last_seq + 1, NEW.last_seq
  );
END;
`;

/**
 * What came with version 4: what closed streams are found by (`head_terms`, and in `heads` which those of a stream
 * are), and which heads have to be made again (`stale_heads`). A head is written before the stream's own row; where it
 * was not, by a process of an older Caisson, a trigger says so, and nobody has to look at all of them to know.
 */
export const schemaSince4 = `
ALTER TABLE heads ADD COLUMN terms TEXT;
CREATE INDEX heads_open ON heads (stream) WHERE open = 1;
CREATE TABLE head_terms (
  term   TEXT NOT NULL,
  at     TEXT NOT NULL,
  stream TEXT NOT NULL,
  PRIMARY KEY (term, at, stream)
) WITHOUT ROWID;
CREATE TABLE projections (prefix TEXT PRIMARY KEY, version INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE stale_heads (stream TEXT PRIMARY KEY) WITHOUT ROWID;
INSERT INTO stale_heads SELECT stream FROM streams WHERE last_seq > 0;
CREATE TRIGGER heads_missed AFTER INSERT ON streams
WHEN NEW.last_seq > 0 AND NOT EXISTS (SELECT 1 FROM heads h WHERE h.stream = NEW.stream AND h.seq = NEW.last_seq)
  AND EXISTS (SELECT 1 FROM projections p WHERE substr(NEW.stream, 1, length(p.prefix)) = p.prefix)
BEGIN
  INSERT INTO stale_heads SELECT NEW.stream WHERE NOT EXISTS (SELECT 1 FROM stale_heads WHERE stream = NEW.stream);
END;
CREATE TRIGGER heads_behind AFTER UPDATE OF last_seq ON streams
WHEN NEW.last_seq > OLD.last_seq AND NOT EXISTS (SELECT 1 FROM heads h WHERE h.stream = NEW.stream AND h.seq = NEW.last_seq)
  AND EXISTS (SELECT 1 FROM projections p WHERE substr(NEW.stream, 1, length(p.prefix)) = p.prefix)
BEGIN
  INSERT INTO stale_heads SELECT NEW.stream WHERE NOT EXISTS (SELECT 1 FROM stale_heads WHERE stream = NEW.stream);
END;
`;
