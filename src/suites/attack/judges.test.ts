import { describe, expect, it } from "vitest";
import type { Capabilities } from "../../contract/sandbox/sandbox.ts";
import { exhaustionObservations } from "./exhaustion-observations.ts";
import { isolationObservations } from "./isolation-observations.ts";
import { claims } from "./suite.ts";

const capabilities: Capabilities = {
  isolation: 1,
  sharesHostFilesystem: true,
  templates: ["host"],
  workspaceAccess: ["overlay"],
  mounts: ["overlay"],
  workspaceLayer: false,
  limits: { cpus: true, memoryBytes: true, pids: true, diskBytes: true },
  network: ["none"],
  transparentNetwork: false,
  rootUser: true,
  pause: true,
  snapshot: true,
  paths: true,
  reattach: true,
  reasons: {},
};

const MIB = 1024 * 1024;
const hostile = { answers: { trick: "protocol" }, grownBytes: 0, others: true };
const hostileBut = [
  { ...hostile, answers: { trick: "stayed open" } },
  { ...hostile, grownBytes: 2000 * MIB },
  { ...hostile, others: false },
];

/** For each claim, one right observation and several that are wrong in one way each. */
const observations: Record<string, { right: unknown; wrong: unknown[] }> = {
  ...isolationObservations,
  H01: { right: { leaked: [], answers: {} }, wrong: [{ leaked: ["link-to-file"], answers: {} }] },
  H03: {
    right: { landed: [], uploads: 9, refused: 9 },
    wrong: [
      { landed: ["file1"], uploads: 9, refused: 0 },
      { landed: [], uploads: 0, refused: 0 },
    ],
  },
  H04: {
    right: { "reading dots": "invalid", "reading percent-encoded": "not_found" },
    wrong: [{ "reading dots": "succeeded" }, { "reading dots": "not_found" }, { "reading percent-encoded": "succeeded" }],
  },
  H05: {
    right: { answers: { x: "unsafe" }, touched: [] },
    wrong: [
      { answers: { x: "succeeded" }, touched: [] },
      { answers: { x: "unsafe" }, touched: ["dots"] },
    ],
  },
  H06: {
    right: { code: "too_large", taken: 9 * MIB, gzip: "invalid" },
    wrong: [
      { code: "succeeded", taken: 9 * MIB, gzip: "invalid" },
      { code: "too_large", taken: 512 * MIB, gzip: "invalid" },
      { code: "too_large", taken: 9 * MIB, gzip: "succeeded" },
    ],
  },
  H10: { right: hostile, wrong: hostileBut },
  H12: { right: hostile, wrong: hostileBut },
  H13: {
    right: { frames: 1_000_000, foreign: [], heldBytesMax: 100 },
    wrong: [
      { frames: 10, foreign: [], heldBytesMax: 100 },
      { frames: 1_000_000, foreign: ["RangeError"], heldBytesMax: 100 },
      { frames: 1_000_000, foreign: [], heldBytesMax: 4_000_000_000 },
    ],
  },
  H14: {
    right: { paths: [], lived: true, removed: [] },
    wrong: [
      { paths: ["/run/guest.sock"], lived: true, removed: [] },
      { paths: [], lived: false, removed: [] },
      { paths: [], lived: true, removed: ["/run/guest.sock as root"] },
    ],
  },
  H16: {
    right: { polluted: false, names: ["__proto__"], variable: "own" },
    wrong: [
      { polluted: true, names: ["__proto__"], variable: "own" },
      { polluted: false, names: [], variable: "own" },
    ],
  },
  H18: {
    right: { source: "host", before: 1, after: 500 },
    wrong: [
      { source: "guest", before: 1, after: 500 },
      { source: "host", before: 5, after: 5 },
    ],
  },
  N01: {
    right: { results: { "tcp 10.0.0.1 80": "ENETUNREACH", end: "ok" }, arrived: 0 },
    wrong: [
      { results: { "tcp 10.0.0.1 80": "ok", end: "ok" }, arrived: 0 },
      { results: { "tcp 10.0.0.1 80": "ETIMEDOUT", end: "ok" }, arrived: 0 },
      { results: { end: "ok" }, arrived: 1 },
      { results: {}, arrived: 0 },
    ],
  },
  N03: {
    right: { interfaces: ["lo"], results: { "udp 8.8.8.8 53": "ENETUNREACH" }, resolved: "" },
    wrong: [
      { interfaces: ["lo", "eth0"], results: {}, resolved: "" },
      { interfaces: ["lo"], results: { "udp 8.8.8.8 53": "ok" }, resolved: "" },
      { interfaces: ["lo"], results: {}, resolved: "1.2.3.4 data.example.com" },
    ],
  },
  N04: {
    right: { interfaces: ["lo"], routes: [], results: { "tcp 1.1.1.1 443": "ENETUNREACH" } },
    wrong: [
      { interfaces: ["eth0"], routes: [], results: {} },
      { interfaces: ["lo"], routes: ["eth0 0000"], results: {} },
      { interfaces: ["lo"], routes: [], results: { "icmp 1.1.1.1 0": "ok" } },
    ],
  },
  N02: {
    right: { answers: { "127.0.0.1:80": "403", "localhost:80": "502" }, arrived: 0 },
    wrong: [
      { answers: { "127.0.0.1:80": "200" }, arrived: 0 },
      { answers: { "127.0.0.1:80": "no answer: " }, arrived: 0 },
      { answers: { "127.0.0.1:80": "403" }, arrived: 1 },
    ],
  },
  N10: {
    right: { answers: { "127.0.0.1:80": "403", "localhost:80": "502" }, arrived: 0 },
    wrong: [
      { answers: { "127.0.0.1:80": "200" }, arrived: 0 },
      { answers: { "127.0.0.1:80": "no answer: " }, arrived: 0 },
      { answers: { "127.0.0.1:80": "403" }, arrived: 1 },
    ],
  },
  N14: {
    right: { connected: true, received: "" },
    wrong: [
      { connected: true, received: "PRI * HTTP/2.0" },
      { connected: false, received: "" },
    ],
  },
  N13: {
    right: { port: "8080", result: "ECONNREFUSED" },
    wrong: [
      { port: "8080", result: "ok" },
      { port: "", result: "ECONNREFUSED" },
    ],
  },
  ...exhaustionObservations,
  D02: {
    right: { outcome: "lost", closed: "lost", next: "lost", left: false },
    wrong: [
      { outcome: "exited", closed: "lost", next: "lost", left: false },
      { outcome: "lost", closed: "destroyed", next: "lost", left: false },
      { outcome: "lost", closed: "lost", next: "succeeded", left: false },
      { outcome: "lost", closed: "lost", next: "lost", left: true },
    ],
  },
  D04: {
    right: { aborted: 5, finished: 7, listed: [], mounts: 0 },
    wrong: [
      { aborted: 5, finished: 7, listed: ["sb_aaaaaaaaaaaa"], mounts: 0 },
      { aborted: 5, finished: 7, listed: [], mounts: 3 },
      { aborted: 0, finished: 12, listed: [], mounts: 0 },
    ],
  },
  D05: {
    right: { files: "read back", command: "timedOut", after: "exited" },
    wrong: [
      { files: '""', command: "timedOut", after: "exited" },
      { files: "read back", command: "lost", after: "exited" },
      { files: "read back", command: "timedOut", after: "lost" },
    ],
  },
  D06: {
    right: { file: "timeout stopped", command: "timeout stopped", after: "exited" },
    wrong: [
      { file: "succeeded", command: "timeout stopped", after: "exited" },
      { file: "timeout stopped", command: "timeout slow", after: "exited" },
      { file: "timeout stopped", command: "timeout stopped", after: "lost" },
    ],
  },
};

describe("the judges of the attack suite", () => {
  it("each have test observations", () => {
    expect(Object.keys(observations).sort()).toEqual(claims.map((claim) => claim.id).sort());
  });

  for (const claim of claims) {
    const { right, wrong } = observations[claim.id] ?? { right: null, wrong: [] };
    it(`${claim.id} passes the right observation and fails each wrong one`, () => {
      expect(claim.judge(right, { capabilities })).toEqual([]);
      expect(wrong.length).toBeGreaterThan(0);
      for (const seen of wrong) expect(claim.judge(seen, { capabilities }), JSON.stringify(seen)).not.toEqual([]);
    });
  }
});
