import { describe, expect, test } from "vitest";
import { draftOf, emptyDraft, requestOf } from "./draft.ts";

describe("a draft of a run", () => {
  test("becomes the request that it describes", () => {
    const { request } = requestOf({
      ...emptyDraft,
      task: "Mend the tests.",
      model: "scripted:demo",
      source: "git",
      place: " https://example.com/r.git ",
      ref: "main",
      network: "allow",
      hosts: "example.com\n*.npmjs.org",
      labels: "team=web\nurgent",
      costUsd: "2.5",
      minutes: "1.5",
    });
    expect(request).toMatchObject({
      task: "Mend the tests.",
      source: { kind: "git", url: "https://example.com/r.git", ref: "main" },
      settings: { network: { mode: "allow", rules: [{ host: "example.com" }, { host: "*.npmjs.org" }] } },
      labels: { team: "web", urgent: "" },
      budgets: { costUsd: 2.5, timeMs: 90_000 },
      attended: true,
      detached: true,
    });
  });

  test.each([
    [{}, "task"],
    [{ task: "x", costUsd: "much" }, "costUsd"],
    [{ task: "x", source: "folder" as const }, "place"],
    [{ task: "x", name: "no spaces here" }, "name"],
    [{ task: "x", network: "allow" as const, hosts: "http://x/y" }, "hosts"],
  ])("reports which field is wrong: %j", (over, field) => {
    const { request, problems } = requestOf({ ...emptyDraft, ...over });
    expect(request).toBeNull();
    expect(Object.keys(problems ?? {})).toEqual([field]);
  });

  test("of an earlier run repeats that run's request", () => {
    const created = {
      task: "Again.",
      model: "scripted:demo",
      agent: { name: "coder", digest: "d", definition: {} },
      budgets: { steps: 5 },
      labels: { a: "b" },
    };
    const { request } = requestOf(draftOf(created, { kind: "folder", path: "/srv/project" }));
    expect(request).toMatchObject({
      task: "Again.",
      agent: "coder",
      model: "scripted:demo",
      budgets: { steps: 5 },
      labels: { a: "b" },
      source: { kind: "folder", path: "/srv/project" },
    });
  });
});
