import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { useServer } from "../../test/support/api-station.ts";
import { JobKind } from "../contract/durable/durable-kinds.ts";
import { SandboxConfig } from "../contract/sandbox/sandbox.ts";
import { createSqliteLog } from "../log/sqlite/log.ts";
import { packFolder } from "../sandbox/tar/pack-folder.ts";
import { ownedStation } from "../station/tenancy/owned-station.ts";
import type { Route } from "../verbs/route.ts";
import type { RouteName } from "../verbs/routes.ts";
import { routes } from "../verbs/routes.ts";
import { pathOf } from "../verbs/verb-facts.ts";
import { putThing } from "./testing-durable.ts";

const { base, station, server, token, ask, post, endedRun, defects } = useServer();
const all = Object.keys(routes) as RouteName[];

/** The input with which a route gets as far as looking up its resource. */
const requests: Partial<Record<RouteName, { query?: string; body?: unknown }>> = {
  "sandboxes.exec": { body: { argv: ["true"] } },
  "processes.start": { body: { argv: ["true"] } },
  "processes.signal": { body: { signal: "SIGTERM" } },
  "processes.resize": { body: { cols: 80, rows: 24 } },
  "files.list": { query: "?path=/workspace" },
  "files.remove": { query: "?path=/workspace/x" },
  "files.read": { query: "?path=/workspace/x" },
  "files.write": { query: "?path=/workspace/x", body: "text" },
  "files.info": { query: "?path=/workspace" },
  "files.makeFolder": { body: { path: "/workspace/x" } },
  "files.move": { body: { from: "/workspace/x", to: "/workspace/y" } },
  "files.watch": { query: "?path=/workspace" },
  "files.pack": { query: "?path=/workspace" },
  "files.unpack": { query: "?path=/workspace", body: "" },
  "networks.change": { body: { how: "set", policy: { mode: "none" } } },
  "sessions.note": { body: {} },
  "sessions.readFile": { query: "?path=x" },
  "runs.rewind": { body: { to: 0 } },
  "runs.prioritize": { body: { priority: 1 } },
  "runs.label": { body: { team: "walls" } },
  "sandboxes.label": { body: { team: "walls" } },
  "inside.tell": { body: { text: "Hello." } },
  "previews.open": { body: { port: 80 } },
  "runs.send": { body: { text: "Hello." } },
  "runs.answer": { body: { answer: "allow" } },
  "runs.continue": { body: { text: "More." } },
  "workflows.signal": { body: { name: "go", data: null } },
  "workflows.approve": { body: { approved: true } },
  "specs.execute": { body: {} },
  "specs.decide": { body: { approved: true } },
  "specs.edit": { body: { phase: "requirements", data: {} } },
  "merges.resolve": { body: {} },
  "ships.watch": { query: "?afterSeq=0&seconds=0" },
};

interface Things {
  sandbox: string;
  snapshot: string;
  run: string;
  session: string;
  upload: string;
  workflow: string;
  spec: string;
  ship: string;
  merge: string;
}

async function put(kind: JobKind, owner: string): Promise<string> {
  await using log = createSqliteLog({ path: join(base(), "state", "log.db") });
  return await putThing(log, kind, owner);
}

/** Creates one thing of each kind, with the same names for every owner. */
async function thingsOf(owner: string): Promise<Things> {
  const own = ownedStation(station(), { owner, sees: "own" });
  const config = SandboxConfig.parse({ keep: true, name: "box" });
  await using held = await own.sandboxes.create({ spec: config });
  await own.sandboxes.snapshot(held.id, { name: "base" });
  const [snapshot] = (await own.sandboxes.snapshots()).snapshots;
  const run = await endedRun({ owner, name: "fix", session: { id: "work" } });
  const { session } = await own.runs.get(run);
  const { id: upload } = await own.uploads.put(packFolder(join(base(), "work")));
  const driven = Object.fromEntries(await Promise.all(JobKind.options.map(async (kind) => [kind, await put(kind, owner)] as const)));
  return { sandbox: held.id, snapshot: snapshot?.id ?? "", run, session, upload, ...(driven as Record<JobKind, string>) };
}

