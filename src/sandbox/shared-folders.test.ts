import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { FolderMount } from "../contract/sandbox/sandbox-fields.ts";
import { checkMounts, resolveMounts } from "./shared-folders.ts";
import { viewState } from "./state-places.ts";

const at = (target: string): FolderMount => ({ path: "/x", target, access: "ro" });
const invalid = expect.objectContaining({ code: "invalid" });

describe("checkMounts", () => {
  test.each([
    ..."/ /workspace /workspace/sub /proc /proc/1 /sys/x /dev/shm/x /etc /etc/ssl /usr /usr/local/x /bin /lib64/x /.caisson/x".split(" "),
    ..."/run/caisson /run/x /tmp /tmp/x /var/tmp/x /var/run/x /home /home/user /root /var /boot/x".split(" "),
    ..."//workspace /./workspace /mnt/a\nb".split(" "),
  ])("rejects %j", (target) => {
    expect(() => checkMounts([at(target)])).toThrow(invalid);
  });

  test.each(["/data", "/mnt/x", "/home/user/.cache/pip", "/var/lib/data", "/opt/x", "/srv", "/workspaces/x"])("accepts %s", (target) => {
    expect(checkMounts([at(target)])).toEqual([at(target)]);
  });

  test("normalizes the path", () => {
    expect(checkMounts([at("/mnt//data/./")])[0]?.target).toBe("/mnt/data");
  });

  test.each([
    [["/mnt/a", "/mnt/a"], "two folders would be mounted at /mnt/a"],
    [["/mnt/a", "/mnt//a/"], "two folders would be mounted at /mnt/a"],
    [["/mnt/a", "/mnt/a/b"], "the mounts /mnt/a and /mnt/a/b overlap"],
    [["/mnt/a/b", "/mnt/a"], "the mounts /mnt/a/b and /mnt/a overlap"],
  ])("rejects %j together", (targets, message) => {
    expect(() => checkMounts(targets.map(at))).toThrow(message);
  });
});

describe("resolveMounts", () => {
  let folder: string;
  beforeEach(() => {
    folder = realpathSync(mkdtempSync(join(tmpdir(), "caisson-mounts-")));
    for (const name of ["state/sessions/s/empty", "data"]) mkdirSync(join(folder, name), { recursive: true });
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));
  const resolved = (path: string) =>
    resolveMounts([{ ...at("/mnt/x"), path: join(folder, path) }], { state: () => viewState(join(folder, "state")) });

  test("resolves a link once", () => {
    symlinkSync("data", join(folder, "link"));
    expect(resolved("link")[0]?.path).toBe(join(folder, "data"));
  });

  test.each(["state", "state/sessions", "state/sessions/s/empty"])("rejects Caisson's own folder %s", (path) => {
    expect(() => resolved(path)).toThrow(invalid);
  });

  test("distinguishes a file from a missing folder", () => {
    writeFileSync(join(folder, "file"), "");
    expect(() => resolved("file")).toThrow(invalid);
    expect(() => resolved("missing")).toThrow(expect.objectContaining({ code: "not_found" }));
    expect(() => resolveMounts([{ ...at("/mnt/x"), path: "relative" }], { state: () => viewState(folder) })).toThrow(invalid);
  });
});
