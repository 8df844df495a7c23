import { describe, expect, test } from "vitest";
import { useServer } from "../../test/support/api-station.ts";
import type { AuditEntry } from "../contract/audit/audit-verbs.ts";
import { CaissonError } from "../contract/error/error.ts";

const { station, token, ask, post, server, defects } = useServer();

async function entries(query = ""): Promise<AuditEntry[]> {
  return ((await (await ask(`/v1/audit${query}`)).json()) as { entries: AuditEntry[] }).entries;
}

describe("an HTTP call", () => {
  test("is audited when it changes something, with the caller and the names in it", async () => {
    const as = await token("run");
    const sandbox = (await (await post("/v1/sandboxes", { spec: { name: "box" } }, { as })).json()) as { id: string };
    await ask(`/v1/sandboxes/${sandbox.id}`, { as, method: "DELETE" });
    await ask("/v1/sandboxes", { as });
    expect(await entries()).toMatchObject([
      {
        outcome: "made",
        action: "sandboxes.remove",
        caller: expect.stringMatching(/^token test-/),
        address: "127.0.0.1",
        subject: { sandbox: sandbox.id },
      },
      { outcome: "made", action: "sandboxes.create", owner: "local", subject: { name: "box" } },
    ]);
  });

  test("is audited when it fails or is denied, without secrets", async () => {
    const as = await token("read");
    await post("/v1/sandboxes", {}, { as });
    await ask("/v1/runs", { as: "tok_aaaaaaaaaaaa_wrongsecret" });
    await ask("/v1/runs/missing/stop", { method: "POST" });
    const all = await entries();
    expect(all).toMatchObject([
      { outcome: "failed", code: "not_found", action: "runs.stop", caller: "user", address: null, subject: { run: "missing" } },
      { outcome: "made", action: "runs.stop" },
      { outcome: "failed", code: "unauthenticated", action: "runs.list", caller: null },
      { outcome: "failed", code: "denied", action: "sandboxes.create", caller: expect.stringMatching(/^token test-/) },
    ]);
    expect(JSON.stringify(all)).not.toContain("wrongsecret");
    expect(JSON.stringify(all)).not.toContain(as);
    expect((await ask("/v1/audit", { as })).status).toBe(403);
  });

  test("is refused when it cannot be audited", async () => {
    const { recordCall } = station().audit;
    station().audit.recordCall = async () => {
      throw new CaissonError("no_space", "the disk is full");
    };
    try {
      expect((await post("/v1/sandboxes")).status).toBe(507);
      expect((await ask("/v1/sandboxes")).status).toBe(200);
    } finally {
      station().audit.recordCall = recordCall;
    }
    expect((await station().sandboxes.list()).sandboxes).toEqual([]);
    expect(defects).toEqual([]);
  });

  test("does not fill the audit log from an address that is denied access", async () => {
    const requestCount = 200;
    const began = performance.now();
    for (let n = 0; n < requestCount; n++) await fetch(`${server().status.url}/v1/runs`);
    const seconds = Math.ceil((performance.now() - began) / 1000);
    const { length } = await entries("?limit=1000");
    expect(length).toBeGreaterThanOrEqual(60);
    // The rate allows one more entry for each second that passed.
    expect(length).toBeLessThanOrEqual(Math.min(requestCount, 60 + seconds));
  });
});
