import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type DrivenKind, drivenIdPrefixes } from "../contract/driven-kinds.ts";
import { newId } from "../lib/new-id.ts";
import type { Log, NewEvent } from "../log/log.ts";

const golden = join(import.meta.dirname, "..", "contract", "golden");
/** What a thing of each kind begins with. */
const firsts: Readonly<Record<DrivenKind, string>> = {
  workflow: "workflow.defined.1",
  spec: "spec.proposed.1",
  ship: "ship.created.1",
  merge: "merge.begun.1",
};

/** An event as its golden file has it. */
export function goldenEvent(name: string): NewEvent {
  const { type, version, data } = JSON.parse(readFileSync(join(golden, `${name}.json`), "utf8")) as NewEvent;
  return { type, version, data };
}

/** A driven thing that nobody drives, put into the log; resolves with its id. */
export async function putThing(log: Log, kind: DrivenKind, owner: string, more: readonly NewEvent[] = []): Promise<string> {
  const id = newId(drivenIdPrefixes[kind]);
  const created = { type: "driven.created", version: 1, data: { id, title: `${owner}'s ${kind}`, owner, parent: null } };
  await log.append(`${kind}/${id}`, [created, goldenEvent(firsts[kind]), ...more]);
  return id;
}
