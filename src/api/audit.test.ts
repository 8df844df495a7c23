import { describe, expect, test } from "vitest";
import type { AuditEntry } from "../contract/audit-verbs.ts";
import { CaissonError } from "../contract/error.ts";
import { useServer } from "./testing.ts";

const { station, token, ask, post, server, defects } = useServer();

async function entries(query = ""): Promise<AuditEntry[]> {
  return ((await (await ask(`/v1/audit${query}`)).json()) as { entries: AuditEntry[] }).entries;
}

describe("what is asked of the station", () => {
  test("is put down when it changes something, with who asked and what it names", async () => {
    const as = await token("run");
    const made = (await (await post("/v1/sandboxes", { spec: { name: "box" } }, { as })).json()) as { id: string };
    await ask(`/v1/sandboxes/${made.id}`, { as, method: "DELETE" });
    await ask("/v1/sandboxes", { as });
    expect(await entries()).toMatchObject([
      {
        outcome: "made",
        action: "sandboxes.remove",
        caller: expect.stringMatching(/^token test-/),
        address: "127.0.0.1",
        subject: { sandbox: made.id },
      },
      { outcome: "made", action: "sandboxes.create", owner: "local", subject: { name: "box" } },
    ]);
  });

  test("is put down when it fails or is not let in; a secret never is", async () => {
    const as = await token("read");
    await post("/v1/sandboxes", {}, { as });
    await ask("/v1/runs", { as: "tok_aaaaaaaaaaaa_wrongsecret" });
    await ask("/v1/runs/nobody/stop", { method: "POST" });
    const all = await entries();
    expect(all).toMatchObject([
      { outcome: "failed", code: "not_found", action: "runs.stop", caller: "user", address: null, subject: { run: "nobody" } },
      { outcome: "made", action: "runs.stop" },
      { outcome: "failed", code: "unauthenticated", action: "runs.list", caller: null },
      { outcome: "failed", code: "denied", action: "sandboxes.create", caller: expect.stringMatching(/^token test-/) },
    ]);
    expect(JSON.stringify(all)).not.toContain("wrongsecret");
    expect(JSON.stringify(all)).not.toContain(as);
    expect((await ask("/v1/audit", { as })).status).toBe(403);
  });

  test("is refused when it cannot be put down", async () => {
    const { made } = station().audit;
    station().audit.made = async () => {
      throw new CaissonError("no_space", "the disk is full");
    };
    try {
      expect((await post("/v1/sandboxes")).status).toBe(507);
      expect((await ask("/v1/sandboxes")).status).toBe(200);
    } finally {
      station().audit.made = made;
    }
    expect((await station().sandboxes.list()).sandboxes).toEqual([]);
    expect(defects).toEqual([]);
  });

  test("does not fill the log from an address that is not let in", async () => {
    const asked = 200;
    const began = performance.now();
    for (let n = 0; n < asked; n++) await fetch(`${server().status.url}/v1/runs`);
    const seconds = Math.ceil((performance.now() - began) / 1000);
    const { length } = await entries("?limit=1000");
    expect(length).toBeGreaterThanOrEqual(60);
    // One more with every second that went by.
    expect(length).toBeLessThanOrEqual(Math.min(asked, 60 + seconds));
  });
});
