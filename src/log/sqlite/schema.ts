/**
 * Plain SQL, so the same tables work in PostgreSQL. `sum` chains each row to the previous one, which reveals a lost or
 * changed row.
 */
export const SCHEMA_VERSION = 5;

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
 * Version 2. A lease expires by the clock of the boot it was taken in (`boot`, `expires_ticks`); `expires_at` is for
 * people, for older versions of Caisson, and for another boot. `heads` has the current state of each stream, and can be
 * rebuilt from the events at any time. It has row ids and no index, so an append writes one more page for it rather
 * than three, and a list reads the whole table.
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
 * Version 3. `feed` records the order of all appends over all streams, for subscribers to more than one. Triggers write
 * one row for each append, so it even includes appends by an older Caisson that has the log open. Earlier events get
 * one row per stream, in the order of their last events.
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
 * Version 4. `head_terms` indexes closed streams, and `heads` has the terms of each stream. `stale_heads` lists heads
 * to rebuild. A head is written before its stream's own row; if an older Caisson did not write one, a trigger marks it,
 * so no reader has to check all heads.
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

/**
 * Version 5. `inherited` lists the events that a stream has from others: rows `from_seq` to `to_seq` of `holder`, which
 * is never itself an heir of these rows. `sum` is the checksum of the last one. The feed has only a stream's own
 * events. The last trigger makes an older Caisson fail rather than delete events that a fork still needs.
 */
export const schemaSince5 = `
CREATE TABLE inherited (
  stream   TEXT NOT NULL,
  from_seq INTEGER NOT NULL,
  to_seq   INTEGER NOT NULL,
  holder   TEXT NOT NULL,
  sum      INTEGER NOT NULL,
  PRIMARY KEY (stream, from_seq)
) WITHOUT ROWID;
CREATE INDEX inherited_by_holder ON inherited (holder, to_seq);
DROP TRIGGER streams_begun;
DROP TRIGGER streams_grown;
CREATE TRIGGER streams_begun AFTER INSERT ON streams WHEN NEW.last_seq > 0 BEGIN
  INSERT INTO feed SELECT (SELECT coalesce(max(position), 0) FROM feed) + NEW.last_seq - own.before, NEW.stream, own.before + 1, NEW.last_seq
  FROM (SELECT coalesce(max(to_seq), 0) AS before FROM inherited WHERE stream = NEW.stream) own;
END;
CREATE TRIGGER streams_first AFTER UPDATE OF last_seq ON streams WHEN OLD.last_seq = 0 AND NEW.last_seq > 0 BEGIN
  INSERT INTO feed SELECT (SELECT coalesce(max(position), 0) FROM feed) + NEW.last_seq - own.before, NEW.stream, own.before + 1, NEW.last_seq
  FROM (SELECT coalesce(max(to_seq), 0) AS before FROM inherited WHERE stream = NEW.stream) own;
END;
CREATE TRIGGER streams_grown AFTER UPDATE OF last_seq ON streams WHEN OLD.last_seq > 0 AND NEW.last_seq > OLD.last_seq BEGIN
  INSERT INTO feed VALUES (
    (SELECT coalesce(max(position), 0) FROM feed) + NEW.last_seq - OLD.last_seq, NEW.stream, OLD.last_seq + 1, NEW.last_seq
  );
END;
CREATE TRIGGER events_inherited BEFORE DELETE ON events
WHEN EXISTS (SELECT 1 FROM inherited i WHERE i.holder = OLD.stream AND i.to_seq >= OLD.seq)
BEGIN
  SELECT RAISE(ABORT, 'a fork still needs these events');
END;
`;
