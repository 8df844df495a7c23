import { closeSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Script } from "../agent/model/scripted-model.ts";
import { loadConfig } from "../compose/load-config.ts";
import { composeStation, sandboxTools } from "../compose/station.ts";
import { createSqliteLog } from "../log/sqlite/log.ts";
import { createFakeRuntime } from "../runtimes/fake/runtime.ts";
import type { Resolver } from "../sandbox/resolver.ts";
import type { RuntimeSet } from "../sandbox/runtime-set.ts";
import type { CommandSpec } from "./command.ts";
import { commands } from "./commands.ts";
import type { CliContext } from "./context.ts";
import { runCli } from "./dispatch.ts";
import { createOutput } from "./output.ts";
import type { Interruption } from "./signals.ts";

/** Colours, title, cursor, C1, bidi, line breaks, and a forged line of ours. */
const HOSTILE = "e\x1b[31m\x1b]0;t\x07\x1b[2J\x9b2J\u202egnp\u2066\u2028\r\ncaisson: forged";
const ESC = String.fromCharCode(0x1b);
/** What must not be there, but for line breaks and the colours and cursor moves that are ours. */
const obeyed = /[\p{Cc}\p{Cs}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/u;
const ours = new RegExp(`${ESC}\\[[0-9;]*m|\\r(?:${ESC}\\[\\d+A)?${ESC}\\[J|\\n`, "g");

let base: string;
let context: CliContext;
let openStation: () => ReturnType<typeof composeStation>;
const interruption: Interruption = {
  signal: new AbortController().signal,
  received: () => null,
  first: new Promise(() => {}),
  second: new Promise(() => {}),
  next: () => new Promise(() => {}),
};

beforeEach(async () => {
  base = await mkdtemp(join(tmpdir(), "caisson-test-hostile-"));
  const stateDir = join(base, "state");
  await mkdir(join(base, "work"));
  await mkdir(stateDir);
  const fake = createFakeRuntime();
  const runtimes: RuntimeSet = {
    names: ["fake"],
    async get(name) {
      if (name === "fake") return fake;
      const { CaissonError } = await import("../contract/error.ts");
      throw new CaissonError("invalid", `there is no runtime ${name}`, { hint: `Not ${name}.` });
    },
    // It is to outlive a command, as real sandboxes do.
    async [Symbol.asyncDispose]() {},
  };
  const resolver: Resolver = {
    resolve: (name) => runtimes.get(name === "auto" ? "fake" : name),
    probe: () => fake.probe(),
    forget: async () => {},
  };
  const variable = () => undefined;
  const { config, file, sources } = await loadConfig({ stateDir, configDir: join(base, "config"), variable });
  const local = { cwd: join(base, "work"), home: base, path: process.env.PATH ?? "", stateDir, configDir: join(base, "config"), config };
  const parts = { ...local, configFile: file, version: "0", guestPath: join(base, "no-guest"), variable, runtimes, resolver };
  openStation = () => composeStation({ ...parts, say: () => {}, startDetached: async () => {} });
  context = {
    ...local,
    version: "0",
    guestPath: join(base, "no-guest"),
    packageDir: base,
    configFile: file,
    configSources: sources,
    stdin: { isTTY: false, destroy() {}, async *[Symbol.asyncIterator]() {} } as unknown as CliContext["stdin"],
    stdout: undefined as never,
    stderr: undefined as never,
    interruption,
    variable,
    startDetached: async () => {},
    station: undefined as never,
    removeOwnSandboxes: async () => {},
    serveNetwork: async () => ({ why: "gone" }),
    tools: sandboxTools,
    onEvent() {},
  };
});
afterEach(() => rm(base, { recursive: true, force: true }));

/** Runs a command line as on a terminal, and gives every byte that it wrote there. */
async function onTerminal(argv: readonly string[]): Promise<{ code: number; text: string }> {
  const file = join(base, "screen");
  writeFileSync(file, "");
  const fd = openSync(file, "a");
  const terminal = { getWindowSize: () => [100, 30], on() {}, off() {} } as never;
  const output = createOutput({ fd, terminal });
  try {
    // Each command is a process of its own, and closes its station.
    const whole = { ...context, station: openStation(), stdout: output, stderr: output };
    const code = await runCli({ version: "0", argv, stdout: output, stderr: output, interruption, context: async () => whole });
    return { code, text: readFileSync(file, "utf8") };
  } finally {
    closeSync(fd);
  }
}

function expectHarmless(what: string, text: string): void {
  expect(text.replaceAll(ours, ""), what).not.toMatch(obeyed);
  expect(text.replaceAll(new RegExp(`${ESC}\\[[0-9;]*m`, "g"), ""), what).not.toMatch(/^caisson: forged/m);
}

const words = (command: CommandSpec) => command.arguments.map(() => HOSTILE);
const named = (command: CommandSpec) => command.path.join(" ");

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

describe("an agent that means harm", () => {
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

  /** What a program inside may choose of an event: the host, the path, the model. */
  async function appendNetworkEvents(run: string): Promise<void> {
    const where = { sandbox: "sb_aaaaaaaaaaaa", host: HOSTILE, port: 80, via: "http" };
    const denied = { ...where, reason: "host_not_allowed", method: "GET", path: HOSTILE, text: HOSTILE, count: 1 };
    const usage = { inputTokens: 1, outputTokens: 1, cachedInputTokens: 0, reasoningTokens: 0 };
    const called = {
      ...{ sandbox: where.sandbox, wire: "openai", model: HOSTILE, path: "/v1", status: 400, usage, costUsd: null, durationMs: 1 },
      ...{ asked: HOSTILE, answered: HOSTILE, error: HOSTILE },
    };
    await using log = createSqliteLog({ path: join(context.stateDir, "log.db") });
    await log.append(`run/${run}`, [
      { type: "network.denied", version: 1, data: denied },
      { type: "gateway.called", version: 1, data: called },
    ]);
  }

  test("writes to the terminal in no command that shows its run", async () => {
    await writeFile(join(base, "model.yaml"), JSON.stringify(script));
    const agents = join(base, "work", ".caisson", "agents");
    await mkdir(agents, { recursive: true });
    await writeFile(join(agents, "evil.prompt"), `---\ndescription: ${JSON.stringify(HOSTILE)}\n---\nx`);
    const run = await onTerminal(["run", `fix ${HOSTILE}`, "--model", `scripted:${join(base, "model.yaml")}`]);
    expectHarmless("run", run.text);
    expect(run.text).toMatch(/done/);
    const shown = [
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
    for (const argv of shown) {
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
    // It is there to be seen, in quotes.
    expect((await onTerminal(["diff", "--stat"])).text).toContain(String.raw`"e\x1b[31m`);
    expect((await onTerminal(["diff"])).text).toContain(String.raw`\u202egnp`);
  });
});
