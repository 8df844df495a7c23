import { chmodSync, mkdirSync, rmSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type HostTemplate, hostTemplate } from "./host-template.ts";
import { makeHome, plantIn, templateOf } from "./testing-home.ts";

let root = "";
let home = "";
beforeEach(() => {
  ({ root, home } = makeHome());
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const plant = (files: Record<string, string>) => plantIn(home, files);
const template = (...path: string[]) => templateOf(home, path);

describe("odd PATH entries", () => {
  const ignored = (found: HostTemplate) => found.describe().filter(({ what }) => what === "ignored");
  const mounts = (found: HostTemplate) =>
    found.binds.map(({ source }) => source).filter((source) => !/^\/(?:usr|bin|sbin|lib\w*)$/.test(source));

  it("are ignored with the reason if the home is in a reserved folder", async () => {
    plant({ ".cargo/bin/cargo": "x" });
    const found = await hostTemplate({ home, path: join(home, ".cargo/bin"), reserved: [root] });
    expect(ignored(found)).toEqual([
      { path: join(home, ".cargo/bin"), what: "ignored", why: `the home folder is below ${root}, which sandboxes use themselves` },
    ]);
  });

  it("are ignored, each with a reason", async () => {
    plant({ ".cargo/bin/cargo": "x", "bin/x": "x", "project/node_modules/.bin/x": "x" });
    symlinkSync("/etc", join(home, "etc-link"));
    const odd = [
      "",
      ".",
      "relative/bin",
      "..",
      "/",
      home,
      dirname(home),
      "~/bin",
      join(home, "project/node_modules/.bin"),
      join(home, "missing"),
      join(home, ".cargo"),
      join(home, "etc-link"),
      `${home}/.cargo/../.cargo/bin`,
      "/root",
      "/etc",
      "/home",
      "a\nb",
    ];
    const found = await hostTemplate({ home, path: odd.join(":"), reserved: [] });
    expect(mounts(found)).toEqual([]);
    expect(ignored(found).map(({ path }) => path)).toEqual(odd.filter((entry) => entry !== ""));
    expect(ignored(found).every(({ why }) => why.length > 10)).toBe(true);
    expect(found.env.PATH).toBe("/home/user/.local/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
  });

  it("are ignored if the folder is world-writable", async () => {
    plant({ ".cargo/bin/cargo": "x" });
    chmodSync(join(home, ".cargo/bin"), 0o777);
    expect(mounts(await template(".cargo/bin"))).toEqual([]);
  });

  it("are ignored if a link out of the home leads to the toolchain", async () => {
    const elsewhere = join(root, "elsewhere");
    mkdirSync(join(elsewhere, "bin"), { recursive: true });
    symlinkSync(elsewhere, join(home, ".cargo"));
    expect(mounts(await template(".cargo/bin"))).toEqual([]);
  });

  it("are ignored if the toolchain is in the workspace", async () => {
    plant({ ".cargo/bin/cargo": "x" });
    const found = await hostTemplate({ home, path: join(home, ".cargo/bin"), reserved: [], avoid: [home] });
    expect(mounts(found)).toEqual([]);
    expect(ignored(found)[0]?.why).toContain("not trusted");
  });

  it("are ignored if the home is not a folder, or is where sandboxes mount", async () => {
    plant({ ".cargo/bin/cargo": "x" });
    const path = join(home, ".cargo/bin");
    for (const odd of ["/", "", "relative", "/nonexistent"])
      expect(mounts(await hostTemplate({ home: odd, path, reserved: [] }))).toEqual([]);
    expect(mounts(await hostTemplate({ home, path, reserved: [root] }))).toEqual([]);
  });
});

describe("the system's part of the template", () => {
  it("is /usr with its links, and no other host folder", async () => {
    const found = await hostTemplate({ home: "/nonexistent", path: "/usr/bin:/bin" });
    expect(found.binds.map(({ source }) => source)).toContain("/usr");
    for (const { source } of found.binds) expect(source).toMatch(/^\/(usr|bin|sbin|lib\w*)$/);
    for (const { target } of found.links.filter(({ path }) => /^\/(bin|sbin|lib)/.test(path))) expect(target).toMatch(/^\/?usr\//);
  });

  it("copies no secrets from /etc", async () => {
    const found = await hostTemplate({ home: "/nonexistent", path: "" });
    const secret = /shadow|ssh|gitconfig|npmrc|pip\.conf|auth|private|wgetrc|sudoers|settings\.xml|machine-id/;
    expect(found.copies.map(({ path }) => path).filter((path) => secret.test(path))).toEqual([]);
    expect(found.files.map(({ path }) => path)).toEqual(
      expect.arrayContaining(["/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/hosts", "/etc/resolv.conf"]),
    );
  });

  it("describes everything that is visible", async () => {
    const found = await hostTemplate({ home: "/nonexistent", path: "" });
    const paths = found.describe().map(({ path }) => path);
    for (const { target } of found.binds) expect(paths).toContain(target);
    for (const { path } of [...found.copies, ...found.files]) expect(paths).toContain(path);
  });
});
