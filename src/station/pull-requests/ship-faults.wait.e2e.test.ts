import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type ForgeServer, startForgeServer } from "../../../test/support/forge-server.ts";
import { makeShipRig, type ShipRig } from "./testing-pull-requests.ts";

const TOKEN = "canary-token-9876543210";

describe.each(["github", "gitea", "git"] as const)("a ship to %s", (kind) => {
  let folder: string;
  let server: ForgeServer;
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), "caisson-forge-"));
    server = await startForgeServer({ kind: kind === "github" ? "github" : "gitea", folder, token: TOKEN, files: { "a.txt": "one\n" } });
  });
  afterEach(async () => {
    await server[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });
  const rigFor = (more: Partial<Parameters<typeof makeShipRig>[0]> = {}) =>
    makeShipRig({
      target: { forge: kind, remote: server.remote, token: "TOKEN", allowPrivate: true },
      repository: server.repository,
      token: TOKEN,
      ...more,
    });
  const failures = (rig: ShipRig) =>
    rig.events
      .filter(({ type }) => type === "ship.step_failed")
      .map(({ at, data }) => {
        const { error, nextAt } = data as { error: { code: string }; nextAt: string | null };
        return { code: error.code, waitsMs: nextAt === null ? null : Date.parse(nextAt) - Date.parse(at) };
      });

  test.each([
    ["429 with Retry-After", { status: 429, headers: { "retry-after": "240" } }, 240_000],
    ["403 with Retry-After", { status: 403, headers: { "retry-after": "90" } }, 90_000],
    // The rig's clock starts at 2026-01-02T03:04:05Z.
    [
      "403 with a limit that is used up",
      { status: 403, headers: { "x-ratelimit-remaining": "0", "x-ratelimit-reset": "1767323545" } },
      500_000,
    ],
    ["503 with a Retry-After of a year", { status: 503, headers: { "retry-after": "31536000" } }, 3_600_000],
  ])("waits as long as the remote asks, up to an hour: %s", async (_what, fault, waitsMs) => {
    using rig = await rigFor();
    server.faults.add(/info\/refs/, { kind: "status", ...fault });
    await rig.sail();
    expect(failures(rig)).toEqual([{ code: fault.status === 503 ? "unavailable" : "busy", waitsMs }]);
    expect(rig.state().ended).toBe("completed");
    expect(server.repository.file("main", "a.txt")).toBe("two");
  });

  test("times out on a silent remote and retries", async () => {
    using rig = await rigFor({ hurries: /info\/refs\?service=git-receive-pack/ });
    server.faults.add(/info\/refs\?service=git-receive-pack/, { kind: "silent" });
    await rig.sail();
    expect(failures(rig)[0]).toEqual({ code: "timeout", waitsMs: expect.any(Number) });
    expect(rig.state().ended).toBe("completed");
  });

  // GitHub reports unmet branch rules as something that may still be met, so we keep asking for a while.
  test.each(kind === "gitea" ? (["draft", "protected"] as const) : kind === "github" ? (["draft"] as const) : [])(
    "does not merge against the forge's rules (%s), even if its token could",
    async (rule) => {
      using rig = await rigFor();
      server.pulls.forbid(rule);
      await rig.sail();
      expect(server.repository.file("main", "a.txt")).toBe("one");
      expect(server.pulls.all()).toMatchObject([{ state: "open", mergedAt: null }]);
      expect(rig.state()).toMatchObject({ ended: null, isChecked: false, failure: { nextAt: null } });
      expect(server.requests().filter(({ path }) => path.endsWith("/merge"))).toEqual([]);
      server.pulls.forbid(null);
      rig.tell({ type: "ship.resumed", data: { by: "somebody" } });
      await rig.sail();
      expect(rig.state().ended).toBe("completed");
      expect(server.repository.file("main", "a.txt")).toBe("two");
    },
  );
});
