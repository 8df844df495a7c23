import { createHash, randomUUID } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { CaissonError } from "../contract/error/error.ts";
import { bootId } from "../lib/boot-id.ts";
import { ifErrnoSync, ignore, ignoring, jsonOrNull, UNREACHABLE } from "../lib/failures.ts";
import type { Finding, Probe, Runtime } from "./runtime.ts";
import type { RuntimeSet } from "./runtime-set.ts";

/** How long a probe's result is valid. If creating a sandbox fails, `forget` ends it earlier. */
const PROBE_VALID_MS = 60 * 60_000;
/** `auto` never picks host: only a person may choose no isolation, by name. */
const neverAutomatic: ReadonlySet<string> = new Set(["host", "fake"]);
/** Besides the kernel and the guest, these programs affect a probe's result. */
const programs = ["runc", "crun", "youki", "runsc", "newuidmap", "newgidmap", "dockerd", "podman"];

const CachedProbe = z.object({
  key: z.string(),
  at: z.number(),
  usable: z.boolean(),
  startMs: z.number().nullable(),
  isolation: z.number(),
});
const ProbeFile = z.record(z.string(), CachedProbe);
type CachedProbe = z.infer<typeof CachedProbe>;

/** A probe's result, and its cache entry. */
interface Proof {
  result: Probe;
  entry: CachedProbe;
}

export interface Resolver {
  /**
   * Resolves `auto` to the strongest runtime that a real probe proved, or else the fallback. Resolves a name to that
   * runtime, unprobed. Throws `invalid` for an unknown name, and `unavailable` with every runtime's fix if none is
   * usable.
   */
  resolve(name: string): Promise<Runtime>;
  /** Starts a real sandbox in the runtime and caches the result. */
  probe(name: string): Promise<Probe>;
  /** Clears the cache, for when a proven runtime fails. */
  forget(): Promise<void>;
}

export interface ResolverOptions {
  runtimes: RuntimeSet;
  stateDir: string;
  guestPath: string;
  /** The search path for programs, as in PATH. */
  path: string;
  /** Tried if `auto` finds nothing: a runtime that `auto` itself would not pick, such as a remote one. Never `host`. */
  fallbackRuntime?: string;
  now?: () => number;
}

export function createResolver(options: ResolverOptions): Resolver {
  const { runtimes, fallbackRuntime } = options;
  const now = options.now ?? Date.now;
  const file = join(options.stateDir, "probes.json");
  let keyRead: string | undefined;
  const key = () => (keyRead ??= machineKey(options));
  const probing = new Map<string, Promise<Proof>>();
  /** Entries that could not be written because the disk is full or read-only. */
  const unwritten = new Map<string, CachedProbe>();

  async function readProbes(): Promise<Record<string, CachedProbe>> {
    const parsed = ProbeFile.safeParse(await jsonIn(file));
    const entries = [...(parsed.success ? Object.entries(parsed.data) : []), ...unwritten];
    return Object.fromEntries(entries.filter(([, probe]) => probe.key === key() && now() - probe.at < PROBE_VALID_MS && now() >= probe.at));
  }

  async function prove(name: string): Promise<Proof> {
    const result = await runtimes.probe(name);
    const isolation = result.usable ? (await (await runtimes.get(name)).capabilities()).isolation : 0;
    const entry: CachedProbe = { key: key(), at: now(), usable: result.usable, startMs: result.startMs, isolation };
    try {
      await writeAtomically(file, JSON.stringify({ ...(await readProbes()), [name]: entry }));
      unwritten.delete(name);
    } catch {
      // It is only a cache: if it cannot be written, the next process probes again.
      unwritten.set(name, entry);
    }
    return { result, entry };
  }

  /**
   * A probe starts a sandbox, and concurrent probes would fail because each holds resources that the others need.
   * Concurrent callers share one result.
   */
  function proveOnce(name: string): Promise<Proof> {
    const going = probing.get(name);
    if (going !== undefined) return going;
    const fresh = prove(name).finally(() => probing.delete(name));
    probing.set(name, fresh);
    return fresh;
  }

  async function automatic(): Promise<Runtime> {
    const candidates = runtimes.names.filter((name) => !neverAutomatic.has(name) && name !== fallbackRuntime);
    const known = await readProbes();
    const proven = strongest(candidates, known);
    if (proven !== null) return runtimes.get(proven);
    const findings: { runtime: string; finding: Finding }[] = [];
    const tried: Record<string, CachedProbe> = {};
    for (const name of candidates) {
      const { result, entry } = await proveOnce(name);
      for (const finding of result.findings) if (finding.level === "problem") findings.push({ runtime: name, finding });
      if (!result.usable) continue;
      tried[name] = entry;
      // No later runtime in the list can be stronger unless it has its own kernel.
      if ((tried[name]?.isolation ?? 0) >= 1) break;
    }
    const best = strongest(candidates, tried);
    if (best !== null) return runtimes.get(best);
    if (fallbackRuntime !== undefined && !neverAutomatic.has(fallbackRuntime)) {
      const { result } = await proveOnce(fallbackRuntime);
      for (const finding of result.findings) if (finding.level === "problem") findings.push({ runtime: fallbackRuntime, finding });
      if (result.usable) return runtimes.get(fallbackRuntime);
    }
    throw noneUsable(findings);
  }

  return {
    probe: async (name) => (await proveOnce(name)).result,
    resolve: (name) => (name === "auto" ? automatic() : runtimes.get(name)),
    async forget() {
      unwritten.clear();
      await rm(file, { force: true });
    },
  };
}

