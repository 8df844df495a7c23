import { execFileSync } from "node:child_process";
import { lstatSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { accountEntries } from "./accounts.ts";
import { isWorkUid, workUidFor } from "./details.ts";
import { archiveOf, firstFile } from "./small-archive.ts";

const inPieces = (archive: Buffer) =>
  (async function* () {
    for (let at = 0; at < archive.length; at += 700) yield archive.subarray(at, at + 700);
  })();

test("the sandbox's account replaces one with its name or id and keeps the others", () => {
  const files = { passwd: "root:x:0:0::/root:/bin/bash\nuser:x:1000:1000::/old:/bin/sh\nother:x:20001:1::/:/x\n", group: null };
  const entries = accountEntries({ files, workUid: 20_001, sudo: true });
  const content = (name: string) => entries.find((entry) => entry.name === name)?.content;
  expect(content("etc/passwd")).toBe("root:x:0:0::/root:/bin/bash\nuser:x:20001:20001:Sandbox:/home/user:/bin/sh\n");
  expect(content("etc/group")).toBe("root:x:0:\nuser:x:20001:\n");
});

test("packs an archive that tar reads, with owners and links", () => {
  const folder = mkdtempSync(join(tmpdir(), "caisson-test-archive-"));
  try {
    const input = archiveOf(accountEntries({ files: { passwd: null, group: null }, workUid: 20_001, sudo: true }));
    expect(execFileSync("tar", ["--numeric-owner", "-tvf", "-"], { input, encoding: "utf8" })).toMatch(/20001\/20001 .*workspace\//);
    execFileSync("tar", ["-C", folder, "--no-same-owner", "-xf", "-"], { input });
    expect(lstatSync(join(folder, "usr/local/bin/sudo")).isSymbolicLink()).toBe(true);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("reads only a small regular file from an image's archive", async () => {
  const root = { uid: 0, gid: 0, mode: 0o644 };
  const file = archiveOf([{ name: "passwd", kind: "file", ...root, content: "x".repeat(2000) }]);
  expect(await firstFile(inPieces(file), { bytesMax: 2000 })).toBe("x".repeat(2000));
  expect(await firstFile(inPieces(file), { bytesMax: 1999 })).toBeNull();
  const link = archiveOf([{ name: "passwd", kind: "link", ...root, linkTarget: "/etc/shadow" }]);
  expect(await firstFile(inPieces(link), { bytesMax: 2000 })).toBeNull();
});

test("sandbox uids differ from the machine's users and from each other", () => {
  const usedUids = new Set<number>();
  for (let i = 0; i < 500; i += 1) {
    const uid = workUidFor("sb_aaaaaaaaaaaa", usedUids);
    expect(isWorkUid(uid)).toBe(true);
    expect(usedUids.has(uid)).toBe(false);
    usedUids.add(uid);
  }
  for (const uid of [0, 1000, 19_999, 60_000, 20_000.5, Number.NaN]) expect(isWorkUid(uid)).toBe(false);
});
