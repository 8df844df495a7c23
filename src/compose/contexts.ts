import { randomUUID } from "node:crypto";
import { mkdir, open, rename, rm } from "node:fs/promises";
import { isIPv4 } from "node:net";
import { z } from "zod";
import type { ContextControl } from "../cli/context-control.ts";
import { CaissonError } from "../contract/error/error.ts";
import { checkValue, tellProblems } from "../contract/error/plain-problems.ts";
import { ChosenName } from "../contract/ids.ts";
import { defined } from "../lib/defined.ts";
import { isErrno, jsonOrNull } from "../lib/failures.ts";
import { readRegularFile } from "../lib/read-regular-file.ts";
import { contextsFile, type Variables } from "./environment.ts";

const FILE_BYTES_MAX = 1024 * 1024;
const CA_BYTES_MAX = 1024 * 1024;
const CONTEXTS_MAX = 1000;
/** How long a station may take to answer the first check. */
const CHECK_MS = 15_000;
/**
 * The reserved context name for this machine: commands use its station if one is running, and otherwise work without
 * one.
 */
const THIS_MACHINE = "local";

const StoredContext = z.strictObject({
  url: z.string().min(1).max(2048),
  token: z
    .string()
    .regex(/^[\x21-\x7e]{1,1024}$/, "is not a token")
    .optional(),
  /** Absolute path. These certificates are trusted in addition to, or instead of, the system's. */
  caFile: z.string().min(1).max(4096).optional(),
  /** Whether the token may be sent unencrypted. */
  insecure: z.boolean().default(false),
});
const StoredContexts = z.strictObject({
  version: z.literal(1),
  current: ChosenName.nullable(),
  contexts: z.record(ChosenName, StoredContext),
});
type StoredContexts = z.infer<typeof StoredContexts>;

/** The station that a command uses. */
export type StationChoice =
  /** Work in this process, even if a station is running. */
  | { kind: "none" }
  /** The station of this machine that listens on the state folder's socket, if there is one. */
  | { kind: "local" }
  | { kind: "address"; url: string; token: string | undefined; ca: string | undefined; context: string | null };

/**
 * Chooses the station for a command: `--no-station`, then `--context`, then `CAISSON_URL`, then `CAISSON_CONTEXT`, then
 * the current context, then this machine's. Throws `not_found` if the context does not exist, `invalid` for an invalid
 * address, `denied` if other users can read or write the file of contexts.
 */
export async function chooseStation(options: {
  configDir: string;
  variables: Variables;
  noStation?: boolean;
  context?: string;
}): Promise<StationChoice> {
  const { variables } = options;
  if (options.noStation === true) return { kind: "none" };
  const contextName = options.context;
  const url = unsetIfEmpty(variables.CAISSON_URL);
  if (contextName === undefined && url !== undefined) {
    const token = unsetIfEmpty(variables.CAISSON_TOKEN);
    return {
      kind: "address",
      url: checkStationUrl(url, { insecure: unsetIfEmpty(variables.CAISSON_INSECURE) === "1", source: "CAISSON_URL" }),
      token,
      ca: await certificates(unsetIfEmpty(variables.CAISSON_CA_FILE)),
      context: null,
    };
  }
  const stored = await readContexts(options.configDir);
  const name = contextName ?? unsetIfEmpty(variables.CAISSON_CONTEXT) ?? stored.current ?? THIS_MACHINE;
  if (name === THIS_MACHINE) return { kind: "local" };
  const found = contextNamed(name, stored);
  return {
    kind: "address",
    url: checkStationUrl(found.url, { insecure: found.insecure, source: `the context ${name}` }),
    token: found.token,
    ca: await certificates(found.caFile),
    context: name,
  };
}

/** Treats an empty variable as unset. */
const unsetIfEmpty = (text: string | undefined) => (text === undefined || text === "" ? undefined : text);

/** The contexts of a user, in one file that only this user can access. */
export function createContexts({ configDir }: { configDir: string }): ContextControl {
  const change = async (work: (stored: StoredContexts) => StoredContexts) =>
    await writeContexts(configDir, work(await readContexts(configDir)));
  return {
    async list() {
      const { current, contexts } = await readContexts(configDir);
      const named = Object.entries(contexts).map(([name, context]) => toContextView(name, context));
      return { current: current ?? THIS_MACHINE, contexts: named.sort((a, b) => (a.name < b.name ? -1 : 1)) };
    },
    async save(name, context, { replace, use }) {
      checkName(name);
      checkStationUrl(context.url, { insecure: context.insecure, source: `the context ${name}` });
      await certificates(context.caFile);
      await change((stored) => {
        if (!replace && Object.hasOwn(stored.contexts, name)) {
          throw new CaissonError("exists", `the context ${name} already exists`, {
            hint: `Remove it with \`caisson context rm ${name}\`.`,
          });
        }
        const contexts = { ...stored.contexts, [name]: context };
        if (Object.keys(contexts).length > CONTEXTS_MAX) throw new CaissonError("too_large", `there are already ${CONTEXTS_MAX} contexts`);
        return { ...stored, contexts, current: use ? name : stored.current };
      });
    },
    async use(name) {
      await change((stored) => {
        if (name !== THIS_MACHINE) contextNamed(name, stored);
        return { ...stored, current: name === THIS_MACHINE ? null : name };
      });
    },
    async show(name) {
      const stored = await readContexts(configDir);
      return toContextView(name, contextNamed(name, stored));
    },
    async remove(name) {
      await change((stored) => {
        contextNamed(name, stored);
        const { [name]: _, ...contexts } = stored.contexts;
        return { ...stored, contexts, current: stored.current === name ? null : stored.current };
      });
    },
    async check({ url, token, caFile, insecure }) {
      const ca = await certificates(caFile);
      const [{ connect }, { tlsFetch }] = await Promise.all([import("../client/connect.ts"), import("../client/tls-fetch.ts")]);
      const station = connect({
        url: checkStationUrl(url, { insecure, source: "the address" }),
        ...defined({ token, fetch: ca === undefined ? undefined : tlsFetch({ ca }) }),
      });
      const { version } = await station.status({ signal: AbortSignal.timeout(CHECK_MS) });
      return { version };
    },
    async forgetToken(name) {
      await change((stored) => {
        const { token: _, ...context } = contextNamed(name, stored);
        return { ...stored, contexts: { ...stored.contexts, [name]: context } };
      });
    },
  };
}

