import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { useTerminalCli } from "../../../test/support/cli-context.ts";
import type { Script } from "../../agent/model/scripted-model.ts";
import { createSqliteLog } from "../../log/sqlite/log.ts";
import type { CommandDefinition } from "../command.ts";
import { commands } from "../commands.ts";

/** Colors, title, cursor, C1, bidi, line breaks, and a forged line of ours. */
const HOSTILE = "e\x1b[31m\x1b]0;t\x07\x1b[2J\x9b2J\u202egnp\u2066\u2028\r\ncaisson: forged";
const ESC = String.fromCharCode(0x1b);
/** Characters that must not appear, except line breaks and our own colors and cursor moves. */
const obeyed = /[\p{Cc}\p{Cs}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/u;
const ours = new RegExp(`${ESC}\\[[0-9;]*m|\\r(?:${ESC}\\[\\d+A)?${ESC}\\[J|\\n`, "g");

const { onTerminal, base, stateDir } = useTerminalCli();

function expectHarmless(what: string, text: string): void {
  expect(text.replaceAll(ours, ""), what).not.toMatch(obeyed);
  expect(text.replaceAll(new RegExp(`${ESC}\\[[0-9;]*m`, "g"), ""), what).not.toMatch(/^caisson: forged/m);
}

const words = (command: CommandDefinition) => command.arguments.map(() => HOSTILE);
const named = (command: CommandDefinition) => command.path.join(" ");

describe.each(commands.map((command) => [named(command), command] as const))("caisson %s", (_name, command) => {
  test("shows hostile words and values harmlessly", async () => {
    const bare = await onTerminal([...command.path, ...words(command)]);
    expectHarmless("words", bare.text);
    const json = command.options.some(({ name }) => name === "json") ? ["--json"] : [];
    expectHarmless("JSON", (await onTerminal([...command.path, ...json, ...words(command)])).text);
    for (const { name, value } of command.options) {
      if (value === undefined) continue;
      const separator = command.takesCommand === true ? ["--"] : [];
      expectHarmless(name, (await onTerminal([...command.path, `--${name}`, HOSTILE, ...separator, ...words(command)])).text);
    }
    expectHarmless("an unknown option", (await onTerminal([...command.path, `--${HOSTILE}`])).text);
  });
});

describe("a malicious agent", () => {
  const write = (path: string, content: string) => ({ tool: "write", arguments: { path, content } });
  const script: Script = {
    turns: [
      {
        think: HOSTILE,
        say: HOSTILE,
        calls: [write(HOSTILE.replaceAll("/", ""), `${HOSTILE}\n`), { tool: HOSTILE, arguments: { path: HOSTILE } }],
      },
      { say: "caisson: forged", calls: [{ tool: "bash", arguments: { command: HOSTILE } }] },
      { say: HOSTILE },
    ],
  };

  /** Appends events with hostile values where a program inside can choose them: the host, the path, the model. */
  async function appendNetworkEvents(run: string): Promise<void> {
    const where = { sandbox: "sb_aaaaaaaaaaaa", host: HOSTILE, port: 80, via: "http" };
    const denied = { ...where, reason: "host_not_allowed", method: "GET", path: HOSTILE, text: HOSTILE, count: 1 };
    const usage = { inputTokens: 1, outputTokens: 1, cachedInputTokens: 0, reasoningTokens: 0 };
    const called = {
      ...{ sandbox: where.sandbox, wire: "openai", model: HOSTILE, path: "/v1", status: 400, usage, costUsd: null, durationMs: 1 },
      ...{ asked: HOSTILE, answered: HOSTILE, error: HOSTILE },
    };
    await using log = createSqliteLog({ path: join(stateDir(), "log.db") });
    await log.append(`run/${run}`, [
      { type: "network.denied", version: 1, data: denied },
      { type: "gateway.called", version: 1, data: called },
    ]);
  }

  test("cannot control the terminal through any command that shows its run", async () => {
    await writeFile(join(base(), "model.yaml"), JSON.stringify(script));
    const agents = join(base(), "work", ".caisson", "agents");
    await mkdir(agents, { recursive: true });
    await writeFile(join(agents, "evil.prompt"), `---\ndescription: ${JSON.stringify(HOSTILE)}\n---\nx`);
    const run = await onTerminal(["run", `fix ${HOSTILE}`, "--model", `scripted:${join(base(), "model.yaml")}`]);
    expectHarmless("run", run.text);
    expect(run.text).toMatch(/done/);
    const commandLines = [
      ["ps"],
      ["ps", "--json"],
      ["logs"],
      ["logs", "--json"],
      ["diff"],
      ["diff", "--stat"],
      ["diff", "--json"],
      ["session", "ls"],
      ["agent", "ls"],
      ["agent", "ls", "--json"],
      ["apply", "--json"],
      ["apply"],
    ];
    for (const argv of commandLines) {
      const { text } = await onTerminal(argv);
      expectHarmless(argv.join(" "), text);
      expect(text, argv.join(" ")).not.toBe("");
    }
    const id = /run_\w+/.exec((await onTerminal(["ps", "--json"])).text)?.[0] ?? "";
    await appendNetworkEvents(id);
    for (const argv of [
      ["net", "log", id],
      ["net", "log", "--json", id],
      ["logs", id],
    ]) {
      const { code, text } = await onTerminal(argv);
      expect([code, text.includes("gnp")], argv.join(" ")).toEqual([0, true]);
      expectHarmless(argv.join(" "), text);
    }
    const info = await onTerminal(["session", "info", id]);
    expect(info.code).toBe(0);
    expectHarmless("session info", info.text);
    // The hostile text is visible, but quoted.
    expect((await onTerminal(["diff", "--stat"])).text).toContain(String.raw`"e\x1b[31m`);
    expect((await onTerminal(["diff"])).text).toContain(String.raw`\u202egnp`);
  });
});
