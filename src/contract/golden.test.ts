import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { SandboxEvent } from "./event.ts";
import { RunEvent } from "./run-event.ts";
import { SessionEvent } from "./session-event.ts";

const folder = join(import.meta.dirname, "golden");
const files = readdirSync(folder);
// Events of a sandbox's network are in the log of its run, too: the same ones.
const options = new Set([...RunEvent.options, ...SandboxEvent.options, ...SessionEvent.options]);
const declared = [...options].map((option) => `${option.shape.type.value}.${option.shape.version.value}.json`);

const VERSION = /\.\d+(\.[a-z-]+)?\.json$/;

/**
 * What was once written into a log must be read for ever. A file here is never changed to make a test pass: a shape that no longer fits it is a new version
 * of the event, with a file of its own and an upcaster for the old one. A fact that was added to a version, and that older events lack, has a file of its own beside
 * it: `TYPE.VERSION.WHAT.json`.
 */
describe("golden events", () => {
  test("each event has one for its version, and no file is of an event that there is not", () => {
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

  test.each(files)("%s is read, and nothing of it is lost", (name) => {
    const golden: unknown = JSON.parse(readFileSync(join(folder, name), "utf8"));
    const { type } = golden as { type: string };
    const schema = type.startsWith("session.") ? SessionEvent : RunEvent.safeParse(golden).success ? RunEvent : SandboxEvent;
    expect(schema.parse(golden)).toEqual(golden);
    expect(`${(golden as RunEvent).type}.${(golden as RunEvent).version}.json`).toBe(name.replace(/\.[a-z-]+\.json$/, ".json"));
  });
});
