import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "vitest";
import { useServer } from "../../api/testing.ts";
import { all, describeEachWay, type VerbTests } from "./testing.ts";

const server = useServer();
const { station, base, endedRun } = server;

async function scripted(turns: string): Promise<string> {
  const file = join(base(), "model.yaml");
  await writeFile(file, `turns: [${turns}]\n`);
  return `scripted:${file}`;
}

async function agentFile(content: string): Promise<string> {
  const folder = join(base(), "agents");
  await mkdir(folder, { recursive: true });
  const file = join(folder, "a.prompt");
  await writeFile(file, content);
  return file;
}

const tests: VerbTests<"runs" | "sessions" | "agents" | "machine" | "tokens" | "audit" | "health" | "uploads" | "secrets"> = {
  runs: {
    async start(reached) {
      const started = await reached.runs.start({ task: "Say so.", model: await scripted("{ say: Done. }"), agent: "coder" });
      expect(started).toMatchObject({ status: expect.stringMatching(/^(queued|running|ended)$/), agent: "coder" });
      expect(await reached.runs.wait(started.run)).toMatchObject({ status: "ended", finish: "done" });
      await expect(reached.runs.start({ task: "Say so.", model: "nobody/nothing" })).rejects.toMatchObject({ name: "CaissonError" });
    },
    async get(reached) {
      const run = await endedRun();
      expect(await reached.runs.get(run.slice(0, 12))).toEqual(await station().runs.get(run));
      await expect(reached.runs.get("run_aaaaaaaaaaaa")).rejects.toMatchObject({ code: "not_found" });
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
      // Once more is no event; who follows a run that has ended is still told of its end, and that is all.
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
  sessions: {
    async get(reached) {
      const run = await endedRun();
      expect(await reached.sessions.get(run)).toEqual(await station().sessions.get(run));
      await expect(reached.sessions.get("no-such")).rejects.toMatchObject({ code: "not_found" });
    },
    async list(reached) {
      await endedRun();
      expect(await reached.sessions.list()).toEqual(await station().sessions.list());
      expect((await reached.sessions.list()).sessions).toHaveLength(1);
    },
    async diff(reached) {
      await expect(reached.sessions.diff("no-such")).rejects.toMatchObject({ code: "not_found" });
    },
    async unapplied(reached) {
      const run = await endedRun();
      expect(await reached.sessions.unapplied(run)).toEqual(await station().sessions.unapplied(run));
    },
    async patch(reached) {
      await expect(all(reached.sessions.patch("no-such"))).rejects.toMatchObject({ code: "not_found" });
    },
    async changes(reached) {
      await expect(all(reached.sessions.changes("no-such"))).rejects.toMatchObject({ code: "not_found" });
    },
    async note(reached) {
      await expect(reached.sessions.note("no-such", {} as never)).rejects.toMatchObject({ name: "CaissonError" });
    },
    async apply(reached) {
      await expect(reached.sessions.apply("no-such")).rejects.toMatchObject({ code: "not_found" });
    },
    async undo(reached) {
      await expect(reached.sessions.undo("run_aaaaaaaaaaaa")).rejects.toMatchObject({ code: "not_found" });
    },
    async points(reached) {
      const run = await endedRun();
      expect(await reached.sessions.points(run)).toEqual(await station().sessions.points(run));
      expect(await reached.sessions.points(run)).toMatchObject([{ run, step: 0 }]);
    },
    async files(reached) {
      await expect(reached.sessions.files("no-such")).rejects.toMatchObject({ code: "not_found" });
    },
    async readFile(reached) {
      await expect(all(reached.sessions.readFile("no-such", { path: "a" }))).rejects.toMatchObject({ code: "not_found" });
    },
    async fork(reached) {
      const run = await endedRun();
      expect(await reached.sessions.fork(run, { name: "another" })).toMatchObject({ id: "another", forked: { from: run } });
      await expect(reached.sessions.fork(run, { name: "another" })).rejects.toMatchObject({ code: "exists" });
    },
    async branch(reached) {
      await expect(reached.sessions.branch("no-such")).rejects.toMatchObject({ code: "not_found" });
    },
    async discard(reached) {
      const run = await endedRun();
      expect(await reached.sessions.discard(run)).toBe(run);
      expect((await reached.sessions.list()).sessions).toEqual([]);
    },
    async unlock(reached) {
      const run = await endedRun();
      expect(await reached.sessions.unlock(run, { force: true })).toBe(run);
    },
    async cleanup(reached) {
      const run = await endedRun();
      expect(await reached.sessions.cleanup({ olderThanMs: 0, dryRun: true })).toEqual({ removed: [run], dryRun: true });
    },
  },
  agents: {
    async list(reached) {
      expect(await reached.agents.list()).toEqual(await station().agents.list());
    },
    async show(reached) {
      expect(await reached.agents.show("coder")).toEqual(await station().agents.show("coder"));
    },
    async validate(reached) {
      expect(await reached.agents.validate(await agentFile("---\ndescription: Greets.\n---\nHello."), { as: "a.prompt" })).toBeNull();
      expect(await reached.agents.validate(await agentFile("---\nmodel: [\n---\n"), { as: "a.prompt" })).toMatchObject({ code: "invalid" });
    },
    async filesAt(reached) {
      const file = await agentFile("---\ndescription: Greets.\n---\nHello.");
      expect(await reached.agents.filesAt(file, { as: "a" })).toEqual([file]);
    },
    async judge(reached) {
      expect(await reached.agents.judge(await agentFile("---\ndescription: Greets.\n---\nHello."))).toMatchObject({
        status: "nothing to trust",
      });
    },
    async trust(reached) {
      const file = await agentFile("---\ndescription: Greets.\n---\nHello.");
      await expect(reached.agents.trust(file, { digest: "another" })).rejects.toMatchObject({ code: "conflict" });
    },
    async trusted(reached) {
      expect(await reached.agents.trusted()).toEqual([]);
    },
    async revoke(reached) {
      expect(await reached.agents.revoke(join(base(), "nothing"))).toEqual([]);
    },
  },
  machine: {
    async doctor(reached) {
      expect(await reached.machine.doctor({ only: ["fake"] })).toMatchObject({ runtimes: [{ name: "fake" }] });
    },
    async choose(reached) {
      expect(await reached.machine.choose({})).toEqual(await station().machine.choose({}));
    },
    attack: "it takes minutes, and streams as `conformance` does",
    conformance: "it is tried with a real runtime by `caisson doctor --conformance`",
    async stats(reached) {
      expect(Object.keys(await reached.machine.stats())).toEqual(Object.keys(await station().machine.stats()));
    },
    async usage(reached) {
      expect(await reached.machine.usage()).toMatchObject({ stateDir: expect.any(String) });
    },
    async prune(reached) {
      await endedRun();
      expect(await reached.machine.prune({ olderThanMs: 0, dryRun: true })).toEqual(
        await station().machine.prune({ olderThanMs: 0, dryRun: true }),
      );
    },
    async backup(reached) {
      expect(
        Buffer.concat(await all(reached.machine.backup()))
          .subarray(257, 262)
          .toString(),
      ).toBe("ustar");
    },
    async restore(reached) {
      await expect(reached.machine.restore("/nowhere")).rejects.toMatchObject({ name: "CaissonError" });
    },
    async find(reached) {
      const run = await endedRun();
      expect(await reached.machine.find(run)).toEqual(await station().machine.find(run));
    },
  },
  tokens: {
    async create(reached) {
      expect(await reached.tokens.create({ name: "another", scope: "read" })).toMatchObject({ name: "another", token: expect.any(String) });
    },
    async list(reached) {
      expect(await reached.tokens.list()).toEqual(await station().tokens.list());
    },
    async rotate(reached) {
      const { id, token: before } = await reached.tokens.create({ name: "turning", scope: "read" });
      expect((await reached.tokens.rotate(id)).token).not.toBe(before);
    },
    async revoke(reached) {
      const { id } = await reached.tokens.create({ name: "passing", scope: "read" });
      expect(await reached.tokens.revoke("passing")).toMatchObject({ id });
    },
  },
  audit: {
    async list(reached) {
      expect(await reached.audit.list()).toMatchObject({ entries: expect.any(Array) });
    },
  },
  health: {
    async list(reached) {
      expect(await reached.health.list()).toMatchObject({ watched: false });
    },
    async incidents(reached) {
      expect(await reached.health.incidents()).toEqual([]);
    },
    async incident(reached) {
      await expect(reached.health.incident("no-such")).rejects.toMatchObject({ name: "CaissonError" });
    },
  },
  uploads: {
    put: "what is kept is tried where folders are sent",
    async list(reached) {
      expect(await reached.uploads.list()).toEqual([]);
    },
    async get(reached) {
      await expect(reached.uploads.get("up_aaaaaaaaaaaa")).rejects.toMatchObject({ code: "not_found" });
    },
    async remove(reached) {
      await expect(reached.uploads.remove("up_aaaaaaaaaaaa")).rejects.toMatchObject({ code: "not_found" });
    },
    sweep: "a station does it by itself",
  },
  secrets: {
    async set(reached) {
      const hosts = ["api.example.com"];
      expect(await reached.secrets.set("KEY", { value: "not told", hosts } as never)).toMatchObject({ name: "KEY", hosts });
      expect(JSON.stringify(await reached.secrets.list())).not.toContain("not told");
    },
    async list(reached) {
      expect(await reached.secrets.list()).toEqual([]);
    },
    async remove(reached) {
      await expect(reached.secrets.remove("KEY")).rejects.toMatchObject({ code: "not_found" });
    },
  },
};

describeEachWay(server, tests);
