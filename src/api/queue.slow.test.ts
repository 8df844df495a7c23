import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { useServer } from "../../test/support/api-station.ts";
import { all } from "../../test/support/remote-stations.ts";
import { type Client, connect } from "../client/connect.ts";
import { socketFetch } from "../client/socket-fetch.ts";
import type { RunQueueView } from "../contract/run/run-queue.ts";
import type { Program } from "../runtimes/fake/program.ts";

/** Programs block until the test opens their gate. */
const gates = new Map<string, PromiseWithResolvers<void>>();
const gate = (name: string) => {
  const known = gates.get(name) ?? Promise.withResolvers<void>();
  gates.set(name, known);
  return known;
};
/** The program that the tool `bash` starts. */
const sh: Program = async ({ argv }) => {
  const [word, name = ""] = (argv.at(-1) ?? "").split(" ");
  if (word === "work-until") await gate(name).promise;
  return 0;
};

const { server, station, ask, base, defects, token } = useServer({
  programs: { sh },
  bounds: { runsMax: 2, runsPerOwnerMax: 2, queuedMax: 6, queuedPerOwnerMax: 4, sandboxesMax: 5 },
});
const client = (): Client => connect({ url: "http://station", fetch: socketFetch(server().socketPath) });

let count = 0;
/** Creates the model of a run that works until its gate opens. */
async function gated(): Promise<{ model: string; open: () => void }> {
  const name = `gate${count++}`;
  const file = join(base(), `${name}.yaml`);
  const turns = [{ calls: [{ tool: "bash", arguments: { command: `work-until ${name}` } }] }, { say: "Done." }];
  await writeFile(file, JSON.stringify({ turns }));
  return { model: `scripted:${file}`, open: () => gate(name).resolve() };
}

async function startGated(more: Partial<Parameters<Client["runs"]["start"]>[0]> = {}) {
  const { model, open } = await gated();
  const view = await client().runs.start({ task: "Work.", model, ...more });
  return { ...view, open };
}

/** Resolves with the first state of the queue that meets the condition. */
async function queueWhen(wanted: (queue: RunQueueView) => boolean): Promise<RunQueueView> {
  for await (const _ of client().runs.allEvents({ signal: AbortSignal.timeout(60_000) })) {
    const queue = await client().runs.queue();
    if (wanted(queue)) return queue;
  }
  throw new Error("the queue did not come to that");
}

async function ended(run: string): Promise<string | null> {
  for await (const _ of client().runs.events(run, { follow: true }));
  return (await client().runs.get(run)).finish;
}

async function claimedAt(run: string): Promise<string> {
  for await (const event of client().runs.events(run)) if (event.type === "run.claimed") return event.at;
  throw new Error("the run was never driven");
}

