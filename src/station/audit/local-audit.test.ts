import { describe, expect, test } from "vitest";
import type { AuditedCall } from "../../contract/audit/audit-event.ts";
import type { ListAudit } from "../../contract/audit/audit-verbs.ts";
import { createMemoryLog } from "../../log/memory/log.ts";
import { createLocalAudit } from "./local-audit.ts";

const call = (overrides: Partial<AuditedCall> = {}): AuditedCall => ({
  action: "runs.start",
  caller: "token ci",
  token: "tok_aaaaaaaaaaaa",
  owner: "ann",
  address: "10.0.0.1",
  subject: {},
  ...overrides,
});

function setUp() {
  let time = Date.parse("2030-01-15T00:00:00Z");
  const log = createMemoryLog({ nowMs: () => time });
  const audit = createLocalAudit({ log, now: () => time });
  const actions = async (query: ListAudit = {}) => (await audit.list(query)).entries.map(({ action }) => action);
  return {
    audit,
    log,
    actions,
    pass: (ms: number) => {
      time += ms;
    },
  };
}

describe("the audit log", () => {
  test("lists calls newest first, in pages and across months", async () => {
    const { audit, actions, pass } = setUp();
    for (let n = 0; n < 5; n++) {
      await audit.recordCall(call({ action: `a.${n}` }));
      pass(10 * 86_400_000);
    }
    expect(await actions()).toEqual(["a.4", "a.3", "a.2", "a.1", "a.0"]);
    const pages: (string | null)[] = [];
    for (let cursor: string | null = ""; cursor !== null; ) {
      const page = await audit.list({ limit: 2, ...(cursor !== "" && { cursor }) });
      pages.push(...page.entries.map(({ action }) => action));
      cursor = page.next;
    }
    expect(pages).toEqual(["a.4", "a.3", "a.2", "a.1", "a.0"]);
    expect(await actions({ after: "2030-01-20T00:00:00Z", before: "2030-02-05T00:00:00Z" })).toEqual(["a.2", "a.1"]);
  });

  test("filters by outcome, action, token, owner and subject", async () => {
    const { audit, actions } = setUp();
    await audit.recordCall(call({ subject: { run: "run_a" } }));
    await audit.recordFailure(call({ action: "runs.stop", owner: "ben", token: "tok_bbbbbbbbbbbb", caller: "token other" }), "not_found");
    await audit.recordFailure(call({ action: "tokens.list", caller: null, token: null, owner: null }), "unauthenticated");
    expect(await actions({ outcome: "failed" })).toEqual(["tokens.list", "runs.stop"]);
    expect(await actions({ action: "runs" })).toEqual(["runs.stop", "runs.start"]);
    expect(await actions({ action: "runs.start" })).toEqual(["runs.start"]);
    expect(await actions({ token: "other" })).toEqual(["runs.stop"]);
    expect(await actions({ token: "tok_aaaaaaaaaaaa" })).toEqual(["runs.start"]);
    expect(await actions({ owner: "ben" })).toEqual(["runs.stop"]);
    expect(await actions({ about: "run_a" })).toEqual(["runs.start"]);
    expect((await audit.list({ owner: "ben" })).entries).toMatchObject([{ outcome: "failed", code: "not_found", id: "2030-01.2" }]);
    await expect(audit.list({ cursor: "nonsense" })).rejects.toMatchObject({ code: "invalid" });
  });

  test("removes months older than a year", async () => {
    const { audit, log, pass } = setUp();
    for (let n = 0; n < 16; n++) {
      await audit.recordCall(call());
      pass(31 * 86_400_000);
    }
    await audit.forgetOld();
    expect(await log.streams({ prefix: "audit/" })).toHaveLength(13);
    expect((await audit.list()).entries).toHaveLength(13);
  });
});
