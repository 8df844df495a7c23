import { mkdir, readdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { CaissonError } from "../../contract/error/error.ts";
import { parseRequest } from "../../contract/error/parse-request.ts";
import type { SecretConfig } from "../../contract/network/network.ts";
import { SecretName, SecretView, SetSecret } from "../../contract/secret/secret-verbs.ts";
import { LOCAL_OWNER, Owner } from "../../contract/token/owner.ts";
import { defined } from "../../lib/defined.ts";
import { ABSENT, ifErrno, jsonOrNull, UNREACHABLE } from "../../lib/failures.ts";
import { randomLetters } from "../../lib/new-id.ts";
import { readRegularFile } from "../../lib/read-regular-file.ts";
import { secretFault } from "../../network/secrets/secret-fault.ts";
import type { SecretVerbs } from "../../verbs/secrets.ts";

const SECRETS_PER_OWNER_MAX = 1000;
const RECORD_BYTES_MAX = 128 * 1024;
const RECORD = ".json";

const SecretRecord = SecretView.extend({ version: z.literal(1) });
type SecretRecord = z.infer<typeof SecretRecord>;

export interface LocalSecrets extends SecretVerbs {
  /** Returns an owner's secrets for a sandbox: each names the file with its value. */
  configs(owner: string): Promise<Record<string, SecretConfig>>;
}

/**
 * Stores secrets in the state folder: for each a record that may be shown and, in a separate file, the value. Networks
 * read the value when they need it, like any secret file.
 */
export function createLocalSecrets(options: { stateDir: string; now?: () => number }): LocalSecrets {
  const base = join(options.stateDir, "secrets");
  const now = options.now ?? Date.now;
  const folderOf = (owner: string) => join(base, parseRequest(Owner, owner, "an owner"));
  const recordsOf = async (owner: string): Promise<SecretRecord[]> => {
    const names = (await ifErrno(readdir(folderOf(owner)), ABSENT, [])).filter((name) => name.endsWith(RECORD));
    const read = await Promise.all(names.map((name) => readRecord(join(folderOf(owner), name))));
    return read.filter((record) => record !== null && record.owner === owner) as SecretRecord[];
  };
  return {
    async set(rawName, request, { owner = LOCAL_OWNER } = {}) {
      const name = parseRequest(SecretName, rawName, "a secret's name");
      const { value, ...scope } = parseRequest(SetSecret, request, "a secret");
      const fault = secretFault(value);
      if (fault !== null) throw new CaissonError("invalid", `the secret ${name} cannot be stored: ${fault}`);
      const records = await recordsOf(owner);
      const before = records.find((record) => record.name === name);
      if (before === undefined && records.length >= SECRETS_PER_OWNER_MAX) {
        throw new CaissonError("busy", `there are ${SECRETS_PER_OWNER_MAX} secrets already`, { hint: "Remove some: caisson secret rm" });
      }
      const at = new Date(now()).toISOString();
      const record = SecretRecord.parse({ version: 1, name, owner, ...scope, createdAt: before?.createdAt ?? at, updatedAt: at });
      const folder = folderOf(owner);
      await mkdir(folder, { recursive: true, mode: 0o700 });
      // The old record's scope must not apply to the new value, so until both files are written there is no secret.
      if (before !== undefined) await rm(join(folder, `${name}${RECORD}`), { force: true });
      await keep(valueFile(folder, name), value);
      await keep(join(folder, `${name}${RECORD}`), `${JSON.stringify(record)}\n`);
      return viewOf(record);
    },
    async list({ owner } = {}) {
      const owners = owner === undefined ? await ifErrno(readdir(base), ABSENT, []) : [owner];
      const known = owners.filter((each) => Owner.safeParse(each).success);
      const found = (await Promise.all(known.map(recordsOf))).flat().map(viewOf);
      return found.sort((left, right) => left.name.localeCompare(right.name) || left.owner.localeCompare(right.owner));
    },
    async remove(rawName, { owner = LOCAL_OWNER } = {}) {
      const name = parseRequest(SecretName, rawName, "a secret's name");
      if (!(await recordsOf(owner)).some((record) => record.name === name)) {
        throw new CaissonError("not_found", `there is no secret ${name}`, { hint: "`caisson secret ls` lists them." });
      }
      const folder = folderOf(owner);
      await rm(join(folder, `${name}${RECORD}`), { force: true });
      await rm(valueFile(folder, name), { force: true });
    },
    async configs(owner) {
      const records = await recordsOf(owner);
      return Object.fromEntries(records.map((record) => [record.name, configOf(record, valueFile(folderOf(owner), record.name))]));
    },
  };
}

const valueFile = (folder: string, name: string) => join(folder, `${name}.value`);

function configOf({ hosts, ports, header, methods, paths, git }: SecretRecord, file: string): SecretConfig {
  return { from: { file }, hosts, ports, ...defined({ header, methods, paths, git }) };
}

function viewOf({ version: _, ...view }: SecretRecord): SecretView {
  return view;
}

/** Writes a file atomically, readable only by this user. */
async function keep(file: string, text: string): Promise<void> {
  const fresh = `${file}.${randomLetters(8)}.new`;
  try {
    await writeFile(fresh, text, { mode: 0o600, flag: "wx", flush: true });
    await rename(fresh, file);
  } catch (error) {
    await rm(fresh, { force: true });
    throw error;
  }
}

/** Reads a record. Returns null if it is damaged, or if another user could have written it. */
async function readRecord(file: string): Promise<SecretRecord | null> {
  const found = await ifErrno(readRegularFile(file, { bytesMax: RECORD_BYTES_MAX }), UNREACHABLE, null);
  if (found === null || typeof found === "string") return null;
  if ((found.mode & 0o077) !== 0 || (process.getuid !== undefined && found.uid !== process.getuid())) return null;
  const parsed = SecretRecord.safeParse(jsonOrNull(found.bytes.toString("utf8")));
  return parsed.success ? parsed.data : null;
}
