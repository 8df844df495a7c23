import { expect, test } from "vitest";
import { fromSystem } from "./system-error.ts";

const failed = (code: string, path?: string) =>
  Object.assign(new Error(`${code}: words of the system`), { code, ...(path === undefined ? {} : { path }) });

test.each([
  ["ENOSPC", "no_space", "no space left at /state/x"],
  ["EDQUOT", "no_space", "disk quota exceeded at /state/x"],
  ["EROFS", "denied", "the file system is read-only at /state/x"],
  ["EACCES", "denied", "permission denied at /state/x"],
  ["EMFILE", "unavailable", "too many open files at /state/x"],
])("translates %s to a message with a hint", (errno, code, message) => {
  expect(fromSystem(failed(errno, "/state/x"))).toMatchObject({ code, message, hint: expect.stringMatching(/\.$/), details: { errno } });
});

test("leaves other errors alone", () => {
  expect(fromSystem(failed("ENOENT"))).toBeNull();
  expect(fromSystem(new TypeError("x is not a function"))).toBeNull();
  expect(fromSystem(failed("constructor"))).toBeNull();
});
