import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
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

/** An empty folder to apply changes to, and a state folder beside it. */
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
