import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { useServer } from "../../test/support/api-station.ts";
import { type Client, connect } from "../client/connect.ts";
import { createStore } from "../sandbox/store.ts";

const { server, token, ask, station, base, endedRun, defects } = useServer();
const value = "ghp_Zx81kQpW0vT5yLr7Nc2Md9Hs4Jg6Fb3A";

async function client(scope: "read" | "run" | "admin" = "run"): Promise<Client> {
  return connect({ url: server().status.url, token: await token(scope) });
}

async function collected<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const all: Item[] = [];
  for await (const item of items) all.push(item);
  return all;
}

test("a secret can be stored and used by name, but not read back", async () => {
  const { secrets, sandboxes, runs } = await client();
  expect(await secrets.set("TOKEN", { value, hosts: ["api.test"] })).toMatchObject({ name: "TOKEN", owner: "local", hosts: ["api.test"] });
  expect(JSON.stringify(await secrets.list())).not.toContain(value);
  const { id } = await sandboxes.create({ secretNames: ["TOKEN"] });
  const { spec: config } = await createStore({ stateDir: join(base(), "state") }).read(id);
  expect(config.secrets.TOKEN).toMatchObject({ hosts: ["api.test"], from: { file: expect.stringContaining("TOKEN") } });
  // A secret is useless if its host cannot be reached, so the network allows it.
  expect(config.network).toMatchObject({ mode: "allow", rules: [{ host: "api.test", ports: [443] }] });
  expect(JSON.stringify(config)).not.toContain(value);
  await expect(sandboxes.create({ secretNames: ["OTHER"] })).rejects.toMatchObject({ code: "not_found" });
  const admin = await client("admin");
  const ended = await endedRun();
  const script = join(base(), "model.yaml");
  const { run } = await admin.runs.start({ task: "x", model: `scripted:${script}`, settings: { secretNames: ["TOKEN"] } });
  const view = await admin.runs.wait(run);
  expect(view.finish).not.toBeNull();
  const log = await collected(runs.events(run));
  expect(JSON.stringify(log)).toContain("api.test");
  expect(JSON.stringify(log)).not.toContain(value);
  await admin.runs.remove(ended);
  await expect(admin.runs.get(ended)).rejects.toMatchObject({ code: "not_found" });
  await secrets.remove("TOKEN");
  expect(await secrets.list()).toEqual([]);
  expect(defects).toEqual([]);
});

test("a wait that takes too long answers with the current state of the run", async () => {
  const file = join(base(), "works.yaml");
  await writeFile(file, "turns: [{ calls: [{ tool: bash, arguments: { command: git commit -m x } }] }]\n");
  const admin = await client("admin");
  const { run } = await admin.runs.start({
    task: "x",
    model: `scripted:${file}`,
    attended: true,
    settings: { permissions: { "*": "ask" } },
  });
  const as = await token("read");
  const response = await ask(`/v1/runs/${run}/wait?timeoutMs=50`, { as });
  expect(await response.json()).toMatchObject({ run, finish: null });
  const waiting = connect({ url: server().status.url, token: as }).runs.wait(run);
  await admin.runs.stop(run);
  expect((await waiting).finish).not.toBeNull();
});

test("a preview stays open until it is closed or its sandbox is removed", async () => {
  const { sandboxes, networks } = await client();
  const { id } = await sandboxes.create();
  const preview = await networks.keepPreview(id, { port: 8080 });
  expect(preview).toMatchObject({ sandbox: id, port: 8080, id: expect.stringMatching(/^pv_/) });
  const reached = () => fetch(`http://127.0.0.1:${preview.listenPort}`, { redirect: "manual" }).then(({ status }) => status);
  expect(await reached()).toBeGreaterThanOrEqual(400);
  expect(await networks.previews()).toEqual([preview]);
  await networks.closePreview(preview.id);
  await expect(reached()).rejects.toThrow();
  await expect(networks.closePreview(preview.id)).rejects.toMatchObject({ code: "not_found" });
  await networks.keepPreview(id, { port: 8080 });
  const held = await station().sandboxes.hold(id);
  await held.destroy();
  await expect.poll(() => networks.previews()).toEqual([]);
  const other = await sandboxes.create();
  await expect(networks.keepPreview(other.id, { port: 8080, listenPort: 9999 })).rejects.toMatchObject({ code: "denied" });
});

