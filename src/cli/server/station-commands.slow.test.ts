import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { useTerminalCli } from "../../../test/support/cli-context.ts";
import { newId } from "../../lib/new-id.ts";
import { createIncidentStore } from "../../station/health/incident-store.ts";

const cli = useTerminalCli();

/** Runs a command that must succeed, and returns its output. */
async function ok(argv: readonly string[], options: { input?: string } = {}): Promise<string> {
  const { code, text } = await cli.onTerminal(argv, options);
  expect([argv.join(" "), code, text]).toEqual([argv.join(" "), 0, text]);
  return text;
}
const json = async <Value>(argv: readonly string[], options: { input?: string } = {}): Promise<Value> =>
  JSON.parse(await ok([...argv, "--json"], options)) as Value;
/** Runs a command that must be rejected, and returns its message. */
async function refused(argv: readonly string[]): Promise<string> {
  const { code, text } = await cli.onTerminal(argv);
  expect([argv.join(" "), code]).toEqual([argv.join(" "), 125]);
  return text;
}

const value = "ghp_Zx81kQpW0vT5yLr7Nc2Md9Hs4Jg6Fb3A";

test("caisson secret sets, lists and removes secrets without showing values", async () => {
  expect(await ok(["secret", "set", "API_KEY@api.test"], { input: `${value}\n` })).toContain("stored the secret API_KEY for api.test");
  const listed = await ok(["secret", "ls"]);
  expect(listed).toMatch(/API_KEY +api\.test +local/);
  expect(listed).not.toContain(value);
  expect(await json(["secret", "ls"])).toMatchObject([{ name: "API_KEY", hosts: ["api.test"] }]);
  expect(await refused(["secret", "set", "OTHER@api.test"])).toMatch(/there is no value[\s\S]*printf %s/);
  expect(await refused(["secret", "set", "API_KEY@api.test;from=env:X"])).toMatch(/;from=/);
  await ok(["secret", "rm", "API_KEY"]);
  expect(await json(["secret", "ls"])).toEqual([]);
  expect(await refused(["secret", "rm", "API_KEY"])).toMatch(/API_KEY/);
});

test("caisson token creates, lists, rotates and revokes, and shows a token once", async () => {
  const token = (await ok(["token", "create", "ci", "--scope", "run", "--owner", "ada", "--expires", "1h"])).split("\n")[0] ?? "";
  expect(token).toMatch(/^tok_/);
  const listed = await ok(["token", "ls"]);
  expect(listed).toMatch(/ci .*run .*ada|ada .*ci .*run|ci .*ada/);
  expect(listed).not.toContain(token);
  const rotated = await ok(["token", "rotate", "ci", "--grace", "1h"]);
  expect(rotated).toMatch(/tok_/);
  expect(rotated).not.toContain(token);
  expect(await json(["token", "rm", "ci"])).toEqual({ removed: ["ci"] });
  expect(await refused(["token", "rotate", "ci"])).toMatch(/ci/);
  expect(await refused(["token", "create", "other", "--scope", "all"])).toMatch(/scope/);
});

test("caisson audit is empty without a station", async () => {
  await ok(["token", "create", "ci"]);
  expect(await json(["audit"])).toEqual([]);
  expect(await refused(["audit", "--since", "soon"])).toMatch(/since/);
});

test("caisson webhook creates, lists, pauses, resumes and removes webhooks", async () => {
  const webhook = await json<{ id: string; secret: string }>([
    "webhook",
    "create",
    "chat",
    "https://chat.test/hooks/7",
    "--event",
    "run.ended",
  ]);
  expect(webhook.secret).toMatch(/^whsec_/);
  expect(await ok(["webhook", "ls"])).toMatch(/chat[\s\S]*https:\/\/chat\.test\/hooks\/7/);
  expect(await ok(["webhook", "ls", "--json"])).not.toContain(webhook.secret);
  expect(await json(["webhook", "pause", "chat"])).toMatchObject({ id: webhook.id, paused: expect.stringContaining("paused") });
  expect(await json(["webhook", "ls"])).toMatchObject([{ name: "chat", paused: expect.stringContaining("paused") }]);
  expect(await json(["webhook", "resume", webhook.id])).toMatchObject({ name: "chat", paused: null });
  expect(await json(["webhook", "deliveries", "chat"])).toEqual([]);
  await ok(["webhook", "replay", "chat"]);
  expect(await json(["webhook", "rm", webhook.id])).toEqual({ removed: ["chat"] });
  expect(await refused(["webhook", "pause", "chat"])).toMatch(/there is no webhook "chat"/);
  expect(await refused(["webhook", "create", "plain", "http://10.0.0.1/"])).toMatch(/https/);
});

