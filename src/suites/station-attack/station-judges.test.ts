import { expect, test } from "vitest";
import { stationClaims } from "./run-station-attacks.ts";

const responsive = { slowestMs: 12, unanswered: 0, outcomes: { x: "failed" } };
const preview = { bare: 401, withApiToken: 403, closedByOther: 404, isListedToOther: false };
const refused = { tried: 9, admitted: [] };

/** For each claim, one right observation and several that are wrong in one way each. */
const codes = {
  crossSite: { "another origin": 403 },
  asToken: 401,
  first: 201,
  second: 429,
  refusedGuesses: 60,
  expired: 401,
  tokensMade: 1,
};

const observations: Readonly<Record<string, { right: unknown; wrong: readonly unknown[] }>> = {
  O01: {
    right: refused,
    wrong: [
      { tried: 9, admitted: ["runs.list: 200"] },
      { tried: 0, admitted: [] },
    ],
  },
  O02: {
    right: refused,
    wrong: [
      { tried: 9, admitted: ["tokens.create: 201"] },
      { tried: 0, admitted: [] },
    ],
  },
  O03: {
    right: { made: ["workflow", "webhook", "secret"], differences: [], listed: [] },
    wrong: [
      { made: ["workflow"], differences: [], listed: [] },
      { made: ["workflow", "webhook", "secret"], differences: ["GET of a workflow: 200 instead of 404"], listed: [] },
      { made: ["workflow", "webhook", "secret"], differences: [], listed: ["secret"] },
    ],
  },
  M01: { right: { a: 403, b: 400 }, wrong: [{ a: 201 }, { a: 500 }, { a: -1 }, {}] },
  M02: {
    right: { status: 403, leaked: false },
    wrong: [
      { status: 201, leaked: false },
      { status: 500, leaked: false },
      { status: 403, leaked: true },
    ],
  },
  M03: {
    right: { connections: 0, tried: 9 },
    wrong: [
      { connections: 1, tried: 9 },
      { connections: 0, tried: 0 },
    ],
  },
  T01: {
    right: responsive,
    wrong: [
      { ...responsive, slowestMs: 60_000 },
      { ...responsive, unanswered: 1 },
      { ...responsive, outcomes: { x: "completed" } },
      { ...responsive, outcomes: {} },
    ],
  },
  T02: {
    right: responsive,
    wrong: [
      { ...responsive, slowestMs: 60_000 },
      { ...responsive, unanswered: 1 },
      { ...responsive, outcomes: {} },
    ],
  },
  C01: {
    right: { held: 200, status: 200, tookMs: 9 },
    wrong: [
      { held: 600, status: 0, tookMs: 10_000 },
      { held: 600, status: 200, tookMs: 9_000 },
    ],
  },
  C02: {
    right: { kinds: [{ kind: "webhook", made: 20, refusedWith: 429, other: 201 }] },
    wrong: [
      { kinds: [{ kind: "webhook", made: 50, refusedWith: 429, other: 429 }] },
      { kinds: [{ kind: "webhook", made: 0, refusedWith: 500, other: 201 }] },
    ],
  },
  C03: {
    right: { answers: { 200: 300, 503: 100 }, withoutRetry: 0, other: { status: 200, tookMs: 90 } },
    wrong: [
      { answers: { 200: 300, ECONNRESET: 100 }, withoutRetry: 0, other: { status: 200, tookMs: 90 } },
      { answers: { 503: 100 }, withoutRetry: 100, other: { status: 200, tookMs: 90 } },
      { answers: { 200: 400 }, withoutRetry: 0, other: { status: 503, tookMs: 90 } },
      { answers: { 200: 400 }, withoutRetry: 0, other: { status: 200, tookMs: 30_000 } },
    ],
  },
  C04: {
    right: { status: 413, failed: null },
    wrong: [
      { status: 200, failed: null },
      { status: 0, failed: "TimeoutError" },
    ],
  },
  K01: {
    right: { refused: 60, status: 200 },
    wrong: [
      { refused: 59, status: 200 },
      { refused: 60, status: 429 },
    ],
  },
  K02: {
    right: { began: true, status: 401, endedMs: 300 },
    wrong: [
      { began: true, status: 200, endedMs: 300 },
      { began: true, status: 401, endedMs: null },
      { began: false, status: 401, endedMs: 1 },
    ],
  },
  K03: {
    right: { files: 9, withToken: [], withSecret: [], open: [] },
    wrong: [
      { files: 0, withToken: [], withSecret: [], open: [] },
      { files: 9, withToken: ["log.db"], withSecret: [], open: [] },
      { files: 9, withToken: [], withSecret: ["log.db"], open: [] },
      { files: 9, withToken: [], withSecret: [], open: ["log.db-wal"] },
    ],
  },
  K04: {
    right: codes,
    wrong: [
      { ...codes, crossSite: { "another origin": 201 } },
      { ...codes, crossSite: {} },
      { ...codes, asToken: 200 },
      { ...codes, first: 401 },
      { ...codes, second: 201 },
      { ...codes, refusedGuesses: 59 },
      { ...codes, expired: 201 },
      { ...codes, tokensMade: 2 },
      { ...codes, tokensMade: 0 },
    ],
  },
  B01: {
    right: { answers: { a: 403 }, cors: [] },
    wrong: [
      { answers: { a: 200 }, cors: [] },
      { answers: { a: 403 }, cors: ["a"] },
      { answers: {}, cors: [] },
    ],
  },
  B02: {
    right: { a: { status: 400, answers: 1 }, b: { status: 0, answers: 0 } },
    wrong: [{ a: { status: 200, answers: 1 } }, { a: { status: 400, answers: 2 } }, {}],
  },
  P01: {
    right: preview,
    wrong: [
      { ...preview, bare: 200 },
      { ...preview, withApiToken: 502 },
      { ...preview, closedByOther: 204 },
      { ...preview, isListedToOther: true },
    ],
  },
  L01: {
    right: { outcome: "timeout", tookMs: 9_000 },
    wrong: [
      { outcome: "answered", tookMs: 9 },
      { outcome: "late", tookMs: 60_000 },
    ],
  },
  L02: {
    right: { outcome: "unavailable", carried: false, reached: false },
    wrong: [
      { outcome: "unavailable", carried: true, reached: true },
      { outcome: "unavailable", carried: false, reached: true },
      { outcome: "answered", carried: false, reached: false },
    ],
  },
  L03: {
    right: { outcome: "too_large", sentBytes: 9 },
    wrong: [
      { outcome: "too_large", sentBytes: 2 ** 28 },
      { outcome: "answered", sentBytes: 9 },
    ],
  },
};

test("every claim about a station has observations and a unique id", () => {
  expect(stationClaims.map(({ id }) => id).sort()).toEqual(Object.keys(observations).sort());
});

test.each(stationClaims)("$id accepts the right observation and rejects every wrong one", (claim) => {
  const { right, wrong } = observations[claim.id] ?? { right: null, wrong: [] };
  expect(claim.judge(right)).toEqual([]);
  expect(claim.describe?.(right) ?? "shown as JSON").not.toBe("");
  expect(wrong.length).toBeGreaterThan(0);
  for (const each of wrong) expect(claim.judge(each), JSON.stringify(each)).not.toEqual([]);
});