test("networks are shown and changed, and ports listed and watched", async () => {
  const { sandboxes, networks } = await client();
  const { id } = await sandboxes.create();
  expect(await networks.show(id)).toMatchObject({ sandbox: id, policy: { mode: "none" } });
  // The fake runtime has no network.
  await expect(networks.change(id, { how: "allow", policy: { mode: "open" } })).rejects.toMatchObject({ code: "unsupported" });
  const privately = { how: "allow", policy: { mode: "allow", rules: [{ host: "host.caisson", private: true }] } } as const;
  await expect(
    networks.change(id, { ...privately, policy: { ...privately.policy, rules: [...privately.policy.rules] } }),
  ).rejects.toMatchObject({
    code: "denied",
  });
  expect(await collected(networks.log(id))).toEqual([]);
  expect(await networks.ports(id)).toEqual([]);
  expect(await networks.ports(id, { all: true })).toEqual([]);
  await expect(networks.ports("sb_aaaaaaaaaaaa")).rejects.toMatchObject({ code: "not_found" });
  await expect(networks.watchPorts("sb_aaaaaaaaaaaa").next()).rejects.toMatchObject({ code: "not_found" });
});

test("the verbs of the machine, images and agent files work over HTTP", async () => {
  const admin = await client("admin");
  const { id } = await admin.sandboxes.create({ spec: { name: "build" } });
  expect(await admin.machine.find("build")).toEqual({ kind: "sandbox", id });
  const stats = await (await client("read")).machine.stats();
  expect(stats).toMatchObject({ sandboxes: { running: 1, paused: 0 }, runs: { open: 0 }, pool: null });
  expect(stats.memory.availableBytes).toBeGreaterThan(0);
  expect(stats.disk.bytes).toBeGreaterThan(stats.disk.availableBytes - 1);
  expect((await admin.machine.usage()).kinds.map(({ kind }) => kind)).toContain("sandboxes");
  expect(await admin.machine.prune({ olderThanMs: 0, dryRun: true })).toMatchObject({ dryRun: true });
  expect(await admin.sandboxes.changedFiles(id)).toBeNull();
  await admin.sandboxes.sweep();
  expect(await admin.runs.check()).toEqual([]);
  expect(await admin.sessions.cleanup({ olderThanMs: 1_000_000 })).toEqual({ removed: [], dryRun: false });
  const { agents } = await client("read");
  expect(await agents.show("coder")).toMatchObject({ name: "coder" });
  await expect(agents.show("./coder.prompt")).rejects.toMatchObject({ code: "denied" });
  expect(await admin.agents.trusted()).toEqual([]);
  expect(await admin.agents.judge(join(base(), "none.prompt")).catch((error: { code: string }) => error.code)).toBeDefined();
  expect(await admin.agents.validate(join(base(), "none.prompt"), { as: "none.prompt" })).toMatchObject({ code: expect.any(String) });
});

test("the changes of a session are sent in pieces, and can be counted", async () => {
  const { sessions } = await client("admin");
  const run = await endedRun();
  expect(await collected(sessions.pieces(run))).toEqual([]);
  expect(await sessions.unapplied(run)).toMatchObject({ isMinimum: expect.any(Boolean) });
  expect(await sessions.undo(run)).toMatchObject({ files: [] });
  await expect(sessions.pieces("run_aaaaaaaaaaaa").next()).rejects.toMatchObject({ code: "not_found" });
  const session = await sessions.discard(run);
  expect((await station().sessions.list()).sessions.map(({ id }) => id)).not.toContain(session);
});

test("the value of a secret is stored in its own file and nowhere else", async () => {
  const { secrets } = await client();
  await secrets.set("TOKEN", { value, hosts: ["api.test"] });
  expect(await readFile(join(base(), "state", "secrets", "local", "TOKEN.value"), "utf8")).toBe(value);
  expect(await readFile(join(base(), "state", "secrets", "local", "TOKEN.json"), "utf8")).not.toContain(value);
});
