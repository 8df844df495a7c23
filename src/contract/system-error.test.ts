import { expect, test } from "vitest";
import { fromSystem } from "./system-error.ts";

const failed = (code: string, path?: string) =>
  Object.assign(new Error(`${code}: words of the system`), { code, ...(path === undefined ? {} : { path }) });

test.each([
  ["ENOSPC", "no_space", "there is no space left at /state/x"],
  ["EDQUOT", "no_space", "the disk quota is used up at /state/x"],
  ["EROFS", "denied", "the file system is read-only at /state/x"],
  ["EACCES", "denied", "permission is denied at /state/x"],
  ["EMFILE", "unavailable", "too many files are open at /state/x"],
])("%s is told in words, with what to do", (errno, code, message) => {
  expect(fromSystem(failed(errno, "/state/x"))).toMatchObject({ code, message, hint: expect.stringMatching(/\.$/), details: { errno } });
});

test("what is nobody's fault but ours stays so", () => {
  expect(fromSystem(failed("ENOENT"))).toBeNull();
  expect(fromSystem(new TypeError("x is not a function"))).toBeNull();
  expect(fromSystem(failed("constructor"))).toBeNull();
});
