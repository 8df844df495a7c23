import type { DatabaseSync } from "node:sqlite";
import type { OwnerView } from "../../contract/token/owner.ts";
import type { DeliveryView, WebhookId } from "../../contract/webhook/webhook-verbs.ts";
import { openMendedDatabase } from "../../lib/private-database.ts";

/** How many successful deliveries we keep for viewing, and how many dead ones for replay. */
const DELIVERED_KEPT = 100;
const DEAD_KEPT = 1000;

export interface WebhookRecord {
  id: WebhookId;
  name: string;
  url: string;
  events: string[];
  allowPrivate: boolean;
  view: OwnerView;
  secret: string;
  createdAt: string;
  paused: string | null;
  /** The position up to which all events are handled. */
  reached: number;
}

export interface Delivery extends Omit<DeliveryView, "id"> {
  position: number;
}

/**
 * Opens the database of webhooks and their deliveries. It is separate because it contains secrets, and because the
 * outcome of a delivery is not an event of a run. Several processes may use it at once.
 */
export function openWebhookStore(path: string, { onDamaged }: { onDamaged: (aside: string) => void }) {
  const mended = openMendedDatabase(path, { timeout: 5000, prepare, onDamaged });
  const { use } = mended;
  const toRecord = (row: unknown): WebhookRecord => {
    const { record, reached } = row as { record: string; reached: number };
    return { ...(JSON.parse(record) as WebhookRecord), reached };
  };
  const toDelivery = (row: unknown) => JSON.parse((row as { record: string }).record) as Delivery;
  const deliveryIn = (row: unknown): Delivery | null => (row === undefined ? null : toDelivery(row));
  return {
    all: (): WebhookRecord[] => use(({ all }) => all.all()).map(toRecord),
    /** Returns false if its owner already has a webhook with this name. */
    add: (record: WebhookRecord): boolean =>
      use(({ add }) => add.run(record.id, record.view.owner, record.name, JSON.stringify(record), record.reached)).changes > 0,
    change: (record: WebhookRecord) => void use(({ change }) => change.run(JSON.stringify(record), record.id)),
    remove: (id: WebhookId) => void use(({ remove }) => remove.run(id)),
    reach: (id: WebhookId, position: number) => void use(({ reach }) => reach.run(position, id)),
    count: (id: WebhookId, state: Delivery["state"]) => (use(({ count }) => count.get(id, state)) as { count: number }).count,
    deliveries: (id: WebhookId, state: Delivery["state"] | undefined, limit: number): Delivery[] =>
      use(({ deliveries }) => deliveries.all(id, state ?? null, state ?? null, limit)).map(toDelivery),
    delivery: (id: WebhookId, position: number) => deliveryIn(use(({ delivery }) => delivery.get(id, position))),
    /** Returns the delivery whose retry comes next, whenever that is. */
    nextRetry: (id: WebhookId) => deliveryIn(use(({ nextRetry }) => nextRetry.get(id))),
    /** Records the outcome of an attempt. For a new event, this also advances `reached`. */
    keep: (id: WebhookId, delivery: Delivery) => use((statements) => keepDelivery(statements, id, delivery)),
    close: () => mended.close(),
  };
}
export type WebhookStore = ReturnType<typeof openWebhookStore>;

function keepDelivery({ database, ...statements }: Statements, id: WebhookId, delivery: Delivery): void {
  const { position, state, nextAt } = delivery;
  database.exec("BEGIN IMMEDIATE");
  try {
    statements.keep.run(id, position, state, nextAt === null ? null : Date.parse(nextAt), JSON.stringify(delivery));
    statements.reach.run(position, id);
    if (state !== "retrying") statements.trim.run(id, state, id, state, state === "dead" ? DEAD_KEPT : DELIVERED_KEPT);
    database.exec("COMMIT");
  } catch (error) {
    database.exec("ROLLBACK");
    throw error;
  }
}

const SCHEMA_VERSION = 1;
const tables = `
  CREATE TABLE IF NOT EXISTS webhooks (
    id TEXT PRIMARY KEY, owner TEXT NOT NULL, name TEXT NOT NULL, record TEXT NOT NULL, reached INTEGER NOT NULL, UNIQUE (owner, name));
  CREATE TABLE IF NOT EXISTS deliveries (
    webhook TEXT NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE, position INTEGER NOT NULL, state TEXT NOT NULL,
    next_ms INTEGER, record TEXT NOT NULL, PRIMARY KEY (webhook, position)) WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS deliveries_by_state ON deliveries (webhook, state, next_ms);`;

/** Creates the tables. In the first version, names were unique per machine; now they are unique per owner. */
function makeTables(database: DatabaseSync): void {
  // Deliveries refer to webhooks, and must survive the rebuild of that table.
  database.exec("PRAGMA foreign_keys=OFF; BEGIN IMMEDIATE");
  try {
    const { user_version: version } = database.prepare("PRAGMA user_version").get() as { user_version: number };
    const isOld = version === 0 && database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'webhooks'").get() !== undefined;
    if (isOld) {
      database.exec(`CREATE TEMP TABLE webhooks_before AS SELECT * FROM main.webhooks; DROP TABLE main.webhooks; ${tables}
        INSERT INTO main.webhooks SELECT id, json_extract(record, '$.view.owner'), name, record, reached FROM webhooks_before;
        DROP TABLE temp.webhooks_before`);
    } else database.exec(tables);
    database.exec(`PRAGMA user_version=${SCHEMA_VERSION}; COMMIT`);
  } catch (error) {
    database.exec("ROLLBACK");
    throw error;
  }
  database.exec("PRAGMA foreign_keys=ON");
}

type Statements = ReturnType<typeof prepare>;

function prepare(database: DatabaseSync) {
  database.exec("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;");
  makeTables(database);
  return {
    database,
    all: database.prepare("SELECT record, reached FROM webhooks ORDER BY name, owner"),
    add: database.prepare(
      "INSERT INTO webhooks (id, owner, name, record, reached) VALUES (?, ?, ?, ?, ?) ON CONFLICT (owner, name) DO NOTHING",
    ),
    change: database.prepare("UPDATE webhooks SET record = ? WHERE id = ?"),
    remove: database.prepare("DELETE FROM webhooks WHERE id = ?"),
    reach: database.prepare("UPDATE webhooks SET reached = max(reached, ?) WHERE id = ?"),
    count: database.prepare("SELECT count(*) AS count FROM deliveries WHERE webhook = ? AND state = ?"),
    deliveries: database.prepare(
      "SELECT record FROM deliveries WHERE webhook = ? AND (? IS NULL OR state = ?) ORDER BY position DESC LIMIT ?",
    ),
    delivery: database.prepare("SELECT record FROM deliveries WHERE webhook = ? AND position = ?"),
    nextRetry: database.prepare("SELECT record FROM deliveries WHERE webhook = ? AND state = 'retrying' ORDER BY next_ms LIMIT 1"),
    keep: database.prepare(
      "INSERT INTO deliveries (webhook, position, state, next_ms, record) VALUES (?, ?, ?, ?, ?) ON CONFLICT (webhook, position) " +
        "DO UPDATE SET state = excluded.state, next_ms = excluded.next_ms, record = excluded.record",
    ),
    trim: database.prepare(
      "DELETE FROM deliveries WHERE webhook = ? AND state = ? AND position <= " +
        "(SELECT position FROM deliveries WHERE webhook = ? AND state = ? ORDER BY position DESC LIMIT 1 OFFSET ?)",
    ),
  };
}