const isNamed = (name: RouteName) => /\{(sandbox|snapshot|run|session|upload|workflow|spec|ship|merge)\}/.test(pathOf(name).path);

async function callAs(as: string, name: RouteName, words: Readonly<Record<string, string>>) {
  const { method, path } = pathOf(name);
  const { query = "", body } = requests[name] ?? {};
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, each: string) => words[each] ?? "none");
  const headers = typeof body === "object" ? { "content-type": "application/json" } : {};
  const content = body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) };
  const response = await ask(`${filled}${query}`, { method, as, headers, ...content });
  const text = response.headers.get("content-type")?.includes("json") ? await response.text() : "";
  await response.body?.cancel().catch(() => {});
  return { status: response.status, text };
}

describe("another owner's resource", () => {
  test.each(["run", "read"] as const)("does not exist for a token with the scope %s, on any route", async (scope) => {
    const ada = await thingsOf("ada");
    const bob = await token(scope, { owner: "bob" });
    const before = await stateOf(ada);
    const absent: Things = {
      sandbox: "sb_aaaaaaaaaaaa",
      snapshot: "sn_aaaaaaaaaaaa",
      run: "run_aaaaaaaaaaaa",
      session: "ses_aaaaaaaaaaaa",
      upload: "up_aaaaaaaaaaaa",
      workflow: "wf_aaaaaaaaaaaa",
      spec: "spec_aaaaaaaaaaaa",
      ship: "ship_aaaaaaaaaaaa",
      merge: "mrg_aaaaaaaaaaaa",
    };
    for (const name of all.filter(isNamed)) {
      const route: Route = routes[name];
      const isLetIn = route.scope === "read" || route.scope === scope;
      const others = await callAs(bob, name, { ...ada });
      expect([name, others.status], "give the route what it needs above").toEqual([name, isLetIn ? 404 : 403]);
      // The answer is the same as for a missing thing.
      const none = await callAs(bob, name, { ...absent });
      const unnamed = Object.entries(ada).reduce((text, [kind, id]) => text.replaceAll(id, absent[kind as keyof Things]), others.text);
      expect([name, unnamed]).toEqual([name, none.text]);
    }
    expect(await stateOf(ada)).toEqual(before);
    expect(defects).toEqual([]);
  });

  test("is not found by prefix or name, and different owners may use equal names", async () => {
    const ada = await thingsOf("ada");
    const as = await token("run", { owner: "bob" });
    const words = { sandbox: ["box", ada.sandbox.slice(0, 9)], run: ["fix", ada.run.slice(0, 10)], session: ["work", "fix"] };
    const get = { sandbox: "sandboxes.get", run: "runs.get", session: "sessions.get" } as const;
    for (const [kind, each] of Object.entries(words)) {
      for (const word of each) {
        const { status, text } = await callAs(as, get[kind as keyof typeof get], { [kind]: word });
        expect([word, status]).toEqual([word, 404]);
        expect(text).not.toContain(ada[kind as keyof Things]);
      }
    }
    const bob = await thingsOf("bob");
    for (const [kind, each] of Object.entries(words)) {
      const { status, text } = await callAs(as, get[kind as keyof typeof get], { [kind]: each[0] as string });
      expect([kind, status]).toEqual([kind, 200]);
      expect(text).toContain(bob[kind as keyof Things]);
    }
    // The user of the machine sees both, so the name alone is ambiguous.
    const both = await ask("/v1/sandboxes/box");
    expect(await both.json()).toMatchObject({
      code: "invalid",
      details: { candidates: expect.arrayContaining([ada.sandbox, bob.sandbox]) },
    });
  });

  test("is in no list, even with its owner as a filter", async () => {
    const ada = await thingsOf("ada");
    const bob = await thingsOf("bob");
    const as = await token("run", { owner: "bob" });
    const busy: readonly RouteName[] = ["machine.doctor", "runs.allEvents"];
    const lists = all.filter((name) => {
      const route: Route = routes[name];
      const { method, path } = pathOf(name);
      return method === "GET" && !path.includes("{") && route.scope !== "admin" && route.answer.json !== undefined && !busy.includes(name);
    });
    for (const name of lists) {
      const { text } = await callAs(as, name, {});
      for (const id of Object.values(ada)) expect([name, text.includes(id)]).toEqual([name, false]);
    }
    for (const path of [
      "/v1/runs",
      "/v1/sandboxes",
      "/v1/sessions",
      "/v1/snapshots",
      "/v1/workflows",
      "/v1/specs",
      "/v1/ships",
      "/v1/merges",
    ]) {
      const mine = await (await ask(path, { as })).text();
      expect(Object.values(bob).some((id) => mine.includes(id))).toBe(true);
      const theirs = await (await ask(`${path}?owner=ada`, { as })).text();
      expect(Object.values({ ...ada, ...bob }).some((id) => theirs.includes(id))).toBe(false);
      const admins = await (await ask(`${path}?owner=ada`, { as: await token("admin") })).text();
      expect(Object.values(ada).some((id) => admins.includes(id))).toBe(true);
      expect(Object.values(bob).some((id) => admins.includes(id))).toBe(false);
    }
  });

  test("cannot be used as a template or session, or claimed by labels or an owner field", async () => {
    const ada = await thingsOf("ada");
    const as = await token("run", { owner: "bob" });
    const status = async (path: string, body: unknown) => (await post(path, body, { as })).status;
    expect(await status("/v1/sandboxes", { snapshot: ada.snapshot })).toBe(404);
    expect(await status("/v1/sandboxes", { snapshot: "base" })).toBe(404);
    expect(await status("/v1/sandboxes", { spec: { template: { kind: "snapshot", id: ada.snapshot } } })).toBe(404);
    expect(await status("/v1/runs", { task: "x", settings: { snapshot: ada.snapshot } })).toBe(404);
    expect(await status("/v1/runs", { task: "x", session: { id: ada.session } })).toBe(404);
    for (const label of ["run", "session"]) expect(await status("/v1/sandboxes", { spec: { labels: { [label]: ada.run } } })).toBe(400);
    for (const label of ["spec", "spec-key", "caisson.driven", "caisson.effect"]) {
      const refused = await post("/v1/runs", { task: "x", labels: { [label]: ada.workflow } }, { as });
      expect(await refused.json()).toMatchObject({ status: 400, detail: `the label "${label}" is reserved` });
    }
    expect(await status("/v1/sandboxes", { owner: "ada" })).toBe(400);
    expect(await status("/v1/sandboxes", { spec: { owner: "ada" } })).toBe(400);
    expect(await status("/v1/runs", { task: "x", owner: "ada" })).toBe(400);
    expect((await (await ask("/v1/sandboxes", { as })).json()) as object).toMatchObject({ sandboxes: [] });
  });

  test("is in no event stream", async () => {
    const ada = await thingsOf("ada");
    const as = await token("read", { owner: "bob" });
    const stream = await fetch(`${server().status.url}/v1/events`, { headers: { authorization: `Bearer ${as}` } });
    const bob = await endedRun({ owner: "bob" });
    const later = await endedRun({ owner: "ada" });
    const last = await endedRun({ owner: "bob" });
    let seen = "";
    const decoder = new TextDecoder();
    for await (const chunk of stream.body as unknown as AsyncIterable<Uint8Array>) {
      seen += decoder.decode(chunk, { stream: true });
      if (seen.includes(`"run":"${last}"`)) break;
    }
    expect(seen).toContain(bob);
    for (const id of [ada.run, ada.session, ada.workflow, ada.spec, ada.ship, ada.merge, later]) expect(seen).not.toContain(id);
  });
});

async function stateOf({ sandbox, run, session, workflow, spec, ship, merge }: Things) {
  const { runs, sandboxes, sessions, workflows, specs, ships, merges } = station();
  return {
    workflow: await workflows.get(workflow),
    spec: await specs.get(spec),
    ship: await ships.get(ship),
    merge: await merges.get(merge),
    run: await runs.get(run),
    sandbox: await sandboxes.get(sandbox),
    session: await sessions.get(session),
    snapshots: await sandboxes.snapshots(),
  };
}