describe("caisson health and incident", () => {
  test("list sandboxes that can be watched, and past incidents", async () => {
    const id = /sb_[a-z2-7]{12}/.exec(await ok(["sandbox", "create", "--no-workspace", "--name", "box"]))?.[0] ?? "";
    expect(await ok(["health"])).toContain(id);
    expect(await json(["health"])).toMatchObject({ watched: false, subjects: [{ subject: { kind: "sandbox", id }, level: "ok" }] });
    expect(await json(["incident", "ls"])).toEqual([]);
    const incident = newId("inc");
    await createIncidentStore({ stateDir: cli.stateDir() }).keep({
      id: incident,
      at: "2026-01-02T03:04:05.678Z",
      subject: { kind: "sandbox", id },
      run: null,
      owner: "local",
      condition: "stopped",
      why: "sandbox box did not respond",
      outcome: "restarted: it works again",
      stats: null,
      processes: [{ pid: 7, state: "T", command: "guest init", cpuMs: 1, memoryBytes: 1 }],
      events: [],
      output: [],
      missing: [],
    });
    expect(await ok(["incident", "ls"])).toMatch(new RegExp(`${incident}[\\s\\S]*restarted`));
    expect(await ok(["incident", "show", incident.slice(0, 9)])).toMatch(/did not respond[\s\S]*7 T .*guest init/);
    expect(await refused(["incident", "show", "inc_aaaaaaaaaaaa"])).toMatch(/there is no incident[\s\S]*caisson incident ls/);
    expect(await refused(["incident", "show", "box"])).toMatch(/not an incident id/);
  });
});

test("caisson artifacts and stats work without artifacts and without a sandbox", async () => {
  await ok(["sandbox", "create", "--no-workspace", "--name", "box"]);
  expect(await json(["artifacts", "box"])).toEqual([]);
  expect(await refused(["artifacts", "box", "report.txt"])).toMatch(/report\.txt/);
  expect(await refused(["artifacts", "elsewhere"])).toMatch(/elsewhere/);
  expect(await json(["stats"])).toMatchObject({});
  expect(await ok(["sandbox", "stats", "box"])).toMatch(/process/i);
});

describe("caisson context and login", () => {
  test("create, select, show and remove contexts without showing tokens", async () => {
    const file = join(cli.base(), "token");
    await writeFile(file, "tok_abcdef\n", { mode: 0o600 });
    await ok(["context", "create", "build", "--url", "https://build.test", "--token-file", file]);
    expect(await ok(["context", "ls"])).toMatch(/build +https:\/\/build\.test/);
    await ok(["context", "use", "build"]);
    expect(await ok(["context", "ls"])).toMatch(/build \*|\* *build/);
    expect(await ok(["context", "show", "--json"])).not.toContain("tok_abcdef");
    await ok(["context", "use", "local"]);
    await ok(["context", "rm", "build"]);
    expect(await refused(["context", "use", "build"])).toMatch(/build/);
  });

  test("require a token and a reachable station to log in", async () => {
    expect(await refused(["login", "https://station.test"])).toMatch(/--token-stdin or --token-file/);
    const nowhere = await cli.onTerminal(["login", "station.test", "--token-stdin"], { input: "tok_abcdef\n" });
    expect([nowhere.code, nowhere.text]).toEqual([125, expect.stringMatching(/"station.test" is not a station's address/)]);
    const { code } = await cli.onTerminal(["login", "http://127.0.0.1:1", "--token-stdin"], { input: "tok_abcdef\n" });
    expect(code).not.toBe(0);
    expect(await ok(["context", "ls"])).not.toContain("127.0.0.1:1");
  });
});

describe("caisson backup and restore", () => {
  test("restores what was stored, but only into an empty state folder", async () => {
    await ok(["secret", "set", "API_KEY@api.test"], { input: value });
    const file = join(cli.base(), "saved.tar.gz");
    await ok(["backup", file]);
    expect(await refused(["backup", file])).toMatch(/saved\.tar\.gz/);
    expect(await refused(["restore", file])).toMatch(/the state folder .* is in use[\s\S]*an empty folder/);
    await rm(cli.stateDir(), { recursive: true });
    await mkdir(cli.stateDir(), { mode: 0o700 });
    expect(await refused(["restore", join(cli.base(), "none.tar.gz")])).toMatch(/none\.tar\.gz/);
    await ok(["restore", file]);
    expect(await json(["secret", "ls"])).toMatchObject([{ name: "API_KEY" }]);
    expect(await refused(["restore", file])).toMatch(/is in use/);
  });
});

test("caisson mcp reports why it cannot serve", async () => {
  expect(await refused(["mcp"])).toMatch(/nothing is served here/);
  expect(await refused(["mcp", "--workspace", join(cli.base(), "none")])).not.toBe("");
});
