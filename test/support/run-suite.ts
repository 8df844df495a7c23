import { execFileSync, type SpawnOptions, spawn } from "node:child_process";
import { chownSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Verdict } from "../../src/suites/attack/claim.ts";

export interface SuiteLine {
  usable?: boolean;
  findings?: { level: string; text: string }[];
  test?: string;
  outcome?: "passed" | "failed" | "skipped";
  reason?: string;
  error?: string;
  /** If the sandboxes come from a pool: how many of them waited, and how many could not. */
  counts?: { pooled: number; fresh: number };
}

/**
 * Runs a suite in another process, as another user if one is given, and returns its lines. Throws if the process fails.
 */
export async function runSuite(options: {
  suite: "conformance" | "attack";
  user?: { uid: number; gid: number; home: string; name: string };
  ociRuntime?: string;
  pool?: { sandboxes: number };
}): Promise<(SuiteLine & Partial<Verdict>)[]> {
  const { suite, user } = options;
  const path = process.env.PATH ?? "/usr/bin:/bin";
  const home = user?.home ?? process.env.HOME ?? "/";
  const runtimeOptions = {
    home,
    path,
    ...(options.ociRuntime && { ociRuntime: options.ociRuntime }),
    ...(options.pool && { pool: options.pool }),
  };
  const program = join(import.meta.dirname, "suite-program.ts");
  const stateDir = mkdtempSync(join(tmpdir(), "caisson-test-"));
  if (user && process.getuid?.() === 0) chownSync(stateDir, user.uid, user.gid);
  try {
    return await collectLines(suite, [program, suite, stateDir, JSON.stringify(runtimeOptions)], {
      cwd: "/",
      env: { PATH: path, HOME: home, USER: user?.name ?? "root" },
      ...(user && process.getuid?.() === 0 && { uid: user.uid, gid: user.gid }),
    });
  } finally {
    removeStateDir(stateDir);
  }
}

async function collectLines(suite: string, argv: string[], options: SpawnOptions): Promise<(SuiteLine & Partial<Verdict>)[]> {
  const child = spawn(process.execPath, argv, { ...options, stdio: ["ignore", "pipe", "pipe"] });
  let errors = "";
  child.stderr?.on("data", (data: Buffer) => {
    errors = (errors + data.toString()).slice(-4_000);
  });
  const ended = new Promise<string>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => resolve(String(signal ?? code)));
  });
  const lines: (SuiteLine & Partial<Verdict>)[] = [];
  if (child.stdout === null) throw new Error("no output to read");
  for await (const line of createInterface({ input: child.stdout })) lines.push(JSON.parse(line) as SuiteLine & Partial<Verdict>);
  const code = await ended;
  if (code !== "0") throw new Error(`the ${suite} suite ended with ${code}:\n${errors}`);
  return lines;
}

/**
 * The templates of a rootless runtime belong to the user's sub-ids, which the user can only access in a user namespace.
 */
function removeStateDir(stateDir: string): void {
  if (process.getuid?.() === 0) rmSync(stateDir, { recursive: true, force: true });
  else execFileSync("unshare", ["--map-auto", "--map-root-user", "rm", "-rf", stateDir]);
}

/** The runtimes that must be available, from `REQUIRE_RUNTIMES`. */
export const requiredRuntimes = (process.env.REQUIRE_RUNTIMES ?? "").split(",").filter((name) => name !== "");
