/** Plain SQL, so that the same tables serve PostgreSQL. `sum` chains each row to the one before: a lost or changed row shows. */
export const SCHEMA_VERSION = 1;

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
