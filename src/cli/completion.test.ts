import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { commands } from "./commands.ts";
import { completionScript } from "./completion.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "caisson-completion-"));
  // A stand-in for caisson that completes with fixed words.
  writeFileSync(join(folder, "caisson"), '#!/bin/sh\n[ "$1 $2" = "completion --words" ] && printf "%s\\n" "build-$3" sb_aaaaaaaaaaaa\n', {
    mode: 0o755,
  });
  writeFileSync(join(folder, "build.txt"), "");
});
afterAll(() => rmSync(folder, { recursive: true }));

/** Returns what bash offers for a line. */
function offered(line: string): string[] {
  const words = line.split(" ");
  const script = `cd ${folder}; export PATH=${folder}:$PATH; ${completionScript("bash", commands)}
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

test("bash offers ids and names, and files where a file is allowed", () => {
  expect(offered("caisson exec --sandbox b")).toEqual(["build-sandbox"]);
  expect(offered("caisson exec -s ")).toEqual(["build-sandbox", "sb_aaaaaaaaaaaa"]);
  expect(offered("caisson sandbox rm build")).toEqual(["build-sandbox"]);
  expect(offered("caisson session info b")).toEqual(["build-session"]);
  expect(offered("caisson exec --snapshot b")).toEqual(["build-snapshot"]);
  expect(offered("caisson net show b")).toEqual(["build-sandbox,run"]);
  expect(offered("caisson cp build")).toEqual(["build-sandbox", "build.txt"]);
  expect(offered("caisson run build")).toEqual(["build.txt"]);
  expect(offered(`${folder}/caisson stop b`)).toEqual(["build-run"]);
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
  expect(script).toContain("-l sandbox -s s -x -a '(caisson completion --words sandbox 2>/dev/null)'");
});

test("an unknown shell is rejected", () => {
  expect(() => completionScript("csh", commands)).toThrow(expect.objectContaining({ code: "invalid" }));
});
