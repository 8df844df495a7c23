import { createHash, randomUUID } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { CaissonError } from "../contract/error.ts";
import { bootId } from "../lib/boot-id.ts";
import type { Finding, Probe, Runtime } from "./runtime.ts";
import type { RuntimeSet } from "./runtime-set.ts";

/** How long a probe's word is taken. A failing create asks again earlier, through `forget`. */
const PROBE_VALID_MS = 60 * 60_000;
/** `auto` never ends on the host: no isolation is a choice that only a person makes, by name. */
const neverAutomatic: ReadonlySet<string> = new Set(["host", "fake"]);
/** What a probe's result depends on, next to the kernel and the guest. */
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

/** What a probe found, and what is kept of it. */
interface Proof {
  result: Probe;
  entry: CachedProbe;
}

export interface Resolver {
  /**
   * `auto`: the strongest runtime that a real probe proved, else the fallback. A name: that runtime, unprobed.
   * Throws `invalid` for an unknown name, `unavailable` with every runtime's fix when none can be used.
   */
  resolve(name: string): Promise<Runtime>;
  /** Really starts a sandbox there, and remembers the outcome. */
  probe(name: string): Promise<Probe>;
  /** Drops what was remembered, for when a runtime that was proven fails. */
  forget(): Promise<void>;
}

export interface ResolverOptions {
  runtimes: RuntimeSet;
  stateDir: string;
  guestPath: string;
  /** The search path for programs, as in PATH. */
  path: string;
  /** Tried when `auto` finds nothing: a runtime that `auto` itself would not take (a remote one). Never `host`. */
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
  /** What could not be written: a full or read-only disk. */
  const unwritten = new Map<string, CachedProbe>();

  async function remembered(): Promise<Record<string, CachedProbe>> {
    const parsed = ProbeFile.safeParse(await jsonIn(file));
    const entries = [...(parsed.success ? Object.entries(parsed.data) : []), ...unwritten];
    return Object.fromEntries(entries.filter(([, probe]) => probe.key === key() && now() - probe.at < PROBE_VALID_MS && now() >= probe.at));
  }

  async function prove(name: string): Promise<Proof> {
    const runtime = await runtimes.get(name);
    const result = await runtime.probe();
    const isolation = result.usable ? (await runtime.capabilities()).isolation : 0;
    const entry: CachedProbe = { key: key(), at: now(), usable: result.usable, startMs: result.startMs, isolation };
    try {
      await writeAtomically(file, JSON.stringify({ ...(await remembered()), [name]: entry }));
      unwritten.delete(name);
    } catch {
      // Only a memory: where it cannot be kept, the next process probes for itself.
      unwritten.set(name, entry);
    }
    return { result, entry };
  }

  /**
   * A probe starts a sandbox, and many at once would fail for want of what each of them holds: those who ask together
   * get one answer.
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
    const known = await remembered();
    const proven = strongest(candidates, known);
    if (proven !== null) return runtimes.get(proven);
    const findings: { runtime: string; finding: Finding }[] = [];
    const tried: Record<string, CachedProbe> = {};
    for (const name of candidates) {
      const { result, entry } = await proveOnce(name);
      for (const finding of result.findings) if (finding.level === "problem") findings.push({ runtime: name, finding });
      if (!result.usable) continue;
      tried[name] = entry;
      // Nothing after it in the list can be stronger unless it has a kernel of its own.
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

/** Null for what is absent or damaged: it is only a memory, and is made again. */
async function jsonIn(file: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(file, "utf8"));
  } catch {
    return null;
  }
}

/** Only what was proven counts; among equals the order of the list decides. */
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
    hint: [...fixes, "`caisson doctor` shows everything. `--runtime host` runs without any isolation, if that is what you want."].join(
      "\n",
    ),
    details: { findings: findings.map(({ runtime, finding }) => ({ runtime, ...finding })) },
  });
}

/** Changes with whatever could change a probe's outcome: kernel, boot, user, guest, runtime binaries. */
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
  try {
    const stat = statSync(path, { throwIfNoEntry: false });
    return stat === undefined ? null : `${path}:${stat.ino}:${stat.size}:${stat.mtimeMs}`;
  } catch {
    // PATH may name folders that this user may not enter.
    return null;
  }
}

function readText(path: string): string {
  try {
    return readFileSync(path, "latin1").trim();
  } catch {
    return "unknown";
  }
}

async function writeAtomically(file: string, text: string): Promise<void> {
  const temporary = `${file}.${randomUUID()}.tmp`;
  try {
    await mkdir(join(file, ".."), { recursive: true, mode: 0o700 });
    await writeFile(temporary, text, { mode: 0o600, flag: "wx" });
    await rename(temporary, file);
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => {});
    throw error;
  }
}
