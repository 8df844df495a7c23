import { expect, test } from "vitest";
import type { CommandDefinition } from "../command.ts";
import { commands } from "../commands.ts";
import { parseArguments } from "./arguments.ts";
import { mountsFrom } from "./parse-mounts.ts";

const exec = commands.find((command) => command.path.join(" ") === "exec") as CommandDefinition;
const mounts = (...texts: string[]) => {
  const argv = texts.flatMap((text) => ["--mount", text]);
  return mountsFrom(parseArguments(exec, [...argv, "x"]), { folder: "/home/me/project" });
};

test.each([
  ["../data", "/home/me/data", "/mnt/data", "ro"],
  ["../data:rw", "/home/me/data", "/mnt/data", "rw"],
  ["../data:/data", "/home/me/data", "/data", "ro"],
  ["../data:/data:overlay", "/home/me/data", "/data", "overlay"],
  ["/srv/x/:ro", "/srv/x", "/mnt/x", "ro"],
  [".", "/home/me/project", "/mnt/project", "ro"],
  ["a:b:/data:rw", "/home/me/project/a:b", "/data", "rw"],
  ["ro:/x", "/home/me/project/ro", "/x", "ro"],
])("accepts --mount %s", (text, path, target, access) => {
  expect(mounts(text)).toEqual([{ path, target, access }]);
});

test("keeps the order of several --mount options", () => {
  expect(mounts("a", "b:rw").map(({ target }) => target)).toEqual(["/mnt/a", "/mnt/b"]);
});

test.each([
  ["", "names no folder"],
  [":/data", "names no folder"],
  [":rw", "names no folder"],
  ["a:", "is neither a mode nor an absolute path"],
  ["a:data", '"data" is neither a mode nor an absolute path'],
  ["a:data:rw", "data is not an absolute path"],
  ["/", "has no name"],
])("rejects --mount %j", (text, why) => {
  expect(() => mounts(text)).toThrow(why);
});
