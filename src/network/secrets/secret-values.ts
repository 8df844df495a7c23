import { isAbsolute } from "node:path";
import { CaissonError } from "../../contract/error/error.ts";
import type { SecretConfig } from "../../contract/network/network.ts";
import type { ReadSecretFile, RunSecretCommand } from "./secret-book.ts";
import { secretFault } from "./secret-fault.ts";
import { secretUnavailable } from "./secret-unavailable.ts";

interface SecretValuesOptions {
  configs: Readonly<Record<string, SecretConfig>>;
  env: Readonly<Record<string, string | undefined>>;
  readFile: ReadSecretFile;
  runCommand: RunSecretCommand;
  warn: (text: string) => void;
  now: () => number;
}

/** The values of secrets, fetched on first use and kept only in memory. */
export interface SecretValues {
  /** Throws `denied` with the reason `secret_unavailable`. */
  get(name: string): Promise<string>;
  /** Returns the newest known value, or one that is available without waiting, or null. */
  peek(name: string): string | null;
  /** Returns the known values, newest first. Answers may still contain a value that was changed since. */
  known(name: string): readonly string[];
  /** Changes with each new value. */
  version(): number;
}

const SOURCE_BYTES_MAX = 65_536;
const COMMAND_TIMEOUT_MS = 30_000;
/** Files and commands are read again after this time, so that a changed value is used. */
const VALUE_KEPT_MS = 60_000;
/** How long we remember a failure, so that we do not ask a failing source for every request. */
const FAILURE_KEPT_MS = 5_000;
const KNOWN_MAX = 4;

interface Fetched {
  outcome: Promise<string>;
  /** When the value expires; null while it is being fetched. */
  until: number | null;
}

export function createSecretValues(options: SecretValuesOptions): SecretValues {
  const { configs, now } = options;
  const fetched = new Map<string, Fetched>();
  const known = new Map<string, string[]>();
  let version = 0;
  const warned = new Set<string>();
  const warnOnce = (text: string) => {
    if (!warned.has(text)) options.warn(text);
    warned.add(text);
  };
  const learn = (name: string, value: string) => {
    const before = known.get(name) ?? [];
    if (before[0] === value) return;
    known.set(name, [value, ...before.filter((other) => other !== value)].slice(0, KNOWN_MAX));
    version += 1;
  };
  const start = (name: string, config: SecretConfig): Fetched => {
    const entry: Fetched = { until: null, outcome: fetchValue(name, config, { ...options, warn: warnOnce }) };
    entry.outcome = entry.outcome.then(
      (value) => {
        entry.until = variableOf(name, config) !== null ? Number.POSITIVE_INFINITY : now() + VALUE_KEPT_MS;
        learn(name, value);
        return value;
      },
      (error: unknown) => {
        entry.until = now() + FAILURE_KEPT_MS;
        throw error;
      },
    );
    return entry;
  };
  return {
    get(name) {
      const config = Object.hasOwn(configs, name) ? configs[name] : undefined;
      if (config === undefined) return Promise.reject(secretUnavailable(name, "there is no such secret"));
      let entry = fetched.get(name);
      if (entry === undefined || (entry.until !== null && entry.until <= now())) {
        entry = start(name, config);
        fetched.set(name, entry);
      }
      return entry.outcome;
    },
    peek(name) {
      const config = Object.hasOwn(configs, name) ? configs[name] : undefined;
      const variable = config === undefined ? null : variableOf(name, config);
      const value =
        known.get(name)?.[0] ?? (variable === null || !Object.hasOwn(options.env, variable) ? null : options.env[variable]) ?? null;
      return value === null || secretFault(value) !== null ? null : value;
    },
    known: (name) => known.get(name) ?? [],
    version: () => version,
  };
}

function variableOf(name: string, { from }: SecretConfig): string | null {
  if (from === "env") return name;
  return "env" in from ? from.env : null;
}

async function fetchValue(name: string, config: SecretConfig, options: SecretValuesOptions): Promise<string> {
  const variable = variableOf(name, config);
  const { from } = config;
  let value: string;
  if (variable !== null) value = fromEnv(name, variable, options);
  else if (typeof from === "object" && "file" in from) value = withoutLineEnd(await fromFile(name, from.file, options));
  else if (typeof from === "object" && "command" in from) value = withoutLineEnd(await fromCommand(name, from.command, options));
  else throw secretUnavailable(name, "its source is unknown");
  const fault = secretFault(value);
  if (fault !== null) throw secretUnavailable(name, fault);
  return value;
}

function fromEnv(name: string, variable: string, { env, warn }: SecretValuesOptions): string {
  const value = Object.hasOwn(env, variable) ? env[variable] : undefined;
  if (value !== undefined) return value;
  warn(`secret ${name}: the variable ${variable} is not set`);
  throw secretUnavailable(name, "its variable is not set on the host");
}

async function fromFile(name: string, path: string, { readFile, warn }: SecretValuesOptions): Promise<string> {
  try {
    // A process that serves the sandbox later has a different working directory.
    if (!isAbsolute(path)) throw new CaissonError("invalid", "its path is not absolute");
    const { text, mode } = await readFile(path, { bytesMax: SOURCE_BYTES_MAX });
    if ((mode & 0o077) !== 0) warn(`secret ${name}: users other than its owner can read the file ${path}; run chmod 600 to prevent that`);
    return text;
  } catch (error) {
    const why = safeReason(error);
    warn(`secret ${name}: the file ${path} cannot be read: ${why}`);
    throw secretUnavailable(name, `its file on the host cannot be read: ${why}`);
  }
}

async function fromCommand(name: string, argv: readonly string[], { runCommand, warn }: SecretValuesOptions): Promise<string> {
  const { promise: tooLate, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new CaissonError("timeout", "it took too long")), COMMAND_TIMEOUT_MS);
  try {
    const output = await Promise.race([runCommand(argv, { timeoutMs: COMMAND_TIMEOUT_MS, bytesMax: SOURCE_BYTES_MAX }), tooLate]);
    if (output.length > SOURCE_BYTES_MAX) throw new CaissonError("too_large", `its output exceeds ${SOURCE_BYTES_MAX} bytes`);
    return output;
  } catch (error) {
    const why = safeReason(error);
    warn(`secret ${name}: the command ${argv[0] ?? ""} failed: ${why}`);
    throw secretUnavailable(name, `its command on the host failed: ${why}`);
  } finally {
    clearTimeout(timer);
  }
}

/** Returns our own message, or the code of a foreign error, whose text could quote a command's output. */
function safeReason(error: unknown): string {
  if (error instanceof CaissonError) return error.message;
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (typeof code === "number") return `exit ${code}`;
  return typeof code === "string" && /^[A-Z_]{1,40}$/.test(code) ? code : "no reason was given";
}

function withoutLineEnd(text: string): string {
  return text.replace(/\r?\n$/, "");
}
