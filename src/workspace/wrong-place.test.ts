import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { refuseWrongPlace, whyWrongPlace } from "./wrong-place.ts";

let folder: string;
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "caisson-place-")));
  for (const name of ["home/me/project", "home/me/.local/state/caisson/sessions"]) mkdirSync(join(folder, name), { recursive: true });
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const places = () => ({ home: join(folder, "home/me"), stateDir: join(folder, "home/me/.local/state/caisson") });
const why = (path: string) => whyWrongPlace(path.startsWith("/") ? path : join(folder, path), places());

describe("a current folder that is probably a mistake", () => {
  test.each([
    ["home/me", /your home folder/],
    ["home", /it contains your home folder/],
    ["home/me/.local/state/caisson", /its own state there/],
    ["home/me/.local/state/caisson/sessions", /its own state there/],
    ["home/me/.local", /its own state in it/],
    ["/", /the whole machine/],
    ["/etc", /a system folder/],
    ["/etc/ssl", /a system folder/],
    ["/usr", /a system folder/],
    ["/usr/lib/x", /a system folder/],
    ["/home", /a system folder/],
    ["/var/log/x", /a system folder/],
    ["/proc/self", /a system folder/],
  ])("includes %s", (path, reason) => {
    expect(why(path)).toMatch(reason);
  });

  test.each([[".ssh"], [".gnupg"], [".aws/credentials"], [".kube/config"]])("includes one that holds %s", (keys) => {
    mkdirSync(join(folder, "dotfiles", keys, ".."), { recursive: true });
    writeFileSync(join(folder, "dotfiles", keys), "x");
    expect(why("dotfiles")).toContain(keys);
  });

  test("includes a folder of keys, and a link to the home folder", () => {
    mkdirSync(join(folder, "home/me/.ssh/keys"), { recursive: true });
    expect(why("home/me/.ssh/keys")).toMatch(/\.ssh is where keys are kept/);
    symlinkSync(join(folder, "home/me"), join(folder, "elsewhere"));
    expect(why("elsewhere")).toMatch(/your home folder/);
  });

  test.each(["home/me/project", "/var/lib/builds/project", "/usr/local/src/project", "/opt/project", "/usr/src"])(
    "does not include %s",
    (path) => {
      expect(why(path)).toBeNull();
    },
  );

  test("is rejected with the reason and the option that names it explicitly", () => {
    expect(() => refuseWrongPlace(join(folder, "home/me"), { places: places(), option: "workspace" })).toThrow(
      expect.objectContaining({
        code: "invalid",
        message: expect.stringContaining("it is your home folder"),
        hint: expect.stringContaining("name this one with --workspace DIR"),
      }),
    );
    expect(() => refuseWrongPlace(join(folder, "home/me/project"), { places: places(), option: "workspace" })).not.toThrow();
  });
});
