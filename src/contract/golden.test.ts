import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { auditEvents } from "./audit-event.ts";
import type { AnyEventDefinition } from "./define-event.ts";
import { drivenFamily } from "./driven-event.ts";
import { SandboxEvent } from "./event.ts";
import { eventFamily, readEvent, type StoredForm } from "./event-family.ts";
import { mergeEvents } from "./merge-event.ts";
import { runEvents } from "./run-event.ts";
import { sandboxLogEvents } from "./sandbox-log-event.ts";
import { sessionEvents } from "./session-event.ts";
import { shipEvents } from "./ship-event.ts";
import { specEvents } from "./spec-event.ts";
import { workflowEvents } from "./workflow-event.ts";

const folder = join(import.meta.dirname, "golden");
const files = readdirSync(folder);
// Events of a sandbox's network are in the log of its run, too: the same ones.
const all = eventFamily([
  ...new Set<AnyEventDefinition>([
    ...runEvents.definitions,
    ...SandboxEvent.options,
    ...sandboxLogEvents.definitions,
    ...sessionEvents.definitions,
    ...auditEvents.definitions,
    ...drivenFamily([]).definitions,
    ...specEvents.definitions,
    ...shipEvents.definitions,
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
 * What was once written into a log must be read for ever. A file here is never changed to make a test pass: a shape
 * that no longer fits it is a new version of the event, with a file of its own and an upcaster for the old one. A fact
 * that was added to a version, and that older events lack, has a file of its own beside it: `TYPE.VERSION.WHAT.json`.
 */
describe("golden events", () => {
  test("each event has one for each version there was, and no file is of an event that there is not", () => {
    expect(
      declared.filter((name) => !files.includes(name)),
      "events without a golden file",
    ).toEqual([]);
    expect(new Set(declared).size).toBe(declared.length);
    // Files of former versions stay; those of no event are mistakes.
    const types = declared.map((name) => name.replace(VERSION, ""));
    expect(files.filter((name) => !types.includes(name.replace(VERSION, "")))).toEqual([]);
    expect(files.length).toBeGreaterThan(30);
  });

  test.each(files)("%s is read as the current version, and nothing of one that is current is lost", (name) => {
    const golden = JSON.parse(readFileSync(join(folder, name), "utf8")) as StoredForm;
    const event = readEvent(all, golden);
    const current = all.byType.get(golden.type)?.shape.version.value;
    expect(event).toEqual(
      golden.version === current ? golden : expect.objectContaining({ type: golden.type, version: current, at: golden.at }),
    );
    expect(`${golden.type}.${golden.version}.json`).toBe(name.replace(/\.[a-z-]+\.json$/, ".json"));
  });
});
