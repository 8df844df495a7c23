import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { auditEvents } from "../audit/audit-event.ts";
import { bestEvents } from "../best/best-event.ts";
import { jobFamily } from "../durable/durable-event.ts";
import { mergeEvents } from "../merge/merge-event.ts";
import { runEvents } from "../run/run-event.ts";
import { SandboxEvent } from "../sandbox/sandbox-event.ts";
import { sandboxLogEvents } from "../sandbox/sandbox-log-event.ts";
import { sessionEvents } from "../session/session-event.ts";
import { shipEvents } from "../ship/ship-event.ts";
import { specEvents } from "../spec/spec-event.ts";
import { workflowEvents } from "../workflow/workflow-event.ts";
import type { AnyEventDefinition } from "./define-event.ts";
import { eventFamily, readEvent, type StoredForm } from "./event-family.ts";

const folder = join(import.meta.dirname, "golden");
const files = readdirSync(folder);
// A set, since the events of a sandbox's network are also in the log of its run.
const all = eventFamily([
  ...new Set<AnyEventDefinition>([
    ...runEvents.definitions,
    ...SandboxEvent.options,
    ...sandboxLogEvents.definitions,
    ...sessionEvents.definitions,
    ...auditEvents.definitions,
    ...jobFamily([]).definitions,
    ...specEvents.definitions,
    ...shipEvents.definitions,
    ...bestEvents.definitions,
    ...mergeEvents.definitions,
    ...workflowEvents.definitions,
  ]),
]);
const versionsOf = (definition: AnyEventDefinition): AnyEventDefinition[] => [
  definition,
  ...(definition.earlier === null ? [] : versionsOf(definition.earlier.definition)),
];
const declared = all.definitions.flatMap(versionsOf).map(({ shape }) => `${shape.type.value}.${shape.version.value}.json`);

const VERSION = /\.\d+(\.[a-z-]+)?\.json$/;

/**
 * Every event that was ever written must stay readable. Never change a file here to make a test pass: if a shape no
 * longer matches, it is a new version of the event, with its own file and an upcaster for the old one. A fact that was
 * added to a version later has its own file: `TYPE.VERSION.WHAT.json`.
 */
describe("golden events", () => {
  test("exist for every version of every event, and for no unknown event", () => {
    expect(
      declared.filter((name) => !files.includes(name)),
      "events without a golden file",
    ).toEqual([]);
    expect(new Set(declared).size).toBe(declared.length);
    // Files of former versions stay; files of unknown events are mistakes.
    const types = declared.map((name) => name.replace(VERSION, ""));
    expect(files.filter((name) => !types.includes(name.replace(VERSION, "")))).toEqual([]);
    expect(files.length).toBeGreaterThan(30);
  });

  test.each(files)("%s reads as the current version, without losing data if it is current", (name) => {
    const golden = JSON.parse(readFileSync(join(folder, name), "utf8")) as StoredForm;
    const event = readEvent(all, golden);
    const current = all.byType.get(golden.type)?.shape.version.value;
    expect(event).toEqual(
      golden.version === current ? golden : expect.objectContaining({ type: golden.type, version: current, at: golden.at }),
    );
    expect(`${golden.type}.${golden.version}.json`).toBe(name.replace(/\.[a-z-]+\.json$/, ".json"));
  });
});