/** Returns null if the file is absent, unreadable or damaged: it is only a cache. */
async function jsonIn(file: string): Promise<unknown> {
  return jsonOrNull((await ignore(readFile(file, "utf8"), "the runtime is probed again")) ?? "");
}

/** Returns the strongest proven runtime. Among equals, the first in the list wins. */
function strongest(candidates: readonly string[], probes: Readonly<Record<string, CachedProbe>>): string | null {
  let best: string | null = null;
  for (const name of candidates) {
    const probe = probes[name];
    if (probe?.usable !== true) continue;
    if (best === null || probe.isolation > (probes[best]?.isolation ?? 0)) best = name;
  }
  return best;
}

function noneUsable(findings: readonly { runtime: string; finding: Finding }[]): CaissonError {
  const fixes = findings.map(
    ({ runtime, finding }) => `${runtime}: ${finding.text}${finding.fix === undefined ? "" : ` Fix: ${finding.fix}`}`,
  );
  return new CaissonError("unavailable", "no runtime on this machine can isolate a sandbox", {
    hint: [...fixes, "`caisson doctor` shows all findings. If you want to run without any isolation, pass `--runtime host`."].join("\n"),
    details: { findings: findings.map(({ runtime, finding }) => ({ runtime, ...finding })) },
  });
}

/**
 * Returns a key that changes with anything that could change a probe's result: kernel, boot, user, guest, runtime
 * binaries.
 */
function machineKey(options: { path: string; guestPath: string }): string {
  const parts = [bootId(), readText("/proc/sys/kernel/osrelease"), String(process.getuid?.() ?? -1)];
  parts.push(identity(options.guestPath) ?? "no guest");
  const folders = options.path.split(":").filter((folder) => folder.startsWith("/"));
  for (const program of programs) {
    const found = folders.map((folder) => identity(join(folder, program))).find((each) => each !== null);
    parts.push(`${program}=${found ?? "absent"}`);
  }
  return createHash("sha256").update(parts.join("\n")).digest("hex").slice(0, 32);
}

function identity(path: string): string | null {
  // PATH may name folders that this user cannot enter, or on a file system that fails.
  const stat = ignoring("another folder may have it", () => statSync(path, { throwIfNoEntry: false }));
  return stat === undefined ? null : `${path}:${stat.ino}:${stat.size}:${stat.mtimeMs}`;
}

function readText(path: string): string {
  return ifErrnoSync(() => readFileSync(path, "latin1").trim(), UNREACHABLE, "unknown");
}

async function writeAtomically(file: string, text: string): Promise<void> {
  const temporary = `${file}.${randomUUID()}.tmp`;
  try {
    await mkdir(join(file, ".."), { recursive: true, mode: 0o700 });
    await writeFile(temporary, text, { mode: 0o600, flag: "wx" });
    await rename(temporary, file);
  } catch (error) {
    await ignore(rm(temporary, { force: true }), "the first error is thrown");
    throw error;
  }
}
