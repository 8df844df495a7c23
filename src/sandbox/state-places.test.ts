import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { parseMounts, viewState } from "./state-places.ts";

let home: string;
let stateDir: string;
beforeEach(() => {
  home = realpathSync(mkdtempSync(join(tmpdir(), "caisson-test-")));
  stateDir = join(home, ".local", "state", "caisson");
  mkdirSync(join(stateDir, "sandboxes", "sb_a"), { recursive: true });
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const paths = (folder: string) =>
  ["no", "yes"].map((below) =>
    viewState(stateDir)
      .placesIn(folder, { mountsBelow: below === "yes" })
      .map(({ path }) => path),
  );

describe("placesIn", () => {
  test("finds the state folder in every folder above it, with its inode", () => {
    expect(paths(home)).toEqual([[".local/state/caisson"], [".local/state/caisson"]]);
    expect(paths(join(home, ".local", "state"))).toEqual([["caisson"], ["caisson"]]);
    const { dev, ino } = statSync(stateDir, { bigint: true });
    expect(viewState(stateDir).placesIn(home, { mountsBelow: false })).toEqual([{ path: ".local/state/caisson", device: dev, inode: ino }]);
  });
  test("finds nothing in other folders", () => {
    mkdirSync(join(home, ".local", "state", "caisson-too"));
    expect(paths(join(home, ".local", "state", "caisson-too"))).toEqual([[], []]);
    expect(paths(join(stateDir, "sandboxes"))).toEqual([[], []]);
    rmSync(stateDir, { recursive: true });
    expect(paths(home)).toEqual([[], []]);
  });
  test("finds the state folder and its parts through links", () => {
    symlinkSync(stateDir, join(home, "link"));
    expect(viewState(join(home, "link")).placesIn(home, { mountsBelow: false })).toHaveLength(1);
    mkdirSync(join(home, "big disk", "snapshots"), { recursive: true });
    symlinkSync(join(home, "big disk", "snapshots"), join(stateDir, "snapshots"));
    expect(paths(join(home, "big disk"))).toEqual([["snapshots"], ["snapshots"]]);
  });
});

describe("refuse", () => {
  const refuse = (folder: string, access: "overlay" | "ro" | "rw") => () => viewState(stateDir).refuse(folder, { access });
  test("rejects the state folder and everything in it, for every access", () => {
    for (const access of ["overlay", "ro", "rw"] as const) {
      expect(refuse(stateDir, access)).toThrow(expect.objectContaining({ code: "invalid" }));
      expect(refuse(join(stateDir, "sandboxes"), access)).toThrow(expect.objectContaining({ code: "invalid" }));
    }
    expect(refuse(home, "rw")).not.toThrow();
  });
  test("allows an empty folder in it below a layer", () => {
    const empty = join(stateDir, "sandboxes", "sb_a");
    expect(refuse(empty, "overlay")).not.toThrow();
    expect(refuse(empty, "rw")).toThrow(expect.objectContaining({ code: "invalid" }));
    writeFileSync(join(empty, "token"), "");
    expect(refuse(empty, "overlay")).toThrow(expect.objectContaining({ code: "invalid" }));
    expect(existsSync(empty)).toBe(true);
  });
});

test("parses the escapes in the kernel's mount table", () => {
  const text = "36 35 98:0 /mnt1 /mnt\\040one/\\303\\274 rw,noatime master:1 - ext3 /dev/root rw\n\n";
  expect(parseMounts(text)).toEqual([{ id: "36", device: "98:0", root: "/mnt1", point: "/mnt one/ü" }]);
});
