import { expect, test } from "vitest";
import type { SandboxInfo } from "../../../../src/contract/sandbox/sandbox.ts";
import { choicesOf, narrowSandboxes, networkWord, type SandboxFilter, usualSort } from "./narrow-sandboxes.ts";

const sandbox = (id: string, overrides: Partial<SandboxInfo> = {}): SandboxInfo => ({
  id: `sb_${id}`,
  runtime: "oci",
  state: "running",
  createdAt: `2026-01-0${id.length}T00:00:00.000Z`,
  template: { kind: "host" },
  workspace: { kind: "empty" },
  mounts: [],
  limits: { cpus: 2, memoryBytes: null, pids: null, diskBytes: null, wallClockMs: 1, outputBytes: null },
  network: { mode: "none" },
  allowRoot: false,
  keep: true,
  labels: {},
  owner: "local",
  warnings: [],
  ...overrides,
});

const everything: SandboxFilter = { text: "", state: null, runtime: null, label: null, owner: null, time: null };
const all = [
  sandbox("a", { name: "web", labels: { team: "blue" } }),
  sandbox("bb", { state: "paused", runtime: "docker", template: { kind: "image", reference: "python:3.12" } }),
  sandbox("ccc", { owner: "ada" }),
];
const ids = (filter: Partial<SandboxFilter>, sort = usualSort) =>
  narrowSandboxes(all, { filter: { ...everything, ...filter }, sort, nowMs: Date.parse("2026-01-03T12:00:00.000Z") }).map(({ id }) => id);

test("sorts the newest first by default", () => {
  expect(ids({})).toEqual(["sb_ccc", "sb_bb", "sb_a"]);
  expect(ids({}, { by: "created", isDown: false })).toEqual(["sb_a", "sb_bb", "sb_ccc"]);
  expect(ids({}, { by: "name", isDown: false })).toEqual(["sb_bb", "sb_ccc", "sb_a"]);
  expect(ids({}, { by: "nonsense", isDown: true })).toEqual(["sb_ccc", "sb_bb", "sb_a"]);
});

test("applies each filter, and all of them together", () => {
  expect(ids({ state: "paused" })).toEqual(["sb_bb"]);
  expect(ids({ runtime: "oci", owner: "ada" })).toEqual(["sb_ccc"]);
  expect(ids({ label: "team=blue" })).toEqual(["sb_a"]);
  expect(ids({ label: "team=red" })).toEqual([]);
  expect(ids({ time: "24h" })).toEqual(["sb_ccc"]);
  expect(ids({ time: "7d" })).toEqual(["sb_ccc", "sb_bb", "sb_a"]);
});

test("requires a match for every word of a search", () => {
  expect(ids({ text: "PYTHON docker" })).toEqual(["sb_bb"]);
  expect(ids({ text: "team= web" })).toEqual(["sb_a"]);
  expect(ids({ text: "python web" })).toEqual([]);
});

test("summarizes a network policy in a few words", () => {
  const rule = (host: string) => ({ host, ports: [443], private: false });
  expect(networkWord({ mode: "none" })).toBe("none");
  expect(networkWord({ mode: "allow", rules: ["a.com", "b.com", "c.com"].map(rule), registries: ["npm"], transparent: false })).toBe(
    "a.com, b.com +2",
  );
  expect(choicesOf(["b", "a", "b"])).toEqual([
    { value: "a", label: "a" },
    { value: "b", label: "b" },
  ]);
});
