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
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { hostTemplate } from "./host-template.ts";
import { type SkeletonOptions, writeSkeleton } from "./skeleton.ts";
import { createTemplateCache } from "./template-cache.ts";

let stateDir = "";
let etc = "";
beforeEach(() => {
  stateDir = mkdtempSync(join(tmpdir(), "caisson-test-"));
  etc = join(stateDir, "etc-of-a-host");
  mkdirSync(join(etc, "sub"), { recursive: true });
  writeFileSync(join(etc, "public"), "public", { mode: 0o644 });
  writeFileSync(join(etc, "secret"), "secret", { mode: 0o640 });
  writeFileSync(join(etc, "sub/settings.xml"), "password", { mode: 0o644 });
  mkdirSync(join(etc, "closed"), { mode: 0o750 });
  writeFileSync(join(etc, "closed/inner"), "secret", { mode: 0o644 });
  symlinkSync("/usr/bin/vim", join(etc, "editor"));
});
afterEach(() => rmSync(stateDir, { recursive: true, force: true }));

function template(): SkeletonOptions["template"] {
  return {
    folders: [
      { path: "/tmp", mode: 0o1777, owner: "root" },
      { path: "/home", mode: 0o755, owner: "root" },
      { path: "/home/user", mode: 0o755, owner: "user" },
    ],
    links: [{ path: "/bin", target: "usr/bin" }],
    files: [{ path: "/home/user/note", mode: 0o600, content: "hello" }],
    copies: [{ path: etc, why: "a test", except: /^settings\.xml$/ }],
  };
}

const drafts = () => readdirSync(join(stateDir, "templates")).filter((name) => name.startsWith(".draft"));

describe("writeSkeleton", () => {
  it("creates folders, links, files and copies of world-readable files", async () => {
    const dir = await writeSkeleton({ template: template(), stateDir });
    expect(lstatSync(join(dir, "tmp")).mode & 0o7777).toBe(0o1777);
    expect(readlinkSync(join(dir, "bin"))).toBe("usr/bin");
    expect(readFileSync(join(dir, "home/user/note"), "utf8")).toBe("hello");
    expect(lstatSync(join(dir, "home/user/note")).mode & 0o777).toBe(0o600);
    expect(readdirSync(join(dir, etc)).sort()).toEqual(["editor", "public", "sub"]);
    expect(readdirSync(join(dir, etc, "sub"))).toEqual([]);
    expect(readlinkSync(join(dir, etc, "editor"))).toBe("/usr/bin/vim");
    expect(drafts()).toEqual([]);
  });

  it("returns the same folder for the same host, and another after a change", async () => {
    const first = await writeSkeleton({ template: template(), stateDir });
    expect(await writeSkeleton({ template: template(), stateDir })).toBe(first);
    writeFileSync(join(etc, "public"), "changed");
    const second = await writeSkeleton({ template: template(), stateDir });
    expect(second).not.toBe(first);
    expect(readFileSync(join(second, etc, "public"), "utf8")).toBe("changed");
    expect(readFileSync(join(first, etc, "public"), "utf8")).toBe("public");
    symlinkSync("/usr/bin/nano", join(etc, "pager"));
    utimesSync(etc, new Date(), new Date(Date.now() + 5000));
    expect(await writeSkeleton({ template: template(), stateDir })).not.toBe(second);
  });

  it("creates one skeleton for concurrent callers", async () => {
    const skeletons = await Promise.all(Array.from({ length: 8 }, () => writeSkeleton({ template: template(), stateDir })));
    expect(new Set(skeletons).size).toBe(1);
    expect(readdirSync(join(stateDir, "templates"))).toHaveLength(1);
  });

  it("leaves nothing behind when it fails", async () => {
    const broken = { ...template(), files: [{ path: "/no/such/folder", mode: 0o644, content: "" }] };
    await expect(writeSkeleton({ template: broken, stateDir })).rejects.toThrow(expect.objectContaining({ code: "internal" }));
    expect(readdirSync(join(stateDir, "templates"))).toEqual([]);
  });

  it.skipIf(process.getuid?.() !== 0)("assigns files to the requested ids", async () => {
    const owners = { root: { uid: 100_000, gid: 100_000 }, user: { uid: 101_000, gid: 101_000 } };
    const dir = await writeSkeleton({ template: template(), stateDir, owners });
    const owner = (path: string) => lstatSync(join(dir, path)).uid;
    expect([owner("/"), owner("tmp"), owner("bin"), owner(join(etc, "public")), owner("home/user"), owner("home/user/note")]).toEqual([
      100_000, 100_000, 100_000, 100_000, 101_000, 101_000,
    ]);
  });

  it("contains what programs need, but none of the host's accounts", async () => {
    const dir = await writeSkeleton({ template: await hostTemplate({ home: "/nonexistent", path: "" }), stateDir });
    expect(readFileSync(join(dir, "etc/passwd"), "utf8")).toMatch(/^user:x:1000:1000:/m);
    expect(existsSync(join(dir, "etc/shadow"))).toBe(false);
    expect(readdirSync(join(dir, "root"))).toEqual([]);
    expect(readdirSync(join(dir, "home"))).toEqual(["user"]);
    expect(existsSync(join(dir, "etc/ld.so.cache"))).toBe(existsSync("/etc/ld.so.cache"));
  });
});

