import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { constants, tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { failureOf } from "./launch-failure.ts";
import { createLauncher, encodePlan, removeFilesWhen } from "./launcher.ts";

describe("encodePlan", () => {
  it("ends every field with NUL", () => {
    expect(
      encodePlan([
        ["id", "a"],
        ["map-uid", "sandbox", 0, 5, 9],
      ]).toString("latin1"),
    ).toBe("id\0a\0map-uid\0sandbox\x000\x005\x009\0");
  });
  it("rejects a field with NUL", () => {
    expect(() => encodePlan([["folder", "/a\0b"]])).toThrow(expect.objectContaining({ code: "invalid" }));
  });
});

describe("failureOf", () => {
  const code = (step: string, errno = 0) => failureOf({ what: "run", step, errno, text: "t" }).code;
  it("translates by step and error number", () => {
    expect(code("userns", constants.errno.EPERM)).toBe("unavailable");
    expect(code("source", constants.errno.ENOENT)).toBe("not_found");
    expect(code("idmap", constants.errno.EINVAL)).toBe("unsupported");
    expect(code("folder", constants.errno.ENOSPC)).toBe("no_space");
    expect(code("plan")).toBe("internal");
  });
});

describe("createLauncher", () => {
  it("reports a guest that was not built", async () => {
    await expect(createLauncher({ guestPath: "/nowhere/guest", path: "/usr/bin" })({ what: "remove", plan: [] })).rejects.toMatchObject({
      code: "unavailable",
    });
  });
  it("does not start a launch that is already cancelled", async () => {
    await expect(
      createLauncher({ guestPath: "/nowhere/guest", path: "/usr/bin" })({ what: "run", plan: [], signal: AbortSignal.abort() }),
    ).rejects.toMatchObject({ code: "cancelled" });
  });
});

describe("removeFilesWhen", () => {
  const guestPath = join(import.meta.dirname, "../../../../guest/build/caisson-guest");
  const launch = createLauncher({ guestPath, path: "/usr/bin" });
  const identity = () => ({ plan: [] });

  it("removes nothing before `ready`, and then whatever exists", async () => {
    const base = mkdtempSync(join(tmpdir(), "caisson-remove-"));
    const [first, late] = [join(base, "first"), join(base, "late")];
    mkdirSync(first);
    const { promise: ready, resolve } = Promise.withResolvers<void>();
    const started = Promise.withResolvers<void>();
    const noting: typeof launch = (options) =>
      launch({
        ...options,
        prepare: async (pid) => {
          started.resolve();
          await options.prepare?.(pid);
        },
      });
    const removing = removeFilesWhen({ launch: noting, identity }, { ready, paths: () => [first, late] });
    await started.promise;
    expect(existsSync(first)).toBe(true);
    mkdirSync(late);
    writeFileSync(join(late, "file"), "x");
    resolve();
    await removing;
    expect([existsSync(first), existsSync(late)]).toEqual([false, false]);
    rmSync(base, { recursive: true });
  });

  it("removes nothing if `ready` fails", async () => {
    const folder = mkdtempSync(join(tmpdir(), "caisson-remove-"));
    const ready = Promise.reject(new Error("still there"));
    await expect(removeFilesWhen({ launch, identity }, { ready, paths: () => [folder] })).rejects.toThrow("still there");
    expect(existsSync(folder)).toBe(true);
    rmSync(folder, { recursive: true });
  });

  it("waits for `ready` even if the launcher cannot be started", async () => {
    let done = false;
    const ready = new Promise<void>((resolve) => setImmediate(resolve)).then(() => {
      done = true;
    });
    const broken = createLauncher({ guestPath: "/nowhere/guest", path: "/usr/bin" });
    await expect(removeFilesWhen({ launch: broken, identity }, { ready, paths: () => ["/nowhere/x"] })).rejects.toMatchObject({
      code: "unavailable",
    });
    expect(done).toBe(true);
  });
});
