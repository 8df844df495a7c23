import { randomUUID } from "node:crypto";
import { mkdir, open, rename, rm } from "node:fs/promises";
import { isIPv4 } from "node:net";
import { z } from "zod";
import type { ContextControl } from "../cli/context-control.ts";
import { CaissonError } from "../contract/error.ts";
import { ChosenName } from "../contract/ids.ts";
import { checkValue, tellProblems } from "../contract/plain-problems.ts";
import { defined } from "../lib/defined.ts";
import { isErrno } from "../lib/is-errno.ts";
import { jsonOrNull } from "../lib/json-or-null.ts";
import { readRegularFile } from "../lib/read-regular-file.ts";
import { contextsFile, type Variables } from "./environment.ts";

const FILE_BYTES_MAX = 1024 * 1024;
const CA_BYTES_MAX = 1024 * 1024;
const CONTEXTS_MAX = 1000;
/** How long a station has to answer who asks for the first time. */
const CHECK_MS = 15_000;
/** Stands for this machine: its station where one runs, none otherwise. Nobody can give it to another. */
const THIS_MACHINE = "local";

const StoredContext = z.strictObject({
  url: z.string().min(1).max(2048),
  token: z
    .string()
    .regex(/^[\x21-\x7e]{1,1024}$/, "is not a token")
    .optional(),
  /** Absolute: certificates that are trusted besides, or instead of, the system's. */
  caFile: z.string().min(1).max(4096).optional(),
  /** Whether the token may go over the network in the clear. */
  insecure: z.boolean().default(false),
});
const StoredContexts = z.strictObject({
  version: z.literal(1),
  current: ChosenName.nullable(),
  contexts: z.record(ChosenName, StoredContext),
});
type StoredContexts = z.infer<typeof StoredContexts>;

/** Where a command's station is. */
export type StationChoice =
  /** In this process, whatever else runs. */
  | { kind: "none" }
  /** The one of this machine that listens on the state folder's socket, where there is one. */
  | { kind: "local" }
  | { kind: "address"; url: string; token: string | undefined; ca: string | undefined; context: string | null };

/**
 * Which station a command works with: `--no-station`, then `--context`, then `CAISSON_URL`, then `CAISSON_CONTEXT`,
 * then the current context, then this machine's. Throws `not_found` for a context that is not there, `invalid` for an
 * address that is none, `denied` where the file of contexts is anybody else's to read or write.
 */
export async function chooseStation(options: {
  configDir: string;
  variables: Variables;
  noStation?: boolean;
  context?: string;
}): Promise<StationChoice> {
  const { variables } = options;
  if (options.noStation === true) return { kind: "none" };
  const given = options.context;
  const url = filled(variables.CAISSON_URL);
  if (given === undefined && url !== undefined) {
    const token = filled(variables.CAISSON_TOKEN);
    return {
      kind: "address",
      url: checkStationUrl(url, { insecure: filled(variables.CAISSON_INSECURE) === "1", told: "CAISSON_URL" }),
      token,
      ca: await certificates(filled(variables.CAISSON_CA_FILE)),
      context: null,
    };
  }
  const stored = await readContexts(options.configDir);
  const name = given ?? filled(variables.CAISSON_CONTEXT) ?? stored.current ?? THIS_MACHINE;
  if (name === THIS_MACHINE) return { kind: "local" };
  const found = contextNamed(name, stored);
  return {
    kind: "address",
    url: checkStationUrl(found.url, { insecure: found.insecure, told: `the context ${name}` }),
    token: found.token,
    ca: await certificates(found.caFile),
    context: name,
  };
}

/** Empty is as good as not set. */
const filled = (text: string | undefined) => (text === undefined || text === "" ? undefined : text);

