import { writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import { createStore } from "../sandbox/store.ts";
import { ownedStation } from "../station/tenancy/owned-station.ts";
import { refused, useOwners } from "./testing-owners.ts";

/** Two owners who use the same names, and may neither see nor change each other's resources. */
const { base, station, endedRun, defects, stateDir, twoOwners } = useOwners();

describe("secrets", () => {
  const value = "ghp_Zx81kQpW0vT5yLr7Nc2Md9Hs4Jg6Fb3A";

  test("can only be seen, replaced, removed and used by their owner", async () => {
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
      const { spec: config } = await store.read((await client.sandboxes.create({ secretNames: ["TOKEN"] })).id);
      expect(config.secrets.TOKEN?.hosts).toEqual([`${owner}.test`]);
      files.push(config.secrets.TOKEN?.from);
    }
    expect(files[0]).not.toEqual(files[1]);
    await bob.secrets.remove("TOKEN");
    expect(await ada.secrets.list()).toHaveLength(1);
  });
});

describe("webhooks", () => {
  test("can only be listed, changed and tested by their owner, even by name", async () => {
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
    expect(await admin.webhooks.list()).toEqual([{ ...before, url: "https://ada.test/…" }]);
  });

  test("deliver only events of their owner's runs", async () => {
    const payloads: { subject: string }[] = [];
    const receiver = createServer(async (request, response) => {
      payloads.push((await json(request)) as { subject: string });
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
      await expect.poll(() => payloads.length, { timeout: 60_000 }).toBe(1);
      expect(payloads[0]?.subject).toBe(mine);
      await expect.poll(async () => (await bob.webhooks.deliveries("mine")).map(({ run }) => run), { timeout: 60_000 }).toEqual([mine]);
      // Another owner's deliveries are not visible.
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
  test("can only be created, seen, merged and cancelled by the owner of the run", async () => {
    const { ada, bob, admin } = await twoOwners();
    const run = await endedRun({ owner: "ada" });
    // The remote does not exist: only ownership matters here.
    const request = { of: run, to: "https://git.invalid/team/project.git", forge: "git", withoutTests: "it has no tests" } as const;
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
    await refused([bob.ships.get(id.slice(0, 8))]);
    // This cannot be an id prefix, so the answer does not depend on who owns which ship.
    for (const caller of [ada, bob, admin]) await expect(caller.ships.get("ship_")).rejects.toMatchObject({ code: "invalid" });
    expect(await ada.ships.get(id.slice(0, 8))).toMatchObject({ id, title: expect.any(String) });
    await expect(ada.ships.start({ ...request, to: "/srv/git/project.git" })).rejects.toMatchObject({ code: "denied" });
    await expect(ada.ships.start({ ...request, allowPrivate: true })).rejects.toMatchObject({ code: "denied" });
  });
});

describe("the queue", () => {
  test("shows the caller's runs, which no other owner can move, adopt or stop", async () => {
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
