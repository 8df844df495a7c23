import { constants } from "node:os";
import { describe, expect, it } from "vitest";
import { failureOf } from "./launch-failure.ts";
import { createLauncher, encodePlan } from "./launcher.ts";

describe("encodePlan", () => {
  it("ends every field by NUL", () => {
    expect(
      encodePlan([
        ["id", "a"],
        ["map-uid", "sandbox", 0, 5, 9],
      ]).toString("latin1"),
    ).toBe("id\0a\0map-uid\0sandbox\x000\x005\x009\0");
  });
  it("refuses a field with NUL", () => {
    expect(() => encodePlan([["folder", "/a\0b"]])).toThrow(expect.objectContaining({ code: "invalid" }));
  });
});

describe("failureOf", () => {
  const code = (step: string, errno = 0) => failureOf({ what: "run", step, errno, text: "t" }).code;
  it("tells by step and number", () => {
    expect(code("userns", constants.errno.EPERM)).toBe("unavailable");
    expect(code("source", constants.errno.ENOENT)).toBe("not_found");
    expect(code("idmap", constants.errno.EINVAL)).toBe("unsupported");
    expect(code("folder", constants.errno.ENOSPC)).toBe("no_space");
    expect(code("plan")).toBe("internal");
  });
});

describe("createLauncher", () => {
  it("says so when the guest was not built", async () => {
    await expect(createLauncher({ guestPath: "/nowhere/guest", path: "/usr/bin" })({ what: "remove", plan: [] })).rejects.toMatchObject({
      code: "unavailable",
    });
  });
  it("does not begin what was cancelled already", async () => {
    await expect(
      createLauncher({ guestPath: "/nowhere/guest", path: "/usr/bin" })({ what: "run", plan: [], signal: AbortSignal.abort() }),
    ).rejects.toMatchObject({ code: "cancelled" });
  });
});