function toContextView(name: string, { token, ...context }: z.infer<typeof StoredContext>) {
  return { name, ...context, caFile: context.caFile ?? null, hasToken: token !== undefined };
}

function contextNamed(name: string, { contexts }: StoredContexts): z.infer<typeof StoredContext> {
  const found = Object.hasOwn(contexts, name) ? contexts[name] : undefined;
  if (found !== undefined) return found;
  throw new CaissonError("not_found", `there is no context ${JSON.stringify(name.slice(0, 80))}`, {
    hint: "List them with `caisson context ls`, or create one with `caisson login URL`.",
  });
}

function checkName(name: string): void {
  const parsed = checkValue(ChosenName, name);
  if (!parsed.success) throw new CaissonError("invalid", `the context name ${tellProblems(parsed.problems)}`);
  if (name === THIS_MACHINE)
    throw new CaissonError("invalid", `${THIS_MACHINE} is reserved for this machine's own station`, { hint: "Choose another name." });
}

/**
 * Checks an address that a token may be sent to: by HTTPS, or to this machine itself. Returns its origin. Throws
 * `invalid`, or `denied` if the token would be sent unencrypted.
 */
export function checkStationUrl(text: string, { insecure, source }: { insecure: boolean; source: string }): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  const isPlain =
    url !== null && url.username === "" && url.password === "" && url.search === "" && url.hash === "" && url.pathname === "/";
  if (url === null || !/^https?:$/.test(url.protocol) || !isPlain) {
    throw new CaissonError("invalid", `${source}: ${JSON.stringify(text.slice(0, 200))} is not a station's address`, {
      hint: "Use an address such as https://station.example.org or http://127.0.0.1:7433.",
    });
  }
  if (url.protocol === "http:" && !isThisMachine(url.hostname) && !insecure) {
    throw new CaissonError("denied", `${source}: the token would be sent to ${url.host} unencrypted`, {
      hint: "Use https, or a tunnel to this machine. To send it anyway, use --insecure (CAISSON_INSECURE=1).",
    });
  }
  return url.origin;
}

const isThisMachine = (host: string) =>
  host === "localhost" || host.endsWith(".localhost") || host === "[::1]" || (isIPv4(host) && host.startsWith("127."));

async function certificates(file: string | undefined): Promise<string | undefined> {
  if (file === undefined) return undefined;
  const read = await readRegularFile(file, { bytesMax: CA_BYTES_MAX }).catch((cause: unknown) => {
    throw new CaissonError("invalid", `the certificates ${file} cannot be read`, { cause });
  });
  const text = typeof read === "string" ? "" : read.bytes.toString("latin1");
  if (text.includes("-----BEGIN CERTIFICATE-----")) return text;
  throw new CaissonError("invalid", `${file} contains no certificate`, { hint: "Use a file in PEM format." });
}

async function readContexts(configDir: string): Promise<StoredContexts> {
  const file = contextsFile(configDir);
  const read = await readRegularFile(file, { bytesMax: FILE_BYTES_MAX }).catch((error: unknown) => {
    if (isErrno(error, "ENOENT") || isErrno(error, "ENOTDIR")) return null;
    throw new CaissonError("denied", `the contexts in ${file} cannot be read`, { cause: error });
  });
  if (read === null) return { version: 1, current: null, contexts: {} };
  if (typeof read === "string") throw new CaissonError("invalid", `the contexts in ${file} are ${read}`);
  // A user who can write the file decides where our folders are sent; one who can read it can act as us at every
  // station.
  if ((read.mode & 0o077) !== 0 || (process.getuid !== undefined && read.uid !== process.getuid())) {
    throw new CaissonError("denied", `other users have access to the contexts in ${file}`, {
      hint: `The file contains tokens. Run chmod 600 ${file}, and check its owner.`,
    });
  }
  const parsed = checkValue(StoredContexts, jsonOrNull(read.bytes.toString("utf8")));
  if (parsed.success) return parsed.data;
  throw new CaissonError("invalid", `the contexts in ${file} are damaged: ${tellProblems(parsed.problems)}`, {
    hint: `Fix or remove ${file}.`,
  });
}

/** Writes the file atomically. */
async function writeContexts(configDir: string, stored: StoredContexts): Promise<void> {
  await mkdir(configDir, { recursive: true, mode: 0o700 });
  const file = contextsFile(configDir);
  const part = `${file}.part-${randomUUID()}`;
  try {
    await using handle = await open(part, "wx", 0o600);
    await handle.writeFile(`${JSON.stringify(stored, null, 1)}\n`);
    await handle.sync();
    await rename(part, file);
  } catch (error) {
    await rm(part, { force: true });
    throw error;
  }
}
