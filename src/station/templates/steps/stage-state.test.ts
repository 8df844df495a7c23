// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the variables of a Dockerfile.
import { expect, test } from "vitest";
import { parseDockerfile } from "../dockerfile/parse-dockerfile.ts";
import { applySetting, defaultShell, emptyConfig, type StageState, variablesOf } from "./stage-state.ts";

function stateAfter(text: string, args: Readonly<Record<string, string>> = {}): StageState {
  const file = parseDockerfile(`FROM scratch\n${text}`);
  let state: StageState = { config: emptyConfig, args: {}, shell: defaultShell, escapeMark: file.escapeMark };
  for (const instruction of file.stages[0]?.instructions ?? []) state = applySetting(state, instruction, (name) => args[name]);
  return state;
}

test("ENV sees the variables before its instruction, and hides an ARG of its name", () => {
  const state = stateAfter("ARG V=1\nENV A=x B=$A\nENV A=$A$V C=${A:-none} V=2");
  expect(variablesOf(state)).toEqual({ V: "2", A: "x1", B: "", C: "x" });
});

test("ARG takes the caller's value, and sees the arguments before it", () => {
  expect(stateAfter("ARG A=1 B=$A C", { B: "b" }).args).toEqual({ A: "1", B: "b" });
  expect(stateAfter("ARG A=1\nARG B=${A}2").args).toEqual({ A: "1", B: "12" });
});

test("WORKDIR is relative to the one before, and cannot leave the root", () => {
  expect(stateAfter("WORKDIR /a\nWORKDIR b\nWORKDIR ../c").config.workdir).toBe("/a/c");
  expect(stateAfter("WORKDIR ../../etc").config.workdir).toBe("/etc");
});

test("keeps what only an image has", () => {
  const { config } = stateAfter(
    'USER app\nEXPOSE 80 ${P:-81}/udp\nVOLUME ["/a b"]\nVOLUME /c /d\nLABEL "a b"=c d="e f"\nSTOPSIGNAL SIGINT\nCMD ["x"]\nENTRYPOINT run $me',
  );
  expect(config).toEqual({
    ...emptyConfig,
    ...{ user: "app", ports: ["80", "81/udp"], volumes: ["/a b", "/c", "/d"], labels: { "a b": "c", d: "e f" }, stopSignal: "SIGINT" },
    entrypoint: ["/bin/sh", "-c", "run $me"],
    command: null,
  });
});

test("SHELL changes the shell form", () => {
  expect(stateAfter('SHELL ["/bin/bash", "-ec"]\nCMD a b').config.command).toEqual(["/bin/bash", "-ec", "a b"]);
});

test("an expansion bomb meets a bound instead of the machine's memory", () => {
  const bomb = ["ENV A=0123456789012345", ...Array.from({ length: 40 }, () => "ENV A=$A$A")].join("\n");
  expect(() => stateAfter(bomb)).toThrow(expect.objectContaining({ code: "too_large" }));
  const many = [`ENV X=${"x".repeat(60_000)}`, ...Array.from({ length: 20 }, (_, index) => `ENV A${index}=$X`)].join("\n");
  expect(() => stateAfter(many)).toThrow("the variables, arguments or labels are too large");
});

test.each(["ENV 1=x", "ENV __proto__=x", "ENV A-B=x"])("%s is not a variable", (text) => {
  expect(() => stateAfter(text)).toThrow("is not the name of a variable");
});
