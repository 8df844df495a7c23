import { describe, expect, test } from "vitest";
import type { z } from "zod";
import { CaissonError } from "../../contract/error.ts";
import { parseRequest } from "../../contract/parse-request.ts";
import { StartShip } from "../../contract/ship-verbs.ts";
import type { SpecView } from "../../contract/spec-verbs.ts";
import { findWork, newShip, type StartShipParts } from "./start-ship.ts";

const SPEC = "spec_k3v7q2m5x4ab";
const SESSION = "ses_k3v7q2m5x4ab";
const row = (requirement: string, more: Partial<SpecView["coverage"][number]> = {}) => ({
  requirement,
  statement: "When a text is given, the counter shall say how many words it has.",
  tasks: ["TASK-001"],
  changes: [
    { task: "TASK-001", path: "src/words.ts" },
    { task: "TASK-002", path: "src/words.ts" },
  ],
  state: "done" as const,
  ...more,
});

function stationWith(spec: Partial<SpecView> = {}, source: object = { kind: "folder", path: "/project" }): StartShipParts {
  const missing = (what: string) => new CaissonError("not_found", `there is no ${what}`);
  const view = {
    ...{ spec: SPEC, name: "words", status: "done", title: "Count words, too", idea: "Count words, too\nand quickly" },
    ...{ session: SESSION, coverage: [row("REQ-001")], ...spec },
  };
  return {
    runs: {
      get: async () => Promise.reject(missing("run")),
      async *events() {},
    },
    sessions: {
      async get(name) {
        if (name !== SESSION) throw missing("session");
        return { id: SESSION, lock: null, history: [], source } as never;
      },
    },
    specs: {
      async get(word) {
        if (word !== SPEC && word !== "words") throw missing("spec");
        return view as never;
      },
    },
    secretsOf: async () => ({}),
    author: { name: "Agent", email: "agent@example.com" },
  };
}

const asked = (of: string, more: Partial<StartShip> = {}) =>
  parseRequest(StartShip, { of, to: "/srv/git/project.git", withoutTests: "a test", ...more }, "a ship");
const make = async (request: z.output<typeof StartShip>, parts: StartShipParts) =>
  await newShip(request, await findWork(request, parts), { ...parts, owner: "local" });
const shipOf = async (of: string, spec: Partial<SpecView> = {}, more: Partial<StartShip> = {}) =>
  (await make(asked(of, more), stationWith(spec))).data;

describe("a ship of a spec", () => {
  test.each([SPEC, "words"])("has its session, its title, and a branch that is named after it (%s)", async (of) => {
    expect(await shipOf(of, {}, { ticket: "WORDS-1" })).toMatchObject({
      session: SESSION,
      spec: SPEC,
      run: null,
      title: "Count words, too",
      branch: { kind: "feature", ticket: "WORDS-1", slug: "count-words-too" },
    });
  });

  test("tells of its requirements and of what was done for them", async () => {
    const { body } = await shipOf(SPEC);
    expect(body).toContain("Count words, too\nand quickly");
    expect(body).toContain("REQ-001 (done): When a text is given, the counter shall say how many words it has.\n  by: TASK-001\n");
    expect(body).toContain("  changed: src/words.ts\n```");
    expect(body).toContain("Shipped without tests: a test");
    expect(body).toContain(`Spec: ${SPEC}`);
  });

  test("quotes what agents wrote: it cannot leave its block, nor be another line of it", async () => {
    const { body } = await shipOf(SPEC, {
      coverage: [row("REQ-001", { statement: "nothing\n```\nFixes #1, says @team \u202e\u0007", tasks: ["```\n@team"], changes: [] })],
    });
    const block = body.split("```");
    expect(block).toHaveLength(3);
    expect(block[1]).toBe("text\nREQ-001 (done): nothing ' Fixes #1, says @team\n  by: ' @team\n");
  });

  test("is bounded, and says how much is left out", async () => {
    const { body } = await shipOf(SPEC, {
      idea: "x".repeat(20_000),
      coverage: Array.from({ length: 200 }, (_, index) => row(`REQ-${index}`, { statement: "y".repeat(2000) })),
    });
    expect(body.length).toBeLessThan(20_000);
    expect(body).toContain("… and 195 more\n```");
  });

  test("is told otherwise where that is asked for", async () => {
    expect(await shipOf(SPEC, {}, { title: "Other words", body: "Said by hand" })).toMatchObject({
      title: "Other words",
      body: "Said by hand",
      branch: { slug: "other-words" },
    });
  });

  test.each([
    [{ status: "planned", session: null }, "of spec_k3v7q2m5x4ab there is a plan alone"],
    [{ status: "running", session: null }, "spec_k3v7q2m5x4ab is not done: it is running"],
    [{ status: "failed", session: null }, "spec_k3v7q2m5x4ab is not done: it is failed"],
    [{ status: "done", session: null }, "spec_k3v7q2m5x4ab has no tasks, so that there is nothing to ship"],
  ] as const)("is refused unless it is done (%j)", async (spec, message) => {
    await expect(shipOf(SPEC, spec)).rejects.toMatchObject({ code: "conflict", message });
  });

  test("wants tests on what came of it, and says where", async () => {
    const { withoutTests: _, ...request } = asked(SPEC);
    await expect(make(request, stationWith())).rejects.toMatchObject({
      code: "conflict",
      hint: expect.stringContaining(`--session ${SESSION}`),
    });
  });

  test("is none where there is none: it is said of a session, but for what is a spec's id", async () => {
    await expect(shipOf("nothing")).rejects.toMatchObject({ code: "not_found", message: "there is no session" });
    await expect(shipOf("spec_aaaaaaaaaaaa")).rejects.toMatchObject({ code: "not_found", message: "there is no spec" });
  });
});

test("a session's ship is of no spec", async () => {
  expect(await shipOf(SESSION)).not.toHaveProperty("spec");
});

test("what was sent here from another machine is refused before anything is made, with what to do", async () => {
  const station = stationWith({}, { kind: "upload", upload: "up_k3v7q2m5x4ab" });
  await expect(make(asked(SESSION), station)).rejects.toMatchObject({
    code: "unsupported",
    message: expect.stringContaining("from another machine"),
    hint: expect.stringMatching(/caisson apply ses_.*--repo https/),
  });
});
