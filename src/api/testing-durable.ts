import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type JobKind, jobIdPrefixes } from "../contract/durable/durable-kinds.ts";
import { newId } from "../lib/new-id.ts";
import type { Log, NewEvent } from "../log/log.ts";

const golden = join(import.meta.dirname, "..", "contract", "event", "golden");
/** The first event of each kind of durable job. */
const firsts: Readonly<Record<JobKind, string>> = {
  workflow: "workflow.defined.1",
  spec: "spec.proposed.1",
  ship: "ship.created.1",
  merge: "merge.begun.1",
  best: "best.begun.1",
};

/** Returns the event in a golden file. */
export function goldenEvent(name: string): NewEvent {
  const { type, version, data } = JSON.parse(readFileSync(join(golden, `${name}.json`), "utf8")) as NewEvent;
  return { type, version, data };
}

/** Appends a durable job without a driver to the log. Resolves with its id. */
export async function putThing(log: Log, kind: JobKind, owner: string, more: readonly NewEvent[] = []): Promise<string> {
  const id = newId(jobIdPrefixes[kind]);
  const created = { type: "driven.created", version: 1, data: { id, title: `${owner}'s ${kind}`, owner, parent: null } };
  await log.append(`${kind}/${id}`, [created, goldenEvent(firsts[kind]), ...more]);
  return id;
}
