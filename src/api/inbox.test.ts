import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { useServer } from "../../test/support/api-station.ts";
import { type Client, connect } from "../client/connect.ts";
import type { InboxItem } from "../contract/inbox/inbox-verbs.ts";
import { createSqliteLog } from "../log/sqlite/log.ts";
import { goldenEvent, putThing } from "./testing-durable.ts";

const { server, token, base, station, defects } = useServer();

const clientOf = async (owner: string): Promise<Client> => connect({ url: server().status.url, token: await token("run", { owner }) });
const waiting = (person: string | null) => ({
  type: "driven.waiting",
  version: 1,
  data: { due: null, children: [], person, signal: null },
});
const asking = { definition: { name: "release", steps: [{ name: "sure", kind: "approval", text: "Release it?" }] } };
const inboxOf = async (client: Client): Promise<string[]> =>
  (await client.inbox.list()).items.map(({ of, asks, text }: InboxItem) => `${of.kind} ${of.id} ${asks} ${text}`).sort();

/** Starts a run that waits with a question about its budget. */
async function askingRun(owner: string): Promise<string> {
  const file = join(base(), "asks.yaml");
  await writeFile(file, "turns: [{ calls: [{ tool: shell, arguments: { command: 'true' } }] }, { say: Done. }]\n");
  const { run } = await station().runs.start(
    { task: "Ask.", model: `scripted:${file}`, budgets: { steps: 1 }, settings: { onBudget: "ask" }, attended: true, detached: true },
    { owner },
  );
  await expect.poll(async () => (await station().runs.get(run)).asked.length).toBe(1);
  return run;
}

test("lists what waits for a person in the owner's inbox until it is answered", async () => {
  const [ada, bob] = [await clientOf("ada"), await clientOf("bob")];
  const run = await askingRun("ada");
  const { id: workflow } = await ada.workflows.start(asking);
  await ada.workflows.wait(workflow, { orPerson: true });
  await using log = createSqliteLog({ path: join(base(), "state", "log.db") });
  const spec = await putThing(log, "spec", "ada", [waiting("agree to design (version 2)")]);
  const open = await putThing(log, "ship", "ada", [waiting("May it be merged?")]);
  const failed = { ...goldenEvent("ship.step_failed.1"), data: { ...(goldenEvent("ship.step_failed.1").data as object), nextAt: null } };
  const blocked = await putThing(log, "ship", "ada", [goldenEvent("ship.step_started.1"), failed, waiting("It was refused.")]);
  const merge = await putThing(log, "merge", "ada", [waiting("a.txt is in conflict")]);
  // None of these waits for a person: they wait for a timer, are paused or have ended.
  await putThing(log, "workflow", "ada", [waiting(null)]);
  await putThing(log, "ship", "ada", [waiting("May it be merged?"), goldenEvent("driven.paused.1")]);
  await putThing(log, "merge", "ada", [waiting("b.txt"), goldenEvent("driven.paused.1")]);
  await putThing(log, "spec", "ada", [waiting("agree"), goldenEvent("driven.ended.1")]);

  const all = [
    `merge ${merge} conflict a.txt is in conflict`,
    `run ${run} budget ${(await ada.runs.get(run)).asked[0]?.text}`,
    `ship ${blocked} failure It was refused.`,
    `ship ${open} merge May it be merged?`,
    `spec ${spec} gate agree to design (version 2)`,
    `workflow ${workflow} approval Release it?`,
  ];
  expect(await inboxOf(ada)).toEqual(all.sort());
  expect((await ada.inbox.list()).isWhole).toBe(true);
  expect(await inboxOf(bob)).toEqual([]);
  expect(await inboxOf(connect({ url: server().status.url, token: await token("admin") }))).toEqual(all);

  await ada.workflows.approve(workflow, { approved: true });
  await ada.workflows.wait(workflow);
  await ada.runs.answer(run, { answer: "deny" });
  await expect.poll(() => inboxOf(ada)).toEqual(all.filter((each) => !each.startsWith("run ") && !each.startsWith("workflow ")));
  expect(defects).toEqual([]);
});

test("lists a sandbox that restarts did not fix until it is removed", async () => {
  const [ada, bob] = [await clientOf("ada"), await clientOf("bob")];
  const { id } = await ada.sandboxes.create({ runtime: "fake", spec: { name: "stubborn" } });
  await using log = createSqliteLog({ path: join(base(), "state", "log.db") });
  expect((await ada.inbox.list()).items.filter(({ of }) => of.kind === "sandbox")).toEqual([]);
  const subject = { kind: "sandbox", id };
  await log.append(`sandbox/${id}`, [
    { type: "health.changed", version: 1, data: { subject, level: "unresponsive", misses: 3, condition: "stopped" } },
    { type: "health.escalated", version: 1, data: { subject, incident: null, text: "It was restarted 3 times within an hour." } },
  ]);

  const [item] = (await ada.inbox.list()).items.filter(({ of }) => of.kind === "sandbox");
  expect(item).toMatchObject({ of: { kind: "sandbox", id }, owner: "ada", title: "stubborn", asks: "unresponsive", question: null });
  expect(item?.text).toContain(`Sandbox ${id} does not respond: it was stopped (SIGSTOP)`);
  expect((await bob.inbox.list()).items.filter(({ of }) => of.kind === "sandbox")).toEqual([]);

  await ada.sandboxes.remove(id);
  expect((await ada.inbox.list()).items.filter(({ of }) => of.kind === "sandbox")).toEqual([]);
  expect(defects).toEqual([]);
});
