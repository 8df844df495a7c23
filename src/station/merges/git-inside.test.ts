import { expect, test } from "vitest";
import { CaissonError, type ErrorCode } from "../../contract/error/error.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import { removeFile } from "./git-inside.ts";

/** A sandbox that removes files, but fails with this code for folders. */
function sandboxWith(code: ErrorCode, removed: string[] = []): Sandbox {
  const remove = async (path: string) => {
    if (!path.endsWith(".txt")) throw new CaissonError(code, `${path}: ${code}`);
    removed.push(path);
  };
  return { remove } as unknown as Sandbox;
}

test.each<ErrorCode>(["conflict", "not_found", "busy", "denied"])("keeps a folder whose removal fails with %s", async (code) => {
  const removed: string[] = [];
  await removeFile(sandboxWith(code, removed), "a/b/file.txt");
  expect(removed).toEqual(["/workspace/a/b/file.txt"]);
});

test.each<ErrorCode>(["lost", "internal"])("throws %s instead of keeping the folder", async (code) => {
  await expect(removeFile(sandboxWith(code), "a/b/file.txt")).rejects.toMatchObject({ code });
});
