import { expect, test } from "vitest";
import { builtInTools } from "../../agent/tools/tool-set.ts";
import { fingerprintCall } from "./call-fingerprint.ts";

const isCommand = (tool: string) => fingerprintCall(tool, {}, new Set()).isCommand;

test.each(builtInTools.map(({ name, files }) => [name, files] as const))("%s is classified as it declares: files %s", (name, files) => {
  expect(isCommand(name)).toBe(files === "any");
});

test("only tools that run programs may change files without listing them", () => {
  expect(builtInTools.filter(({ files }) => files === "any").map(({ name }) => name)).toEqual(["bash", "bash_kill", "git"]);
  for (const unknown of ["agent", "github__create_issue"]) expect(isCommand(unknown)).toBe(true);
});
