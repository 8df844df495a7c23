import { join } from "node:path";
import { AgentDefinition } from "../src/contract/agent/agent.ts";
import type { NewEvent } from "../src/log/log.ts";
import { createSqliteLog } from "../src/log/sqlite/log.ts";
import { runStream } from "../src/station/vocabulary/station-names.ts";

/** Returns the id of run number `n`. */
export function runIdOf(n: number): string {
  return `run_${Array.from({ length: 12 }, (_, at) => LETTERS[Math.floor(n / 32 ** (11 - at)) % 32]).join("")}`;
}

const LETTERS = "abcdefghijklmnopqrstuvwxyz234567";
const APPENDED_AT_ONCE = 1_000;
const usage = { inputTokens: 4_200, outputTokens: 180, cachedInputTokens: 3_900, reasoningTokens: 20 };
const definition = AgentDefinition.parse({ name: "coder", system: "You work." });

/** Writes runs into the log of a station that is not running: long ones by their numbers, and many short ones. */
export async function fillLog(stateDir: string, { long, short }: { long: ReadonlyMap<number, number>; short: number }): Promise<void> {
  await using log = createSqliteLog({ path: join(stateDir, "log.db") });
  // Appends that are submitted together are one commit: ten thousand commits would take minutes of waiting for the
  // disk.
  for (let first = 0; first < short; first += APPENDED_AT_ONCE) {
    const numbers = Array.from({ length: Math.min(APPENDED_AT_ONCE, short - first) }, (_, at) => first + at);
    await Promise.all(numbers.map((n) => log.append(runStream(runIdOf(n)), [created(n), sandboxed(n), ended])));
  }
  for (const [n, count] of long) {
    const events = longRun(n, count);
    for (let at = 0; at < events.length; at += APPENDED_AT_ONCE)
      await log.append(runStream(runIdOf(n)), events.slice(at, at + APPENDED_AT_ONCE));
  }
}

/** Returns exactly this many events: steps of a model that thinks, speaks, runs a command and edits a file. */
export function longRun(n: number, count: number): NewEvent[] {
  const events = [created(n), sandboxed(n)];
  for (let step = 1; events.length < count - 1; step += 1) events.push(...eventsOfStep(step).slice(0, count - 1 - events.length));
  return [...events, ended];
}

function created(n: number): NewEvent {
  const data = {
    ...{ run: runIdOf(n), parent: null, session: runIdOf(n), model: "example/large" },
    ...{ agent: { name: n % 3 === 0 ? "reviewer" : "coder", digest: "0", definition } },
    task: `${tasks[n % tasks.length]} (ticket ${String(n).padStart(4, "0")})`,
    ...{ budgets: {}, labels: { team: n % 2 === 0 ? "parsers" : "printers" } },
  };
  return { type: "run.created", version: 1, data };
}

const tasks = [
  "Mend the flaky test of the parser",
  "Write the missing page of the guide",
  "Bring the dependencies up to date",
  "Find the leak",
];
const sandboxed = (n: number): NewEvent => ({
  type: "run.sandboxed",
  version: 1,
  data: { sandbox: runIdOf(n).replace("run_", "sb_"), runtime: "oci", why: "start" },
});
const ended: NewEvent = { type: "run.ended", version: 1, data: { reason: "done", text: "Done.", steps: 3, usage, costUsd: 0.04 } };

function eventsOfStep(step: number): NewEvent[] {
  const [model, bash, edit] = [`m${step}`, `t${step}.1`, `t${step}.2`];
  const path = `src/parts/part-${step % 40}.ts`;
  const command = `npm test -- parts/part-${step % 40}`;
  const change = { path, old: `return ${step};`, new: `return ${step} + offset;\n// and the next line` };
  const output = Array.from(
    { length: 12 },
    (_, line) => `\u001b[32m✓\u001b[0m part-${step % 40} does what line ${line} says (${line} ms)\n`,
  );
  const event = (type: string, data: object): NewEvent => ({ type, version: 1, data });
  const words = `The test of **part ${step % 40}** fails because the offset is left out. I add it to \`${path}\` and run the tests again.`;
  return [
    event("step.started", { step }),
    event("model.requested", { call: model, step, attempt: 1, model: "example/large", digest: "0", messages: [], contextTokens: 4_200 }),
    event("model.streamed", { call: model, kind: "thought", text: "Where does the offset come from? " }),
    event("model.streamed", { call: model, kind: "text", text: words.slice(0, 60) }),
    event("model.streamed", { call: model, kind: "text", text: words.slice(60) }),
    event("model.ended", {
      call: model,
      parts: [
        { kind: "thought", text: "Where does the offset come from?" },
        { kind: "text", text: words },
        { kind: "toolCall", call: bash, providerCall: "a", name: "bash", arguments: { command } },
        { kind: "toolCall", call: edit, providerCall: "b", name: "edit", arguments: change },
      ],
      ...{ usage, costUsd: 0.004, stop: "tools", durationMs: 900 },
    }),
    event("tool.requested", { call: bash, step, name: "bash", arguments: { command } }),
    event("tool.started", { call: bash }),
    event("tool.streamed", { call: bash, text: output.slice(0, 6).join("") }),
    event("tool.streamed", { call: bash, text: output.slice(6).join("") }),
    event("tool.ended", { call: bash, outcome: "ok", text: output.join(""), durationMs: 420 }),
    event("tool.requested", { call: edit, step, name: "edit", arguments: change }),
    event("tool.started", { call: edit }),
    event("file.changed", { call: edit, path, kind: "modified", linesAdded: 2, linesRemoved: 1 }),
    event("tool.ended", { call: edit, outcome: "ok", text: `Edited ${path}.`, durationMs: 3 }),
  ];
}
