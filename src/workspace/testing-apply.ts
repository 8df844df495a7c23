import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import { type ApplyOptions, applyChanges } from "./apply.ts";
import type { Change, FileSide } from "./change.ts";

export const file = (content: string, mode = 0o644): FileSide => ({ kind: "file", mode, content: Buffer.from(content) });
export const link = (target: string): FileSide => ({ kind: "link", mode: 0o777, content: Buffer.from(target) });
export const change = (path: string, before: FileSide | null, after: FileSide | null, more: Partial<Change> = {}): Change => ({
  path,
  from: null,
  before,
  after,
  changedOutside: false,
  ...more,
});

export type ApplyPlace = ReturnType<typeof makeApplyPlace>;

/** Creates an empty folder to apply changes to, and a state folder beside it. */
export function makeApplyPlace() {
  const base = mkdtempSync(join(tmpdir(), "caisson-test-"));
  const folder = join(base, "folder");
  mkdirSync(folder);
  const apply = (changes: readonly Change[], options: Partial<ApplyOptions> = {}) =>
    applyChanges(changes, { folder, stateDir: join(base, "state"), alive: () => false, ...options });
  const put = (path: string, content: string) => {
    mkdirSync(join(folder, path, ".."), { recursive: true });
    writeFileSync(join(folder, path), content);
  };
  return { base, folder, apply, put };
}

export const unsafe = (promise: Promise<unknown>) => expect(promise).rejects.toMatchObject({ code: "unsafe" });

/** Returns the apply records in the state folder of such a place, without the rollback stamp. */
export const recordsLeft = (base: string) => readdirSync(join(base, "state/applies")).filter((name) => name !== ".taken-back");

/** Starts a process that applies these texts to a folder, and is killed before the operation with this number. */
export function applyAndDie(options: {
  folder: string;
  stateDir: string;
  at: number;
  files: Readonly<Record<string, [string | null, string | null]>>;
}): void {
  const program = `
    import { applyChanges } from ${JSON.stringify(join(import.meta.dirname, "apply.ts"))};
    const { folder, stateDir, at, files } = JSON.parse(process.argv[1]);
    const file = (text) => text === null ? null : { kind: "file", mode: 0o644, content: Buffer.from(text) };
    const changes = Object.entries(files).map(([path, [before, after]]) =>
      ({ path, from: null, before: file(before), after: file(after), changedOutside: false }));
    let step = 0;
    const crashpoint = () => { if (step++ === at) process.kill(process.pid, "SIGKILL"); };
    await applyChanges(changes, { folder, stateDir, crashpoint });
  `;
  const { signal, stderr } = spawnSync(process.execPath, ["--input-type=module", "--eval", program, JSON.stringify(options)], {
    encoding: "utf8",
  });
  expect(signal, stderr).toBe("SIGKILL");
}