describe("waiting runs", () => {
  test("exist at once, report their position and reason, and start when possible", async () => {
    const works = [await startGated(), await startGated()];
    await queueWhen(({ atWork }) => atWork?.runs === 2);
    const third = await startGated();
    const fourth = await startGated({ priority: 50 });
    expect(await client().runs.get(third.run)).toMatchObject({
      status: "queued",
      queue: { position: 2, waitsFor: "runs", why: "queued behind 1" },
    });
    expect(await client().runs.get(fourth.run)).toMatchObject({ status: "queued", queue: { position: 1, priority: 50 } });
    expect((await client().runs.queue()).runs.map(({ run }) => run)).toEqual([fourth.run, third.run]);
    expect((await client().runs.prioritize(third.run, { priority: 100 })).queue).toMatchObject({ position: 1, priority: 100 });
    expect(server().status.runs).toEqual({ atWork: 2, queued: 2 });
    works[0]?.open();
    expect(await ended(works[0]?.run ?? "")).toBe("done");
    await queueWhen(({ total }) => total === 1);
    expect((await client().runs.get(third.run)).status).toBe("running");
    for (const each of [...works, third, fourth]) each.open();
    for (const { run } of [...works, third, fourth]) expect(await ended(run)).toBe("done");
    expect(defects).toEqual([]);
  });

  test("of several owners take turns, starting with an owner without runs", async () => {
    const works = [await startGated(), await startGated()];
    await queueWhen(({ atWork }) => atWork?.runs === 2);
    const waits = [await startGated({ priority: 100 }), await startGated()];
    const bob = connect({ url: server().status.url, token: await token("admin", { owner: "bob" }) });
    const { model, open } = await gated();
    const others = await bob.runs.start({ task: "Work.", model });
    expect((await client().runs.queue()).runs.map(({ run }) => run)).toEqual([others.run, ...waits.map(({ run }) => run)]);
    works[0]?.open();
    await queueWhen(({ runs }) => !runs.some(({ run }) => run === others.run));
    expect((await bob.runs.get(others.run)).status).toBe("running");
    expect((await client().runs.get(waits[0]?.run ?? "")).status).toBe("queued");
    open();
    for (const each of [...works, ...waits]) each.open();
    for (const { run } of [...works, ...waits, others]) expect(await ended(run)).toBe("done");
  });

  test("are limited in number, and a stopped run frees its place", async () => {
    const works = [await startGated(), await startGated()];
    await queueWhen(({ atWork }) => atWork?.runs === 2);
    const waiting = [await startGated(), await startGated(), await startGated(), await startGated()];
    const { model } = await gated();
    const refused = await ask("/v1/runs", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ task: "Work.", model }),
    });
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "15"]);
    expect(await refused.json()).toMatchObject({
      code: "busy",
      retryable: true,
      detail: expect.stringMatching(/4 runs of local are waiting/),
    });
    await client().runs.stop(waiting[1]?.run ?? "");
    expect(await client().runs.get(waiting[1]?.run ?? "")).toMatchObject({ status: "ended", finish: "cancelled", sandbox: null });
    const another = await startGated();
    for (const each of [...works, ...waiting, another]) each.open();
    expect(await ended(another.run)).toBe("done");
  });

  test("start no earlier than requested, and not while they are paused", async () => {
    const later = await startGated({ startAt: new Date(Date.now() + 3_600_000).toISOString() });
    expect((await client().runs.get(later.run)).queue).toMatchObject({ position: null, waitsFor: "time" });
    const startAt = new Date(Date.now() + 300).toISOString();
    const soon = await startGated({ startAt });
    soon.open();
    expect(await ended(soon.run)).toBe("done");
    expect((await claimedAt(soon.run)) >= startAt).toBe(true);
    const works = [await startGated(), await startGated()];
    await queueWhen(({ atWork }) => atWork?.runs === 2);
    await expect(client().runs.resume(works[0]?.run ?? "")).rejects.toMatchObject({
      code: "conflict",
      hint: expect.stringContaining("attach"),
    });
    const held = await startGated();
    await client().runs.pause(held.run);
    for (const each of works) each.open();
    for (const { run } of works) await ended(run);
    expect(await client().runs.get(held.run)).toMatchObject({ status: "queued", queue: { waitsFor: "resume" } });
    expect((await client().runs.resume(held.run)).status).not.toBe("paused");
    held.open();
    expect(await ended(held.run)).toBe("done");
    await client().runs.stop(later.run);
  });

  test("of one session are driven one at a time", async () => {
    const works = [await startGated(), await startGated()];
    await queueWhen(({ atWork }) => atWork?.runs === 2);
    const first = await startGated({ session: { id: "shared" }, priority: 1 });
    const second = await startGated({ session: { id: "shared" } });
    for (const each of works) each.open();
    for (const { run } of works) await ended(run);
    // Another run may still be finishing, and counts until then.
    const queue = await queueWhen(({ atWork, runs }) => atWork?.runs === 1 && runs.length === 1);
    expect(queue.runs[0]).toMatchObject({ run: second.run, waitsFor: "session", why: `its session shared is in use by ${first.run}` });
    first.open();
    second.open();
    expect([await ended(first.run), await ended(second.run)]).toEqual(["done", "done"]);
  });

  test("include the next turn of a run that has ended", async () => {
    const { model } = await gated();
    await writeFile(model.slice("scripted:".length), JSON.stringify({ turns: [{ say: "One." }, { say: "Two." }] }));
    const { run } = await client().runs.start({ task: "Say.", model });
    expect(await ended(run)).toBe("done");
    const works = [await startGated(), await startGated()];
    await queueWhen(({ atWork }) => atWork?.runs === 2);
    const continued = await client().runs.continue(run, { text: "Go on." });
    expect(continued).toMatchObject({ run, status: "queued", queue: { position: 1 } });
    const [firstEvent] = await all(client().runs.events(run, { fromSeq: continued.seq }));
    expect(firstEvent).toMatchObject({ type: "message.received", data: { text: "Go on." } });
    for (const each of works) each.open();
    expect(await ended(run)).toBe("done");
  });
});

