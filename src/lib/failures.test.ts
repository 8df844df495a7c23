import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ABSENT, ifErrno, ifErrnoSync } from "./failures.ts";

const absent = join(import.meta.dirname, "absent.txt");
const belowFile = join(import.meta.filename, "absent.txt");

test("returns the fallback for the listed codes", async () => {
  expect(await ifErrno(readFile(absent), ABSENT, null)).toBeNull();
  expect(await ifErrno(readFile(belowFile), ABSENT, null)).toBeNull();
  expect(ifErrnoSync(() => readFileSync(absent), ABSENT, "none")).toBe("none");
});

test("throws every other failure", async () => {
  await expect(ifErrno(readFile(import.meta.dirname), ABSENT, null)).rejects.toThrow("EISDIR");
  await expect(ifErrno(readFile(belowFile), ["ENOENT"], null)).rejects.toThrow("ENOTDIR");
  expect(() => ifErrnoSync(() => JSON.parse("{"), ABSENT, null)).toThrow(SyntaxError);
});
