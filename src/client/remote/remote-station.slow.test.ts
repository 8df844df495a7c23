import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "vitest";
import { useServer } from "../../../test/support/api-station.ts";
import { all, describeEachWay, type VerbTests } from "../../../test/support/remote-stations.ts";

const server = useServer();
const { station, base, endedRun } = server;

async function agentFile(content: string): Promise<string> {
  const folder = join(base(), "agents");
  await mkdir(folder, { recursive: true });
  const file = join(folder, "a.prompt");
  await writeFile(file, content);
  return file;
}

const tests: VerbTests<"sessions" | "agents" | "machine" | "tokens" | "audit" | "health" | "uploads" | "secrets"> = {
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
    async applied(reached) {
      const run = await endedRun();
      expect(await reached.sessions.applied(run)).toEqual({ session: run, applies: [], diff: null });
      await expect(reached.sessions.applied(run, { apply: 7 })).rejects.toMatchObject({ code: "not_found" });
      await expect(reached.sessions.applied("no-such")).rejects.toMatchObject({ code: "not_found" });
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
    async refresh(reached) {
      await expect(all(reached.sessions.refresh(await endedRun()))).rejects.toMatchObject({ code: "unsupported" });
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
    async models(reached) {
      expect(await reached.machine.models()).toEqual(await station().machine.models());
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
    async snapshotUsage(reached) {
      expect(await reached.machine.snapshotUsage()).toEqual({ usages: [], bytes: 0, isMinimum: false });
      await expect(reached.machine.snapshotUsage({ of: "no-such" })).rejects.toMatchObject({ code: "not_found" });
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
