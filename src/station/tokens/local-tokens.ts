import { createHash, timingSafeEqual } from "node:crypto";
import { lstatSync, renameSync, rmSync } from "node:fs";
import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { CaissonError } from "../../contract/error.ts";
import { parseRequest } from "../../contract/parse-request.ts";
import { CreateToken, type NewToken, RotateToken, TokenId, TokenView } from "../../contract/token-verbs.ts";
import { jsonOrNull } from "../../lib/json-or-null.ts";
import { KnownFiles } from "../../lib/known-files.ts";
import { newId, randomLetters } from "../../lib/new-id.ts";
import { readRegularFile } from "../../lib/read-regular-file.ts";
import type { TokenVerbs } from "./verbs.ts";

/** Five bits each: nobody guesses it, so that a plain hash is enough to keep. */
const SECRET_LETTERS = 52;
const RECORD_BYTES_MAX = 4096;
const TOKENS_MAX = 1000;
/** How long another process may take to put one file in place. */
const LOCK_MS_MAX = 5_000;

const Hash = z.string().regex(/^[0-9a-f]{64}$/);
const TokenRecord = TokenView.extend({
  version: z.literal(1),
  hash: Hash,
  /** Of the secret before the last rotation, as long as that is still taken. */
  previous: z.object({ hash: Hash, until: z.iso.datetime() }).optional(),
});
type TokenRecord = z.infer<typeof TokenRecord>;

export interface LocalTokens extends TokenVerbs {
  /** The token that this is, if it is one and has not expired; otherwise null. */
  authenticate(token: string): Promise<TokenView | null>;
}

/**
 * Tokens in the state folder, a file each: they are made and revoked by any process, whether a station runs or not, and
 * a station sees it with the next look.
 */
export function createLocalTokens(options: { stateDir: string; now?: () => number }): LocalTokens {
  const folder = join(options.stateDir, "tokens");
  const now = options.now ?? Date.now;
  const fileOf = (id: TokenId) => join(folder, `${id}.json`);
  const records = async (): Promise<TokenRecord[]> => {
    const names = (await readdir(folder).catch(() => [] as string[])).filter((name) => name.endsWith(".json"));
    const read = await Promise.all(names.map((name) => readRecord(join(folder, name))));
    return read.filter((record) => record !== null).sort((left, right) => left.name.localeCompare(right.name));
  };
  const find = async (token: string): Promise<TokenRecord> => {
    const record = (await records()).find(({ id, name }) => id === token || name === token);
    if (record !== undefined) return record;
    throw noToken(token);
  };
  const known = new KnownFiles<TokenRecord | null>({ max: TOKENS_MAX });
  /** Every request asks, and one look at the file is all it costs, unless that is another or was changed. */
  const knownRecord = (id: TokenId) => known.get(fileOf(id), () => readRecord(fileOf(id)));
  const hasPassed = (time: string) => Date.parse(time) <= now();
  return {
    async create(given) {
      const request = parseRequest(CreateToken, given, "a token");
      const before = await records();
      if (before.some(({ name }) => name === request.name)) {
        throw new CaissonError("exists", `there is a token named ${request.name} already`, {
          hint: "Choose another name, or revoke that one: caisson token rm",
        });
      }
      if (before.length >= TOKENS_MAX) throw new CaissonError("busy", `there are ${TOKENS_MAX} tokens already`, { hint: "Revoke some." });
      const secret = randomLetters(SECRET_LETTERS);
      const record: TokenRecord = {
        version: 1,
        id: newId("tok"),
        name: request.name,
        scope: request.scope,
        owner: request.owner,
        createdAt: new Date(now()).toISOString(),
        expiresAt: request.expiresInMs === undefined ? null : new Date(now() + request.expiresInMs).toISOString(),
        hash: hashOf(secret),
      };
      await keep(record, { folder, file: fileOf(record.id), mark: null });
      return { ...viewOf(record), token: `${record.id}_${secret}` } satisfies NewToken;
    },
    list: async () => (await records()).map(viewOf),
    async revoke(token) {
      const record = await find(token);
      await alone(folder, () => rmSync(fileOf(record.id), { force: true }));
      return viewOf(record);
    },
    async rotate(token, given = {}) {
      const { graceMs } = parseRequest(RotateToken, given, "a rotation");
      const { id } = await find(token);
      const mark = markOf(fileOf(id));
      const found = await readRecord(fileOf(id));
      if (mark === null || found === null) throw noToken(token);
      const { previous: _, ...record } = found;
      const secret = randomLetters(SECRET_LETTERS);
      const previous = graceMs === 0 ? {} : { previous: { hash: record.hash, until: new Date(now() + graceMs).toISOString() } };
      await keep({ ...record, hash: hashOf(secret), ...previous }, { folder, file: fileOf(id), mark });
      return { ...viewOf(record), token: `${id}_${secret}` };
    },
    async authenticate(token) {
      const at = token.lastIndexOf("_");
      const id = TokenId.safeParse(token.slice(0, Math.max(at, 0)));
      if (!id.success) return null;
      const record = await knownRecord(id.data);
      if (record === null || record.id !== id.data) return null;
      const given = hashOf(token.slice(at + 1));
      const { previous } = record;
      const isPrevious = previous !== undefined && !hasPassed(previous.until) && isSame(previous.hash, given);
      if (!isSame(record.hash, given) && !isPrevious) return null;
      return record.expiresAt !== null && hasPassed(record.expiresAt) ? null : viewOf(record);
    },
  };
}