/** The contexts of a user, in one file that is theirs alone. */
export function createContexts({ configDir }: { configDir: string }): ContextControl {
  const change = async (work: (stored: StoredContexts) => StoredContexts) =>
    await writeContexts(configDir, work(await readContexts(configDir)));
  return {
    async list() {
      const { current, contexts } = await readContexts(configDir);
      const named = Object.entries(contexts).map(([name, context]) => shown(name, context));
      return { current: current ?? THIS_MACHINE, contexts: named.sort((a, b) => (a.name < b.name ? -1 : 1)) };
    },
    async save(name, context, { replace, use }) {
      checkName(name);
      checkStationUrl(context.url, { insecure: context.insecure, told: `the context ${name}` });
      await certificates(context.caFile);
      await change((stored) => {
        if (!replace && Object.hasOwn(stored.contexts, name)) {
          throw new CaissonError("exists", `there is a context ${name} already`, { hint: `\`caisson context rm ${name}\` removes it.` });
        }
        const contexts = { ...stored.contexts, [name]: context };
        if (Object.keys(contexts).length > CONTEXTS_MAX) throw new CaissonError("too_large", `there are ${CONTEXTS_MAX} contexts already`);
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
      return shown(name, contextNamed(name, stored));
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
        url: checkStationUrl(url, { insecure, told: "the address" }),
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

function shown(name: string, { token, ...context }: z.infer<typeof StoredContext>) {
  return { name, ...context, caFile: context.caFile ?? null, hasToken: token !== undefined };
}

function contextNamed(name: string, { contexts }: StoredContexts): z.infer<typeof StoredContext> {
  const found = Object.hasOwn(contexts, name) ? contexts[name] : undefined;
  if (found !== undefined) return found;
  throw new CaissonError("not_found", `there is no context ${JSON.stringify(name.slice(0, 80))}`, {
    hint: "`caisson context ls` lists them; `caisson login URL` makes one.",
  });
}

function checkName(name: string): void {
  const parsed = checkValue(ChosenName, name);
  if (!parsed.success) throw new CaissonError("invalid", `the name of a context ${tellProblems(parsed.problems)}`);
  if (name === THIS_MACHINE)
    throw new CaissonError("invalid", `${THIS_MACHINE} stands for this machine's own station`, { hint: "Choose another name." });
}

/**
 * An address that a token may be sent to: by HTTPS, or to this machine itself. Resolves without its final slash. Throws
 * `invalid`, `denied` for one over which the token would go in the clear.
 */
export function checkStationUrl(text: string, { insecure, told }: { insecure: boolean; told: string }): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  const isPlain =
    url !== null && url.username === "" && url.password === "" && url.search === "" && url.hash === "" && url.pathname === "/";
  if (url === null || !/^https?:$/.test(url.protocol) || !isPlain) {
    throw new CaissonError("invalid", `${told}: ${JSON.stringify(text.slice(0, 200))} is not a station's address`, {
      hint: "An address looks like https://station.example.org or http://127.0.0.1:7433.",
    });
  }
  if (url.protocol === "http:" && !isThisMachine(url.hostname) && !insecure) {
    throw new CaissonError("denied", `${told}: the token would go to ${url.host} in the clear`, {
      hint: "Use https, or a tunnel to this machine; --insecure (CAISSON_INSECURE=1) sends it all the same.",
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
  throw new CaissonError("invalid", `${file} holds no certificate`, { hint: "It must be in PEM form." });
}

async function readContexts(configDir: string): Promise<StoredContexts> {
  const file = contextsFile(configDir);
  const read = await readRegularFile(file, { bytesMax: FILE_BYTES_MAX }).catch((error: unknown) => {
    if (isErrno(error, "ENOENT") || isErrno(error, "ENOTDIR")) return null;
    throw new CaissonError("denied", `the contexts in ${file} cannot be read`, { cause: error });
  });
  if (read === null) return { version: 1, current: null, contexts: {} };
  if (typeof read === "string") throw new CaissonError("invalid", `the contexts in ${file} are ${read}`);
  // Whoever can write it decides where our folders go; whoever can read it is us to every station in it.
  if ((read.mode & 0o077) !== 0 || (process.getuid !== undefined && read.uid !== process.getuid())) {
    throw new CaissonError("denied", `the contexts in ${file} are not yours alone`, {
      hint: `They hold tokens: chmod 600 ${file}, and see whose it is.`,
    });
  }
  const parsed = checkValue(StoredContexts, jsonOrNull(read.bytes.toString("utf8")));
  if (parsed.success) return parsed.data;
  throw new CaissonError("invalid", `the contexts in ${file} are damaged: ${tellProblems(parsed.problems)}`, {
    hint: `Fix or remove ${file}.`,
  });
}

/** At once or not at all. */
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
