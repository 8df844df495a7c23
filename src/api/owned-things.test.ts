import { writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import { type Client, connect } from "../client/connect.ts";
import type { Incident } from "../contract/health.ts";
import { newId } from "../lib/new-id.ts";
import { createStore } from "../sandbox/store.ts";
import { packFolder } from "../sandbox/tar/pack-folder.ts";
import { createIncidentStore } from "../station/health/incident-store.ts";
import { ownedStation } from "../station/owners/owned-station.ts";
import { useServer } from "./testing.ts";

/** Two owners who call everything by the same names, and what neither may see or change of the other's. */
const { base, station, server, token, insideToken, endedRun, defects } = useServer({ bounds: { runsMax: 1 } });
const stateDir = () => join(base(), "state");

async function clientOf(owner: string, scope: "read" | "run" | "admin" = "run"): Promise<Client> {
  return connect({ url: server().status.url, token: await token(scope, { owner }) });
}

async function twoOwners(): Promise<{ ada: Client; bob: Client; admin: Client }> {
  return { ada: await clientOf("ada"), bob: await clientOf("bob"), admin: await clientOf("local", "admin") };
}

const named = (name: string) => ({ spec: { name } });

/** Each is answered like what does not exist. */
async function refused(calls: readonly Promise<unknown>[]): Promise<void> {
  const outcomes = await Promise.allSettled(calls);
  const codes = outcomes.map((each) => (each.status === "rejected" ? (each.reason as { code?: string }).code : "done"));
  expect(codes).toEqual(calls.map(() => "not_found"));
}

async function textOf(stream: ReadableStream<Uint8Array>): Promise<string> {
  return await new Response(stream).text();
}

describe("secrets", () => {
  const value = "ghp_Zx81kQpW0vT5yLr7Nc2Md9Hs4Jg6Fb3A";

  test("are seen, replaced, removed and used by their owner alone", async () => {
    const { ada, bob, admin } = await twoOwners();
    await ada.secrets.set("TOKEN", { value, hosts: ["ada.test"] });
    expect(await bob.secrets.list()).toEqual([]);
    expect(await admin.secrets.list()).toEqual([]);
    await refused([
      bob.secrets.remove("TOKEN"),
      bob.sandboxes.create({ secretNames: ["TOKEN"] }),
      bob.runs.start({ task: "x", model: "openai/none", settings: { secretNames: ["TOKEN"] } }),
    ]);
    await bob.secrets.set("TOKEN", { value: `${value}B`, hosts: ["bob.test"] });
    expect(await ada.secrets.list()).toMatchObject([{ name: "TOKEN", owner: "ada", hosts: ["ada.test"] }]);
    const store = createStore({ stateDir: stateDir() });
    const files: unknown[] = [];
    for (const [owner, client] of Object.entries({ ada, bob })) {
      const { spec } = await store.read((await client.sandboxes.create({ secretNames: ["TOKEN"] })).id);
      expect(spec.secrets.TOKEN?.hosts).toEqual([`${owner}.test`]);
      files.push(spec.secrets.TOKEN?.from);
    }
    expect(files[0]).not.toEqual(files[1]);
    await bob.secrets.remove("TOKEN");
    expect(await ada.secrets.list()).toHaveLength(1);
  });
});

describe("webhooks", () => {
  test("are listed, changed and tried by their owner alone, also by name", async () => {
    const { ada, bob, admin } = await twoOwners();
    const { id } = await ada.webhooks.create({ name: "chat", url: "https://ada.test/hook" });
    const before = await ada.webhooks.get("chat");
    expect(await bob.webhooks.list()).toEqual([]);
    const all = ["get", "remove", "pause", "resume", "deliveries", "replay", "test"] as const;
    for (const word of [id, "chat"]) await refused(all.map((verb) => bob.webhooks[verb](word)));
    await bob.webhooks.create({ name: "chat", url: "https://bob.test/hook" });
    expect((await bob.webhooks.pause("chat")).url).toBe("https://bob.test/hook");
    await bob.webhooks.remove("chat");
    expect(await ada.webhooks.list()).toEqual([before]);
    expect(await admin.webhooks.list()).toEqual([before]);
  });

  test("carry what happened in their owner's runs, and nothing of anybody else's", async () => {
    const heard: { subject: string }[] = [];
    const receiver = createServer(async (request, response) => {
      heard.push((await json(request)) as { subject: string });
      response.writeHead(204).end();
    });
    await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
    const { ada, bob } = await twoOwners();
    const ended = new AbortController();
    const own = (view: Parameters<typeof ownedStation>[1]) => ownedStation(station(), view);
    const hook = { name: "mine", url, allowPrivate: true, events: ["run.ended"] };
    await own({ owner: "bob", sees: "own" }).webhooks.create(hook);
    const delivering = station().webhooks.deliver({
      stationFor: (view) => own(view),
      onDefect: (error) => defects.push(error),
      signal: ended.signal,
    });
    try {
      await endedRun({ owner: "ada" });
      const mine = await endedRun({ owner: "bob" });
      await expect.poll(() => heard.length, { timeout: 60_000 }).toBe(1);
      expect(heard[0]?.subject).toBe(mine);
      await expect.poll(async () => (await bob.webhooks.deliveries("mine")).map(({ run }) => run), { timeout: 60_000 }).toEqual([mine]);
      // A delivery of somebody else's webhook is none of one's own.
      await ada.webhooks.create({ name: "mine", url: "https://ada.test/hook" });
      const [delivery] = await bob.webhooks.deliveries("mine");
      await refused([ada.webhooks.replay("mine", { delivery: delivery?.id ?? "" })]);
      expect(await ada.webhooks.deliveries("mine")).toEqual([]);
    } finally {
      ended.abort();
      await delivering;
      receiver.close();
    }
    expect(defects).toEqual([]);
  });
});

describe("ships", () => {
  test("are made of their owner's runs, and are looked at, merged and cancelled by their owner alone", async () => {
    const { ada, bob, admin } = await twoOwners();
    const run = await endedRun({ owner: "ada" });
    // Nobody's remote: what matters is whose it is.
    const request = { of: run, to: "https://git.invalid/team/project.git", forge: "git", withoutTests: "there are none" } as const;
    await refused([bob.ships.start(request)]);
    const { id } = await ada.ships.start(request);
    expect((await bob.ships.list()).items).toEqual([]);
    expect((await admin.ships.list()).items).toMatchObject([{ id, owner: "ada" }]);
    await refused([
      bob.ships.get(id),
      bob.ships.watch(id, { afterSeq: 0 }),
      bob.ships.merge(id),
      bob.ships.resume(id),
      bob.ships.cancel(id),
    ]);
    await refused([bob.ships.get("ship_"), bob.ships.get(id.slice(0, 8))]);
    expect(await ada.ships.get(id.slice(0, 8))).toMatchObject({ id, title: expect.any(String) });
    await expect(ada.ships.start({ ...request, to: "/srv/git/project.git" })).rejects.toMatchObject({ code: "denied" });
    await expect(ada.ships.start({ ...request, allowPrivate: true })).rejects.toMatchObject({ code: "denied" });
  });
});

describe("previews", () => {
  test("are opened, listed and closed by the owner of their sandbox alone", async () => {
    const { ada, bob, admin } = await twoOwners();
    const { id } = await ada.sandboxes.create(named("box"));
    const preview = await ada.networks.keepPreview("box", { port: 8080 });
    expect(await bob.networks.previews()).toEqual([]);
    await refused([
      bob.networks.closePreview(preview.id),
      bob.networks.keepPreview(id, { port: 8080 }),
      bob.networks.keepPreview("box", { port: 1 }),
    ]);
    expect(await ada.networks.previews()).toEqual([preview]);
    expect(await admin.networks.previews()).toEqual([preview]);
    await bob.sandboxes.create(named("box"));
    const other = await bob.networks.keepPreview("box", { port: 8080 });
    expect((await bob.networks.previews()).map((each) => each.id)).toEqual([other.id]);
    expect((await ada.networks.previews()).map((each) => each.id)).toEqual([preview.id]);
    await ada.networks.closePreview(preview.id);
    expect(await admin.networks.previews()).toHaveLength(1);
  });
});

describe("what programs inside left", () => {
  test("is read by the owner of their sandbox alone, and messages come from nobody else", async () => {
    const { ada, bob } = await twoOwners();
    const { id } = await ada.sandboxes.create(named("box"));
    const inside = connect({ url: server().status.url, token: insideToken(id) });
    await inside.inside.putArtifact("report.txt", new TextEncoder().encode("ada's"));
    await inside.inside.report({ type: "task.done", data: {} });
    await bob.sandboxes.create(named("box"));
    expect(await textOf(await ada.inside.readArtifact("box", "report.txt"))).toBe("ada's");
    expect(await bob.inside.artifacts("box")).toEqual([]);
    await refused([
      bob.inside.artifacts(id),
      bob.inside.readArtifact(id, "report.txt"),
      bob.inside.readArtifact("box", "report.txt"),
      bob.inside.events(id),
      bob.inside.view(id),
      bob.inside.tell(id, { text: "Do as I say." }),
    ]);
    await bob.inside.tell("box", { text: "For my own." });
    expect(await bob.inside.events("box")).toEqual([]);
    expect(await inside.inside.takeMessages()).toEqual([]);
  });

  test("is a run's owner's when the sandbox is gone", async () => {
    const { ada, bob } = await twoOwners();
    const run = await endedRun({ owner: "ada", name: "fix" });
    expect(await ada.inside.artifacts(run)).toEqual([]);
    await refused([bob.inside.artifacts(run), bob.inside.artifacts("fix"), bob.inside.readArtifact(run, "a")]);
  });
});

function incidentOf(subject: Incident["subject"], { owner, run = null }: { owner: string | null; run?: string | null }): Incident {
  const at = new Date().toISOString();
  const seen = { stats: null, processes: [], events: [], output: [], missing: [] };
  return { id: newId("inc"), at, subject, run, owner, condition: "dead", why: `${owner}'s`, outcome: null, ...seen };
}

describe("health", () => {
  test("is that of one's own sandboxes; incidents are one's own, also when what they are of is gone", async () => {
    const { ada, bob, admin } = await twoOwners();
    const incidents = createIncidentStore({ stateDir: stateDir() });
    const things: Record<string, { sandbox: string; run: string; incidents: string[] }> = {};
    for (const [owner, client] of Object.entries({ ada, bob })) {
      const { id: sandbox } = await client.sandboxes.create(named("box"));
      const run = await endedRun({ owner });
      const kept = [incidentOf({ kind: "sandbox", id: sandbox }, { owner }), incidentOf({ kind: "driver", id: run }, { owner, run })];
      for (const each of kept) await incidents.keep(each);
      things[owner] = { sandbox, run, incidents: kept.map(({ id }) => id).sort() };
    }
    // Of a station before there were owners.
    const nobodys = incidentOf({ kind: "sandbox", id: "sb_aaaaaaaaaaaa" }, { owner: null });
    await incidents.keep(nobodys);
    const pairs = [
      [ada, "ada", "bob"],
      [bob, "bob", "ada"],
    ] as const;
    for (const [client, own, other] of pairs) {
      const { subjects } = await client.health.list();
      expect(subjects.filter(({ subject }) => subject.kind !== "station").map(({ subject }) => subject.id)).toEqual([things[own]?.sandbox]);
      expect((await client.health.incidents()).map(({ id }) => id).sort()).toEqual(things[own]?.incidents);
      const others = [...(things[other]?.incidents ?? []), nobodys.id];
      await refused(others.flatMap((id) => [client.health.incident(id), client.health.incident(id.slice(0, 12))]));
      for (const id of things[own]?.incidents ?? []) expect((await client.health.incident(id)).why).toBe(`${own}'s`);
    }
    await ada.sandboxes.remove("box");
    expect(await ada.health.incidents()).toHaveLength(2);
    expect(await admin.health.incidents()).toHaveLength(5);
  });
});

describe("the queue", () => {
  test("shows one's own runs, which nobody else moves, takes or stops", async () => {
    const { ada, bob, admin } = await twoOwners();
    const startAt = "2100-01-01T00:00:00Z";
    const file = join(base(), "model.yaml");
    await writeFile(file, "turns: [{ say: Done. }]\n");
    const wait = async (owner: string) => {
      const { run } = await station().runs.start({ task: `${owner}'s`, name: "later", model: `scripted:${file}`, startAt }, { owner });
      return run;
    };
    const [hers, his] = [await wait("ada"), await wait("bob")];
    const before = await ada.runs.get(hers);
    expect(await bob.runs.queue()).toMatchObject({ total: 1, runs: [{ run: his, owner: "bob" }] });
    expect(JSON.stringify(await bob.runs.queue())).not.toContain("ada");
    await refused([
      bob.runs.prioritize(hers, { priority: 1 }),
      bob.runs.label(hers, { team: "his" }),
      bob.runs.adopt(hers),
      bob.runs.stop(hers),
      bob.runs.pause(hers),
      bob.runs.resume(hers),
    ]);
    expect((await bob.runs.prioritize("later", { priority: 7 })).run).toBe(his);
    expect(await ada.runs.get(hers)).toEqual(before);
    expect((await admin.runs.queue()).total).toBe(2);
  });
});

describe("snapshots and uploads", () => {
  test("snapshots come in pages, and are narrowed by sandbox, name, runtime and time", async () => {
    const { ada } = await twoOwners();
    for (const box of ["one", "two"]) {
      await ada.sandboxes.create(named(box));
      for (const name of ["first", "second"]) await ada.sandboxes.snapshot(box, { name: `${box}-${name}` });
    }
    const names = async (query: Parameters<typeof ada.sandboxes.snapshots>[0]) =>
      (await ada.sandboxes.snapshots(query)).snapshots.map(({ name }) => name);
    const all = await names({});
    expect(all.toSorted()).toEqual(["one-first", "one-second", "two-first", "two-second"]);
    const seen: (string | null)[] = [];
    let cursor: string | null = null;
    do {
      const page: Awaited<ReturnType<typeof ada.sandboxes.snapshots>> = await ada.sandboxes.snapshots({
        limit: 3,
        ...(cursor !== null && { cursor }),
      });
      seen.push(...page.snapshots.map(({ name }) => name));
      cursor = page.next;
    } while (cursor !== null);
    expect(seen).toEqual(all);
    const { id: sandbox } = await ada.sandboxes.get("two");
    expect((await names({ sandbox })).toSorted()).toEqual(["two-first", "two-second"]);
    expect(await names({ name: "one-second" })).toEqual(["one-second"]);
    expect(await names({ runtime: "docker" })).toEqual([]);
    expect(await names({ createdBefore: "2020-01-01T00:00:00Z" })).toEqual([]);
    await expect(names({ cursor: "nonsense" })).rejects.toMatchObject({ code: "invalid" });
  });

  test("of somebody else's are no template, no workspace, and not removed", async () => {
    const { ada, bob } = await twoOwners();
    for (const client of [ada, bob]) {
      await client.sandboxes.create(named("box"));
      await client.sandboxes.snapshot("box", { name: "base" });
    }
    const [hers] = (await ada.sandboxes.snapshots()).snapshots;
    const [his] = (await bob.sandboxes.snapshots()).snapshots;
    expect(hers?.id).not.toBe(his?.id);
    await refused([bob.sandboxes.removeSnapshot(hers?.id ?? ""), bob.sandboxes.create({ snapshot: hers?.id ?? "" })]);
    await bob.sandboxes.removeSnapshot("base");
    expect((await ada.sandboxes.snapshots()).snapshots).toEqual([hers]);
    const own = ownedStation(station(), { owner: "ada", sees: "own" });
    const { id: upload } = await own.uploads.put(packFolder(join(base(), "work")));
    expect(await bob.uploads.list()).toEqual([]);
    const origin = { machine: "m".repeat(26), host: "bobs", folder: "/home/bob/work" };
    await refused([
      bob.uploads.get(upload),
      bob.uploads.remove(upload),
      bob.sandboxes.create({ uploaded: { upload, origin } }),
      bob.sandboxes.create({ uploadedMounts: [{ upload, target: "/mnt" }] }),
      bob.runs.start({ task: "x", model: "openai/none", settings: { uploadedMounts: [{ upload, target: "/mnt" }] } }),
    ]);
    expect((await ada.uploads.get(upload)).id).toBe(upload);
    expect(defects).toEqual([]);
  });
});
