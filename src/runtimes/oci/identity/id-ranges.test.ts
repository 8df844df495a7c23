import { lutimesSync, mkdirSync, mkdtempSync, readdirSync, readlinkSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { CaissonError } from "../../../contract/error/error.ts";
import { createStore } from "../../../sandbox/store.ts";
import { holdRange, layerRange, type RangesOf, rangeFor, releaseLayer, releaseRange, reserveRange, shareLayerRange } from "./id-ranges.ts";
import type { Identity } from "./identity.ts";
import { SANDBOX_IDS } from "./sub-ids.ts";

const FIRST = 500_000;
let stateDir: string;
beforeEach(() => {
  stateDir = mkdtempSync(join(tmpdir(), "caisson-test-"));
});
afterEach(() => rmSync(stateDir, { recursive: true, force: true }));

function contextWith(options: { furtherRanges: number; mappable?: boolean }): RangesOf & { launches: string[] } {
  const ids = { uid: FIRST, gid: FIRST };
  const identity: Identity = { rootless: false, uids: [], gids: [], root: ids, user: ids, stored: ids, plan: [], ...options };
  const launches: string[] = [];
  return {
    launches,
    context: { stateDir, guestPath: "" },
    identity: () => identity,
    store: createStore({ stateDir }),
    async launch({ what }) {
      launches.push(what);
      if (options.mappable === false) throw new CaissonError("unsupported", "it cannot", { details: { step: "idmap" } });
      return [];
    },
  };
}
const holder = (name: string) => {
  mkdirSync(join(stateDir, name));
  return join(stateDir, name);
};
const ranges = () => readdirSync(join(stateDir, "oci", "ranges"));

test("gives each holder another range but never the first, and reuses freed ones", async () => {
  const oci = contextWith({ furtherRanges: 3 });
  const holders = ["a", "b", "c"].map(holder);
  const starts = await Promise.all(holders.map((each) => reserveRange(oci, each)));
  expect(starts.sort()).toEqual([1, 2, 3].map((n) => FIRST + n * SANDBOX_IDS));
  const [start = 0] = starts;
  // Only the holder itself frees it.
  for (const each of holders) releaseRange(oci, start, each);
  expect(ranges()).toHaveLength(2);
  expect(await reserveRange(oci, holder("d"))).toBe(start);
});

test("keeps a range reserved that is shared because all are taken", async () => {
  const oci = contextWith({ furtherRanges: 1 });
  const [first, second] = [holder("first"), holder("second")];
  const start = await reserveRange(oci, first);
  expect(await reserveRange(oci, second)).toBe(start);
  releaseRange(oci, start, first);
  expect(readlinkSync(join(stateDir, "oci", "ranges", String(start)))).toBe(second);
  releaseRange(oci, start, second);
  expect(ranges()).toEqual([]);
});

test("takes over the range of a missing holder, but only after a while", async () => {
  const oci = contextWith({ furtherRanges: 1 });
  await reserveRange(oci, join(stateDir, "gone"));
  const link = join(stateDir, "oci", "ranges", String(FIRST + SANDBOX_IDS));
  const next = holder("next");
  await reserveRange(oci, next);
  releaseRange(oci, FIRST + SANDBOX_IDS, next);
  expect(ranges()).toHaveLength(1);
  lutimesSync(link, 0, 0);
  expect(await reserveRange(oci, next)).toBe(FIRST + SANDBOX_IDS);
  releaseRange(oci, FIRST + SANDBOX_IDS, next);
  expect(ranges()).toEqual([]);
});

test("shares the first range if there is no other, or owners cannot be mapped", async () => {
  expect(await reserveRange(contextWith({ furtherRanges: 0 }), holder("a"))).toBe(FIRST);
  const oci = contextWith({ furtherRanges: 10, mappable: false });
  for (const name of ["b", "c"]) expect(await reserveRange(oci, holder(name))).toBe(FIRST);
  expect(oci.launches).toEqual(["mappable"]);
});

test("keeps a layer's range from one sandbox to the next until its removal", async () => {
  const oci = contextWith({ furtherRanges: 100 });
  const layer = holder("layer");
  const config = { workspace: { kind: "folder", path: "/", access: "overlay", layer } } as Parameters<typeof rangeFor>[1]["config"];
  const start = await rangeFor(oci, { id: "sb_aaaaaaaaaaaa", config });
  expect(await rangeFor(oci, { id: "sb_bbbbbbbbbbbb", config })).toBe(start);
  expect(layerRange(oci, layer)).toBe(start);
  releaseLayer(oci, layer);
  expect(layerRange(oci, layer)).toBeNull();
  expect(ranges()).toEqual([]);
});

test("hands a reserved range to another holder", async () => {
  const oci = contextWith({ furtherRanges: 1 });
  const start = await reserveRange(oci, "/proc/self");
  const sandbox = holder("sandbox");
  holdRange(oci, start, sandbox);
  releaseRange(oci, start, "/proc/self");
  expect(ranges()).toHaveLength(1);
  releaseRange(oci, start, sandbox);
  expect(ranges()).toEqual([]);
});

const orders = [
  ["a", "b", "c"],
  ["a", "c", "b"],
  ["b", "a", "c"],
  ["b", "c", "a"],
  ["c", "a", "b"],
  ["c", "b", "a"],
] as const;
const configOver = (layer: string) =>
  ({ workspace: { kind: "folder", path: "/", access: "overlay", layer } }) as Parameters<typeof rangeFor>[1]["config"];

/** Creates a layer, a fork of it and a fork of that, which share the only range. */
async function threeLayers() {
  const oci = contextWith({ furtherRanges: 1 });
  const [a, b, c] = [holder("a"), holder("b"), holder("c")] as const;
  const start = await rangeFor(oci, { id: "sb_aaaaaaaaaaaa", config: configOver(a) });
  shareLayerRange(oci, a, b);
  shareLayerRange(oci, b, c);
  expect([a, b, c].map((layer) => layerRange(oci, layer))).toEqual([start, start, start]);
  return { oci, layers: { a, b, c } };
}

/** Returns whether another holder can reserve the range, and frees it at once. */
async function isFree(oci: RangesOf): Promise<boolean> {
  const stranger = join(stateDir, "stranger");
  mkdirSync(stranger, { recursive: true });
  await reserveRange(oci, stranger);
  const path = join(stateDir, "oci", "ranges", String(FIRST + SANDBOX_IDS));
  const isOurs = readlinkSync(path) === stranger;
  releaseRange(oci, FIRST + SANDBOX_IDS, stranger);
  return isOurs;
}

test.each(orders)("keeps a shared range until its last fork is released: %s, %s, %s", async (...order) => {
  const { oci, layers } = await threeLayers();
  for (const name of order) {
    expect(await isFree(oci)).toBe(false);
    releaseLayer(oci, layers[name]);
    rmSync(layers[name], { recursive: true });
  }
  expect(await isFree(oci)).toBe(true);
  expect(ranges()).toEqual([]);
});

test.each(orders)("keeps a shared range until its last fork vanishes unreleased: %s, %s, %s", async (...order) => {
  const { oci, layers } = await threeLayers();
  const link = join(stateDir, "oci", "ranges", String(FIRST + SANDBOX_IDS));
  for (const name of order) {
    lutimesSync(link, 0, 0);
    expect(await isFree(oci)).toBe(false);
    rmSync(layers[name], { recursive: true });
  }
  lutimesSync(link, 0, 0);
  expect(await isFree(oci)).toBe(true);
  expect(ranges()).toEqual([]);
});
