import { describe, expect, test } from "vitest";
import type { z } from "zod";
import { CaissonError } from "../../contract/error/error.ts";
import { parseRequest } from "../../contract/error/parse-request.ts";
import { StartShip } from "../../contract/ship/ship-verbs.ts";
import type { SpecView } from "../../contract/spec/spec-verbs.ts";
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

const requestFor = (of: string, more: Partial<StartShip> = {}) =>
  parseRequest(StartShip, { of, to: "/srv/git/project.git", withoutTests: "a test", ...more }, "a ship");
const make = async (request: z.output<typeof StartShip>, parts: StartShipParts) =>
  await newShip(request, await findWork(request, parts), { ...parts, owner: "local" });
const shipOf = async (of: string, spec: Partial<SpecView> = {}, more: Partial<StartShip> = {}) =>
  (await make(requestFor(of, more), stationWith(spec))).data;

describe("a ship of a spec", () => {
  test.each([SPEC, "words"])("uses the spec's session and title, and a branch named after it (%s)", async (of) => {
    expect(await shipOf(of, {}, { ticket: "WORDS-1" })).toMatchObject({
      session: SESSION,
      spec: SPEC,
      run: null,
      title: "Count words, too",
      branch: { kind: "feature", ticket: "WORDS-1", slug: "count-words-too" },
    });
  });

  test("lists the requirements with their tasks and changed files", async () => {
    const { body } = await shipOf(SPEC);
    expect(body).toContain("Count words, too\nand quickly");
    expect(body).toContain("REQ-001 (done): When a text is given, the counter shall say how many words it has.\n  by: TASK-001\n");
    expect(body).toContain("  changed: src/words.ts\n```");
    expect(body).toContain("Shipped without tests: a test");
    expect(body).toContain(`Spec: ${SPEC}`);
  });

  test("quotes text from agents so that it cannot leave its block or line", async () => {
    const { body } = await shipOf(SPEC, {
      coverage: [row("REQ-001", { statement: "nothing\n```\nFixes #1, says @team \u202e\u0007", tasks: ["```\n@team"], changes: [] })],
    });
    const block = body.split("```");
    expect(block).toHaveLength(3);
    expect(block[1]).toBe("text\nREQ-001 (done): nothing ' Fixes #1, says @team\n  by: ' @team\n");
  });

  test("limits the body, and says how many requirements are left out", async () => {
    const { body } = await shipOf(SPEC, {
      idea: "x".repeat(20_000),
      coverage: Array.from({ length: 200 }, (_, index) => row(`REQ-${index}`, { statement: "y".repeat(2000) })),
    });
    expect(body.length).toBeLessThan(20_000);
    expect(body).toContain("… and 195 more\n```");
  });

  test("uses the requested title and body instead", async () => {
    expect(await shipOf(SPEC, {}, { title: "Other words", body: "Said by hand" })).toMatchObject({
      title: "Other words",
      body: "Said by hand",
      branch: { slug: "other-words" },
    });
  });

  test.each([
    [{ status: "planned", session: null }, "spec_k3v7q2m5x4ab is only planned"],
    [{ status: "running", session: null }, "spec_k3v7q2m5x4ab is not done: its status is running"],
    [{ status: "failed", session: null }, "spec_k3v7q2m5x4ab is not done: its status is failed"],
    [{ status: "done", session: null }, "spec_k3v7q2m5x4ab has no tasks, so there is nothing to ship"],
  ] as const)("is rejected unless the spec is done (%j)", async (spec, message) => {
    await expect(shipOf(SPEC, spec)).rejects.toMatchObject({ code: "conflict", message });
  });

  test("requires tests, and names the session to run them in", async () => {
    const { withoutTests: _, ...request } = requestFor(SPEC);
    await expect(make(request, stationWith())).rejects.toMatchObject({
      code: "conflict",
      hint: expect.stringContaining(`--session ${SESSION}`),
    });
  });

  test("an unknown name is reported as a session, except for a spec id", async () => {
    await expect(shipOf("nothing")).rejects.toMatchObject({ code: "not_found", message: "there is no session" });
    await expect(shipOf("spec_aaaaaaaaaaaa")).rejects.toMatchObject({ code: "not_found", message: "there is no spec" });
  });
});

test("the ship of a session names no spec", async () => {
  expect(await shipOf(SESSION)).not.toHaveProperty("spec");
});

test("rejects uploaded files before creating anything, with a hint", async () => {
  const station = stationWith({}, { kind: "upload", upload: "up_k3v7q2m5x4ab" });
  await expect(make(requestFor(SESSION), station)).rejects.toMatchObject({
    code: "unsupported",
    message: expect.stringContaining("from another machine"),
    hint: expect.stringMatching(/caisson apply ses_.*--repo https/),
  });
});
