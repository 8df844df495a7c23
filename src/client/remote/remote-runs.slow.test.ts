import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "vitest";
import { useServer } from "../../../test/support/api-station.ts";
import { all, describeEachWay, type VerbTests } from "../../../test/support/remote-stations.ts";

const server = useServer();
const { station, base, endedRun } = server;

async function scripted(turns: string): Promise<string> {
  const file = join(base(), "model.yaml");
  await writeFile(file, `turns: [${turns}]\n`);
  return `scripted:${file}`;
}

const tests: VerbTests<"runs"> = {
  runs: {
    async start(reached) {
      const started = await reached.runs.start({ task: "Say so.", model: await scripted("{ say: Done. }"), agent: "coder" });
      expect(started).toMatchObject({ status: expect.stringMatching(/^(queued|running|ended)$/), agent: "coder" });
      expect(await reached.runs.wait(started.run)).toMatchObject({ status: "ended", finish: "done" });
      await expect(reached.runs.start({ task: "Say so.", model: "unknown/model" })).rejects.toMatchObject({ name: "CaissonError" });
    },
    async get(reached) {
      const run = await endedRun();
      expect(await reached.runs.get(run.slice(0, 12))).toEqual(await station().runs.get(run));
      await expect(reached.runs.get("run_aaaaaaaaaaaa")).rejects.toMatchObject({ code: "not_found" });
    },
    async timeline(reached) {
      const run = await endedRun();
      const timeline = await reached.runs.timeline(run);
      expect(timeline).toEqual(await station().runs.timeline(run));
      expect(timeline).toMatchObject({ run, from: null, steps: [{ step: 1, isInherited: false }], forks: [] });
    },
    async list(reached) {
      for (let count = 0; count < 3; count += 1) await endedRun();
      expect(await reached.runs.list()).toEqual(await station().runs.list());
      expect(await reached.runs.list({ parent: null, limit: 2 })).toEqual(await station().runs.list({ parent: null, limit: 2 }));
      expect((await reached.runs.list({ folder: base() })).runs).toEqual([]);
    },
    async events(reached) {
      const run = await endedRun();
      const wanted = await all(station().runs.events(run));
      expect(await all(reached.runs.events(run))).toEqual(wanted);
      expect(await all(reached.runs.events(run, { fromSeq: 2, follow: true }))).toEqual(wanted.slice(1));
    },
    async allEvents(reached) {
      const run = await endedRun();
      for await (const fed of reached.runs.allEvents({ afterPosition: 0 })) {
        expect(fed).toMatchObject({ run, seq: 1 });
        break;
      }
    },
    async replay(reached) {
      const run = await endedRun();
      const events = await all(reached.runs.replay(run.slice(0, 12)));
      expect(events.at(-1)).toMatchObject({ result: { run, isSame: true, tools: "recorded" } });
      await expect(all(reached.runs.replay("run_aaaaaaaaaaaa"))).rejects.toMatchObject({ code: "not_found" });
    },
    async lastPosition(reached) {
      await endedRun();
      expect(await reached.runs.lastPosition()).toBe(await station().runs.lastPosition());
    },
    async wait(reached) {
      const { run } = await reached.runs.start({ task: "Wait.", model: await scripted("{ say: Never., pauseMs: 60000 }") });
      const over = new AbortController();
      const waiting = reached.runs.wait(run, { signal: over.signal });
      over.abort();
      await expect(waiting).rejects.toMatchObject({ code: "cancelled" });
      await reached.runs.stop(run, { by: "test" });
    },
    async send(reached) {
      const run = await endedRun();
      await expect(reached.runs.send(run, { text: "More." })).rejects.toMatchObject({ code: "conflict" });
    },
    async answer(reached) {
      const run = await endedRun();
      await expect(reached.runs.answer(run, { answer: "allow", by: "test" })).rejects.toMatchObject({ name: "CaissonError" });
    },
    async pause(reached) {
      const run = await endedRun();
      await expect(reached.runs.pause(run, { text: "Wait." })).rejects.toMatchObject({ code: "conflict" });
    },
    async resume(reached) {
      const run = await endedRun();
      await expect(reached.runs.resume(run, { by: "test" })).rejects.toMatchObject({ code: "conflict" });
    },
    async continue(reached) {
      const run = await endedRun();
      const { seq } = await reached.runs.continue(run, {
        text: "Again.",
        by: "test",
        model: await scripted("{ say: One. }, { say: Two. }"),
      });
      expect(await reached.runs.wait(run)).toMatchObject({ finish: "done" });
      expect((await all(reached.runs.events(run, { fromSeq: seq + 1 }))).map(({ type }) => type)).toContain("run.ended");
    },
    async fork(reached) {
      const run = await endedRun();
      const [fork] = await reached.runs.fork(run, { by: "test", text: "Again.", model: await scripted("{ say: One. }, { say: Two. }") });
      expect(await reached.runs.wait(fork?.run ?? "")).toMatchObject({ finish: "done", forked: { run, step: 1 }, steps: 2 });
      await expect(reached.runs.fork(run, { by: "test", at: 9 })).rejects.toMatchObject({ code: "not_found" });
    },
    async rewind(reached) {
      const run = await endedRun();
      await expect(reached.runs.rewind(run, { to: 9, by: "test" })).rejects.toMatchObject({ code: "not_found" });
      const rewound = await reached.runs.rewind(run, { to: 0, by: "test" });
      expect(rewound).toMatchObject({ run: { steps: 0, paused: { why: "rewound" } }, files: [] });
      expect(await reached.runs.get(rewound.tail)).toMatchObject({ finish: "done", forked: { run } });
    },
    async prioritize(reached) {
      const run = await endedRun();
      await expect(reached.runs.prioritize(run, { priority: 1, by: "test" })).rejects.toMatchObject({ code: "conflict" });
    },
    async label(reached) {
      const run = await endedRun();
      const before = await reached.runs.get(run);
      const labelled = await reached.runs.label(run, { team: "walls", gone: null }, { by: "test" });
      expect(labelled).toMatchObject({ labels: { team: "walls" }, seq: before.seq + 1, finish: before.finish });
      expect((await reached.runs.list({ label: ["team=walls"] })).runs.map((view) => view.run)).toEqual([run]);
      // Repeating the same labels adds no event. A subscriber to an ended run still gets the end, and nothing more.
      expect(await reached.runs.label(run, { team: "walls" }, { by: "test" })).toEqual(labelled);
      const types = (await all(reached.runs.events(run, { follow: true }))).map(({ type }) => type);
      expect(types.slice(-2)).toEqual(["run.ended", "run.labelled"]);
      expect(await reached.runs.wait(run)).toEqual(labelled);
      expect((await reached.runs.label(run, { team: null }, { by: "test" })).labels).toEqual({});
      await expect(reached.runs.label(run, { "caisson.driven": "x" }, { by: "test" })).rejects.toMatchObject({ code: "invalid" });
      await expect(reached.runs.label(run, {}, { by: "test" })).rejects.toMatchObject({ code: "invalid" });
    },
    async adopt(reached) {
      await expect(reached.runs.adopt("run_aaaaaaaaaaaa", { by: "test" })).rejects.toMatchObject({ code: "not_found" });
    },
    async queue(reached) {
      expect(Object.keys(await reached.runs.queue())).toEqual(Object.keys(await station().runs.queue()));
    },
    async stop(reached) {
      const { run } = await reached.runs.start({ task: "Wait.", model: await scripted("{ say: Never., pauseMs: 60000 }") });
      await reached.runs.stop(run, { by: "test" });
      expect(await reached.runs.get(run)).toMatchObject({ finish: "cancelled" });
    },
    async remove(reached) {
      const run = await endedRun();
      await reached.runs.remove(run);
      await expect(reached.runs.get(run)).rejects.toMatchObject({ code: "not_found" });
    },
    async check(reached) {
      await endedRun();
      expect(await reached.runs.check()).toEqual([]);
    },
  },
};

describeEachWay(server, tests);