/**
 * Whole or not at all, for this user's eyes only, and in place of what has this mark alone: of two who change a token
 * at once one does, and none brings back what was revoked meanwhile. Throws `conflict`.
 */
async function keep(record: TokenRecord, { folder, file, mark }: { folder: string; file: string; mark: string | null }): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const fresh = join(folder, `.new-${randomLetters(8)}`);
  try {
    await writeFile(fresh, `${JSON.stringify(record)}\n`, { mode: 0o600, flag: "wx", flush: true });
    await alone(folder, () => {
      if (markOf(file) !== mark) throw wasChanged(record);
      renameSync(fresh, file);
    });
  } finally {
    await rm(fresh, { force: true });
  }
}

/**
 * Does it while no other process does anything here. An empty database is the lock, since the system lets go of it with
 * a process that dies; what is done is done at once, so that this process never waits for itself.
 */
async function alone(folder: string, work: () => void): Promise<void> {
  const { openPrivateDatabase } = await import("../../lib/private-database.ts");
  using lock = openPrivateDatabase(join(folder, ".lock"), { timeout: LOCK_MS_MAX });
  lock.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
  work();
}

const noToken = (token: string) =>
  new CaissonError("not_found", `there is no token ${JSON.stringify(token)}`, { hint: "`caisson token ls` lists them." });

const wasChanged = ({ name }: TokenRecord) =>
  new CaissonError("conflict", `the token ${name} was rotated or revoked by somebody else at the same time`, {
    hint: "Look whether it is there (`caisson token ls`), and rotate it again if that is still wanted.",
  });

/** Null for what is damaged, or could have been written by somebody else: that is no token. */
async function readRecord(file: string): Promise<TokenRecord | null> {
  const found = await readRegularFile(file, { bytesMax: RECORD_BYTES_MAX }).catch(() => null);
  if (found === null || typeof found === "string") return null;
  if ((found.mode & 0o077) !== 0 || (process.getuid !== undefined && found.uid !== process.getuid())) return null;
  const parsed = TokenRecord.safeParse(jsonOrNull(found.bytes.toString("utf8")));
  return parsed.success ? parsed.data : null;
}

/** Another one for another file, and for one that was changed in any way; null where there is none. */
function markOf(file: string): string | null {
  const found = lstatSync(file, { bigint: true, throwIfNoEntry: false });
  return found === undefined ? null : `${found.ino} ${found.ctimeNs} ${found.size}`;
}

function isSame(hash: string, other: string): boolean {
  return timingSafeEqual(Buffer.from(hash, "hex"), Buffer.from(other, "hex"));
}

function hashOf(secret: string): string {
  return createHash("sha256").update(secret).digest("hex");
}

function viewOf({ id, name, scope, owner, createdAt, expiresAt }: TokenRecord): TokenView {
  return { id, name, scope, owner, createdAt, expiresAt };
}
