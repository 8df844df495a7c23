import { execFileSync, spawnSync } from "node:child_process";
import { expect, test } from "vitest";
import { commands } from "./commands.ts";
import { completionScript } from "./completion.ts";

/** What bash would offer for a line. */
function offered(line: string): string[] {
  const words = line.split(" ");
  const script = `${completionScript("bash", commands)}
COMP_WORDS=(${words.map((word) => `'${word}'`).join(" ")}); COMP_CWORD=${words.length - 1}; _caisson; printf '%s\\n' "\${COMPREPLY[@]}"`;
  return execFileSync("bash", ["-c", script], { encoding: "utf8" })
    .split("\n")
    .filter((word) => word !== "");
}

test("bash offers commands, sub-commands, options and their values", () => {
  expect(offered("caisson ex")).toEqual(["exec"]);
  expect(offered("caisson sandbox st")).toEqual(["stats"]);
  expect(offered("caisson exec --mem")).toEqual(["--memory"]);
  expect(offered("caisson exec --runtime d")).toEqual(["docker"]);
  expect(offered("caisson sandbox create --oci-runtime ru")).toEqual(["runc", "runsc"]);
  expect(offered("caisson completion z")).toEqual(["zsh"]);
});

test("after -- bash offers programs", () => {
  expect(offered("caisson exec -- mkdi")).toContain("mkdir");
});

test.each(["bash", "zsh"])("the script for %s parses", (shell) => {
  expect(spawnSync("bash", ["-n"], { input: completionScript(shell, commands), encoding: "utf8" })).toMatchObject({
    status: 0,
    stderr: "",
  });
});

test("fish gets every option of every command", () => {
  const script = completionScript("fish", commands);
  for (const command of commands) for (const option of command.options) expect(script).toContain(`-l ${option.name}`);
});

test("an unknown shell is refused", () => {
  expect(() => completionScript("csh", commands)).toThrow(expect.objectContaining({ code: "invalid" }));
});