describe("the template cache", () => {
  it("notes the last use of a template, and removes it only while it is unused", async () => {
    const cache = createTemplateCache({ stateDir });
    const draft = await cache.draft();
    writeFileSync(join(draft, "file"), "x");
    await cache.publish(draft, "image-x");
    expect(await cache.use("image-none")).toBeNull();
    const [first] = await cache.uses();
    expect(first).toMatchObject({ name: "image-x" });
    expect(Math.abs(Date.now() - (first?.lastUsedMs ?? 0))).toBeLessThan(600_000);

    expect(await cache.use("image-x")).toBe(cache.path("image-x"));
    const before = new Date("2026-01-01");
    utimesSync(join(cache.folder, "uses", "image-x"), before, before);
    expect(await cache.uses()).toEqual([{ name: "image-x", lastUsedMs: before.getTime() }]);
    expect(await cache.removeUnused("image-x", async () => false)).toBe(false);
    expect(await cache.removeUnused("uses", async () => true)).toBe(false);

    // Another process uses the template after we have asked, and before it loses its name.
    const seen: number[] = [];
    const usedMeanwhile = async (lastUsedMs: number) => {
      if (seen.push(lastUsedMs) === 1) await createTemplateCache({ stateDir }).use("image-x");
      return lastUsedMs === before.getTime();
    };
    expect(await cache.removeUnused("image-x", usedMeanwhile)).toBe(false);
    expect(seen[1]).toBeGreaterThan(before.getTime());
    expect(readFileSync(join(cache.path("image-x"), "file"), "utf8")).toBe("x");

    expect(await cache.removeUnused("image-x", async () => true)).toBe(true);
    expect(await cache.removeUnused("image-x", async () => true)).toBe(false);
    expect(await cache.uses()).toEqual([]);
    expect(readdirSync(cache.folder)).toEqual(["uses"]);
    expect(readdirSync(join(cache.folder, "uses"))).toEqual([]);
  });

  it("sweeps the drafts of dead processes and no others", async () => {
    const cache = createTemplateCache({ stateDir });
    const mine = await cache.draft();
    mkdirSync(join(cache.folder, ".draft-999999999-1-0123456789ab/deep"), { recursive: true });
    mkdirSync(join(cache.folder, ".draft-999999999-abc"));
    mkdirSync(join(cache.folder, `.draft-${process.pid}-1-0123456789ab`));
    mkdirSync(join(cache.folder, "image-x"));
    chmodSync(join(cache.folder, "image-x"), 0o700);
    expect(await cache.sweep()).toBe(3);
    expect(readdirSync(cache.folder).sort()).toEqual([mine.slice(cache.folder.length + 1), "image-x"].sort());
  });
});

it("does not treat a template that cannot be looked up as absent", async () => {
  symlinkSync("templates", join(stateDir, "templates"));
  await expect(createTemplateCache({ stateDir }).use("x")).rejects.toMatchObject({ code: "ELOOP" });
});
