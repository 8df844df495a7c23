import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { accountEntries } from "./accounts.ts";
import { folderArchive } from "./folder-archive.ts";
import { firstFile, tarOf } from "./tar-writer.ts";

let work = "";
beforeEach(() => {
  work = mkdtempSync(join(tmpdir(), "caisson-test-archive-"));
  mkdirSync(join(work, "from"));
  mkdirSync(join(work, "to"));
});
afterEach(() => rmSync(work, { recursive: true, force: true }));

async function packed(options: { exclude?: string[]; signal?: AbortSignal } = {}): Promise<Buffer> {
  const parts: Buffer[] = [];
  const archive = folderArchive(join(work, "from"), { into: "workspace", uid: 20_000, gid: 20_001, exclude: [], ...options });
  for await (const part of archive) parts.push(part);
  return Buffer.concat(parts);
}

function unpack(archive: Buffer): string {
  execFileSync("tar", ["-C", join(work, "to"), "--no-same-owner", "-xf", "-"], { input: archive });
  return join(work, "to", "workspace");
}

test("files, folders, links, long names and odd sizes come out as they went in", async () => {
  const from = join(work, "from");
  const long = `${"long-folder-name-".repeat(6)}/${"long-file-name-".repeat(8)}`;
  mkdirSync(join(from, long, ".."), { recursive: true });
  writeFileSync(join(from, long), "deep");
  for (const size of [0, 1, 511, 512, 513, 300_000]) writeFileSync(join(from, `size-${size}`), Buffer.alloc(size, size % 251));
  writeFileSync(join(from, "ünïcode \n name"), "x");
  writeFileSync(join(from, "program"), "#!/bin/sh\n");
  chmodSync(join(from, "program"), 0o4755);
  symlinkSync("/etc/shadow", join(from, "link"));
  symlinkSync("t/".repeat(90), join(from, "long-link"));
  const to = unpack(await packed());
  expect(readFileSync(join(to, long), "utf8")).toBe("deep");
  for (const size of [0, 1, 511, 512, 513, 300_000]) {
    expect(Buffer.compare(readFileSync(join(to, `size-${size}`)), Buffer.alloc(size, size % 251))).toBe(0);
  }
  expect(readFileSync(join(to, "ünïcode \n name"), "utf8")).toBe("x");
  expect(lstatSync(join(to, "program")).mode & 0o7777).toBe(0o755);
  expect(readlinkSync(join(to, "link"))).toBe("/etc/shadow");
  expect(readlinkSync(join(to, "long-link"))).toBe("t/".repeat(90));
});

test("everything belongs to the sandbox's user", async () => {
  writeFileSync(join(work, "from", "file"), "x");
  const listing = execFileSync("tar", ["--numeric-owner", "-tvf", "-"], { input: await packed(), encoding: "utf8" });
  expect(listing).toMatch(/20000\/20001 +1 /);
});

test("FIFOs are left out and do not block; so is what is excluded, with all below", async () => {
  const from = join(work, "from");
  execFileSync("mkfifo", [join(from, "fifo")]);
  mkdirSync(join(from, "secret", "deep"), { recursive: true });
  writeFileSync(join(from, "secret", "deep", "key"), "x");
  writeFileSync(join(from, "kept"), "x");
  const to = unpack(await packed({ exclude: ["secret"] }));
  expect(readdirSync(to)).toEqual(["kept"]);
});

test("an aborted archive ends as cancelled, a file that cannot be read as denied", async () => {
  writeFileSync(join(work, "from", "file"), "x");
  await expect(packed({ signal: AbortSignal.abort() })).rejects.toMatchObject({ code: "cancelled" });
  await expect(async () => {
    for await (const _ of folderArchive(join(work, "absent"), { into: "x", uid: 1, gid: 1, exclude: [] }));
  }).rejects.toMatchObject({ code: "denied" });
});

test("the work's account replaces one of its name or id, and keeps the others", () => {
  const files = { passwd: "root:x:0:0::/root:/bin/bash\nuser:x:1000:1000::/old:/bin/sh\nother:x:20001:1::/:/x\n", group: null };
  const entries = accountEntries({ files, workUid: 20_001, sudo: true });
  const passwd = entries.find(({ name }) => name === "etc/passwd")?.content;
  expect(passwd).toBe("root:x:0:0::/root:/bin/bash\nuser:x:20001:20001:Sandbox:/home/user:/bin/sh\n");
  expect(entries.find(({ name }) => name === "etc/group")?.content).toBe("root:x:0:\nuser:x:20001:\n");
  const archive = tarOf(entries);
  expect(firstFile(archive, { bytesMax: 1000 })).toBe(passwd);
  expect(firstFile(archive, { bytesMax: 10 })).toBeNull();
  expect(
    firstFile(tarOf([{ name: "l", kind: "link", mode: 0, uid: 0, gid: 0, linkTarget: "/etc/shadow" }]), { bytesMax: 1000 }),
  ).toBeNull();
  execFileSync("tar", ["-C", join(work, "to"), "-xf", "-"], { input: archive });
  expect(lstatSync(join(work, "to", "usr/local/bin/sudo")).isSymbolicLink()).toBe(true);
  if (process.getuid?.() === 0) expect(lstatSync(join(work, "to", "home/user")).uid).toBe(20_001);
  expect(existsSync(join(work, "to", "workspace"))).toBe(true);
});
