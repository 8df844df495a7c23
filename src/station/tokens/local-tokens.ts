import { createHash, timingSafeEqual } from "node:crypto";
import { lstatSync, renameSync, rmSync } from "node:fs";
import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { CaissonError } from "../../contract/error/error.ts";
import { parseRequest } from "../../contract/error/parse-request.ts";
import { CreateToken, type NewToken, RotateToken, TokenId, TokenView } from "../../contract/token/token-verbs.ts";
import { ABSENT, ifErrno, jsonOrNull, UNREACHABLE } from "../../lib/failures.ts";
import { KnownFiles } from "../../lib/known-files.ts";
import { newId, randomLetters } from "../../lib/new-id.ts";
import { openPrivateDatabase } from "../../lib/private-database.ts";
import { readRegularFile } from "../../lib/read-regular-file.ts";
import type { TokenVerbs } from "../../verbs/tokens.ts";

/** Letters of five bits each. Such a secret cannot be guessed, so storing a plain hash is enough. */
const SECRET_LETTERS = 52;
const RECORD_BYTES_MAX = 4096;
const TOKENS_MAX = 1000;
/** How long we wait for another process to write its file. */
const LOCK_MS_MAX = 5_000;

const Hash = z.string().regex(/^[0-9a-f]{64}$/);
const TokenRecord = TokenView.extend({
  version: z.literal(1),
  hash: Hash,
  /** The hash of the previous secret, while it is still accepted. */
  previous: z.object({ hash: Hash, until: z.iso.datetime() }).optional(),
});
type TokenRecord = z.infer<typeof TokenRecord>;

export interface LocalTokens extends TokenVerbs {
  /** Returns the token if it is valid and has not expired; otherwise null. */
  authenticate(token: string): Promise<TokenView | null>;
}

/**
 * Stores tokens in the state folder, one file each. Any process can create and revoke them, with or without a running
 * station, and a station notices it on the next request.
 */
export function createLocalTokens(options: { stateDir: string; now?: () => number }): LocalTokens {
  const folder = join(options.stateDir, "tokens");
  const now = options.now ?? Date.now;
  const fileOf = (id: TokenId) => join(folder, `${id}.json`);
  const records = async (): Promise<TokenRecord[]> => {
    const names = (await ifErrno(readdir(folder), ABSENT, [])).filter((name) => name.endsWith(".json"));
    const read = await Promise.all(names.map((name) => readRecord(join(folder, name))));
    return read.filter((record) => record !== null).sort((left, right) => left.name.localeCompare(right.name));
  };
  const find = async (token: string): Promise<TokenRecord> => {
    const record = (await records()).find(({ id, name }) => id === token || name === token);
    if (record !== undefined) return record;
    throw noToken(token);
  };
  const known = new KnownFiles<TokenRecord | null>({ max: TOKENS_MAX });
  /** This runs for every request. It costs one stat call, unless the file was replaced or changed. */
  const knownRecord = (id: TokenId) => known.get(fileOf(id), () => readRecord(fileOf(id)));
  const hasPassed = (time: string) => Date.parse(time) <= now();
  return {
    async create(input) {
      const request = parseRequest(CreateToken, input, "a token");
      const before = await records();
      if (before.some(({ name }) => name === request.name)) {
        throw new CaissonError("exists", `there is already a token named ${request.name}`, {
          hint: "Choose another name, or revoke that token: caisson token rm",
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
    async rotate(token, input = {}) {
      const { graceMs } = parseRequest(RotateToken, input, "a rotation");
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
      const hash = hashOf(token.slice(at + 1));
      const { previous } = record;
      const isPrevious = previous !== undefined && !hasPassed(previous.until) && isSame(previous.hash, hash);
      if (!isSame(record.hash, hash) && !isPrevious) return null;
      return record.expiresAt !== null && hasPassed(record.expiresAt) ? null : viewOf(record);
    },
  };
}

/**
 * Writes a record atomically, readable only by this user, and only if the file still has this mark: of two concurrent
 * changes only one succeeds, and neither restores a revoked token. Throws `conflict`.
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
 * Runs `work` while no other process changes the folder. The lock is an empty database, because the system releases it
 * when a process dies. `work` is synchronous, so this process never waits for itself.
 */
async function alone(folder: string, work: () => void): Promise<void> {
  using lock = openPrivateDatabase(join(folder, ".lock"), { timeout: LOCK_MS_MAX });
  lock.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
  work();
}

const noToken = (token: string) =>
  new CaissonError("not_found", `there is no token ${JSON.stringify(token)}`, { hint: "`caisson token ls` lists them." });

const wasChanged = ({ name }: TokenRecord) =>
  new CaissonError("conflict", `the token ${name} was rotated or revoked by another process at the same time`, {
    hint: "Check whether it still exists (`caisson token ls`), and rotate it again if necessary.",
  });

/** Reads a record. Returns null if it is damaged, or if another user could have written it. */
async function readRecord(file: string): Promise<TokenRecord | null> {
  const found = await ifErrno(readRegularFile(file, { bytesMax: RECORD_BYTES_MAX }), UNREACHABLE, null);
  if (found === null || typeof found === "string") return null;
  if ((found.mode & 0o077) !== 0 || (process.getuid !== undefined && found.uid !== process.getuid())) return null;
  const parsed = TokenRecord.safeParse(jsonOrNull(found.bytes.toString("utf8")));
  return parsed.success ? parsed.data : null;
}

/** Returns a mark that changes whenever the file is replaced or modified; null if the file does not exist. */
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