describe("sandbox limits", () => {
  test("refuse a run above a limit or the machine's memory, with a retry time", async () => {
    const create = (as?: string) =>
      ask("/v1/sandboxes", { method: "POST", headers: { "content-type": "application/json" }, body: "{}", ...(as && { as }) });
    for (let n = 0; n < 4; n++) await client().sandboxes.create({});
    const own = await create();
    expect([own.status, await own.json()]).toMatchObject([429, { code: "busy", detail: expect.stringContaining("one owner") }]);
    const bob = await token("run", { owner: "bob" });
    expect((await create(bob)).status).toBe(201);
    const refused = await create(bob);
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "15"]);
    const { model } = await gated();
    const waits = await client().runs.start({ task: "Work.", model });
    const { runs } = await queueWhen(({ total }) => total === 1);
    expect(runs[0]).toMatchObject({ run: waits.run, waitsFor: "sandboxes" });
    const much = client().runs.start({ task: "Work.", model, settings: { limits: { memoryBytes: 2 ** 50 } } });
    await expect(much).rejects.toMatchObject({ code: "invalid" });
    await client().runs.stop(waits.run);
  });
});

describe("a station that ends", () => {
  test("with drain takes no new work, finishes its runs and leaves the queue", async () => {
    const works = [await startGated(), await startGated()];
    await queueWhen(({ atWork }) => atWork?.runs === 2);
    const waits = await startGated();
    await client().shutDown({ drain: true });
    expect(server().status).toMatchObject({ draining: true, runs: { atWork: 2, queued: 1 } });
    expect((await client().runs.get(waits.run)).queue?.waitsFor).toBe("drain");
    await expect(startGated()).rejects.toMatchObject({ code: "unavailable", retryable: true });
    await expect(client().sandboxes.create({})).rejects.toMatchObject({ code: "unavailable" });
    expect(await server().askedToEnd).toMatchObject({ drain: true });
    for (const each of works) each.open();
    await server().drained();
    expect((await client().runs.get(waits.run)).status).toBe("queued");
    expect((await client().runs.get(works[0]?.run ?? "")).finish).toBe("done");
  });
});

describe("queue permissions", () => {
  test("let a token with the scope read see the queue, but change nothing", async () => {
    const as = await token("read");
    expect((await ask("/v1/queue", { as })).status).toBe(200);
    expect((await ask("/v1/runs/run_aaaaaaaaaaaa/adopt", { as, method: "POST" })).status).toBe(403);
  });

  test("do not allow prioritizing or adopting a run that works or has ended", async () => {
    const works = await startGated();
    await queueWhen(({ atWork }) => atWork?.runs === 1);
    await expect(client().runs.prioritize(works.run, { priority: 1 })).rejects.toMatchObject({ code: "conflict" });
    works.open();
    await ended(works.run);
    await expect(client().runs.adopt(works.run)).rejects.toMatchObject({ code: "conflict" });
    expect((await station().runs.queue()).total).toBe(0);
  });
});
