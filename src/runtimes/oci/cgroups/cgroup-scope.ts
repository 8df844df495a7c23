import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { CaissonError } from "../../../contract/error/error.ts";
import { startScope } from "../systemd/user-scope.ts";
import type { UserSystemd } from "../systemd/user-systemd.ts";
import { type CgroupFolder, enableBelow } from "./cgroup.ts";

/** How long an earlier scope of the same name may take to disappear. */
const NAME_FREE_TIMEOUT_MS = 5_000;
const NAME_TRY_EVERY_MS = 20;

/** `details.step` of an error that systemd caused. */
export const SCOPE_STEP = "scope";

/**
 * Asks the user's systemd to put one of our processes into a scope. Then divides the scope into a sandbox's groups and
 * moves the process into the guest's group. Throws `unavailable` with `details.step`.
 */
export async function enterScope(options: { manager: UserSystemd; folder: CgroupFolder; pid: number; uid: number }): Promise<void> {
  try {
    await startWhenFree(options);
    divide(options.folder, options.pid);
  } catch (cause) {
    const text = cause instanceof Error ? cause.message : String(cause);
    throw new CaissonError("unavailable", `the user's systemd created no control group: ${text}`, { details: { step: SCOPE_STEP }, cause });
  }
}

async function startWhenFree({ manager, folder, pid, uid }: Parameters<typeof enterScope>[0]): Promise<void> {
  const unit = basename(folder.dir);
  for (const deadline = performance.now() + NAME_FREE_TIMEOUT_MS; ; await delay(NAME_TRY_EVERY_MS)) {
    try {
      return await startScope(manager, { unit, pid, uid, description: "Caisson sandbox" });
    } catch (error) {
      const exists = error instanceof CaissonError && error.details?.errorName === "org.freedesktop.systemd1.UnitExists";
      if (!exists || performance.now() > deadline) throw error;
    }
  }
}

/** Moves the process first: a group with processes cannot limit groups below it. */
function divide({ dir, controllers }: CgroupFolder, pid: number): void {
  const words = (name: string) => readFileSync(join(dir, name), "latin1").split(/\s+/);
  if (!words("cgroup.procs").includes(String(pid))) throw new Error(`process ${pid} is not in ${dir}`);
  const has = words("cgroup.controllers");
  const missing = controllers.filter((name) => !has.includes(name));
  if (missing.length > 0) throw new Error(`${dir} has no ${missing.join(", ")}`);
  for (const leaf of ["guest", "work"]) mkdirSync(join(dir, leaf), { recursive: true });
  writeFileSync(join(dir, "guest", "cgroup.procs"), String(pid));
  enableBelow(dir, controllers);
}
