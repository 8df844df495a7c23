import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { summaryText, verdictText } from "../../cli/machine/attack-view.ts";
import type { AttackReport } from "../../contract/machine/attack-report.ts";
import type { AttackContext } from "./attack-context.ts";
import { defineClaim, notTriedAsDeclared, tryClaim, unverifiable } from "./claim.ts";
import { signReport, verifyReport } from "./report.ts";

const report: AttackReport = {
  kind: "caisson.attack-report",
  version: 1,
  runtime: "oci",
  isolation: 1,
  versions: { caisson: "0.1.0", node: "v24", kernel: "6.18", architecture: "arm64" },
  findings: [],
  startedAt: "2026-01-01T00:00:00.000Z",
  endedAt: "2026-01-01T00:00:10.000Z",
  holds: false,
  verdicts: [
    {
      id: "I01",
      title: "Only harmless calls pass",
      group: "isolation",
      verdict: "failed",
      tried: "Called.",
      seen: "bpf passed",
      durationMs: 3,
    },
    { id: "I02", title: "io_uring is refused", group: "isolation", verdict: "observed", tried: "Called.", seen: "EPERM", durationMs: 3 },
  ],
};

describe("signed reports", () => {
  let stateDir: string;
  beforeEach(async () => {
    stateDir = await mkdtemp(join(tmpdir(), "caisson-test-"));
  });
  afterEach(() => rm(stateDir, { recursive: true, force: true }));

  it("verify even after a round trip that changed the key order", async () => {
    const signed = await signReport(report, { stateDir });
    expect(verifyReport(signed)).toBe(true);
    const shuffled = { signature: signed.signature, report: Object.fromEntries(Object.entries(signed.report).reverse()) };
    expect(verifyReport(JSON.parse(JSON.stringify(shuffled)))).toBe(true);
  });

  it("do not verify after any change", async () => {
    const signed = await signReport(report, { stateDir });
    expect(verifyReport({ ...signed, report: { ...report, holds: true } })).toBe(false);
    const verdicts = report.verdicts.map((each) => ({ ...each, verdict: "observed" as const }));
    expect(verifyReport({ ...signed, report: { ...report, verdicts } })).toBe(false);
    expect(verifyReport({ ...signed, signature: { ...signed.signature, value: Buffer.alloc(64).toString("base64") } })).toBe(false);
    expect(verifyReport({ ...signed, signature: { ...signed.signature, publicKey: "AAAA" } })).toBe(false);
  });

  it("are tied to their key, which is created once and kept private", async () => {
    const [one, again] = [await signReport(report, { stateDir }), await signReport(report, { stateDir })];
    expect(again.signature.publicKey).toBe(one.signature.publicKey);
    expect(verifyReport(one, { publicKey: one.signature.publicKey })).toBe(true);
    const otherDir = await mkdtemp(join(tmpdir(), "caisson-test-"));
    try {
      const other = await signReport(report, { stateDir: otherDir });
      expect(verifyReport(other, { publicKey: one.signature.publicKey })).toBe(false);
    } finally {
      await rm(otherDir, { recursive: true, force: true });
    }
    expect((await stat(join(stateDir, "keys/attack-report.pem"))).mode & 0o777).toBe(0o600);
  });

  it("reject anything that is not a report", () => {
    expect(() => verifyReport({ report: {} })).toThrow(expect.objectContaining({ code: "invalid" }));
  });
});

describe("tryClaim", () => {
  const context = { within: (_what: string, promise: Promise<unknown>) => promise } as unknown as AttackContext;
  const claim = (observe: () => Promise<unknown>) =>
    defineClaim<unknown>({
      id: "X01",
      title: "x",
      group: "isolation",
      tried: "t",
      observe: observe as never,
      judge: (seen) => (seen === "bad" ? ["it broke"] : []),
    });

  it("returns observed, failed, declared and unverifiable", async () => {
    expect(
      await tryClaim(
        claim(async () => "good"),
        context,
      ),
    ).toMatchObject({ verdict: "observed", seen: '"good"' });
    expect(
      await tryClaim(
        claim(async () => "bad"),
        context,
      ),
    ).toMatchObject({ verdict: "failed", seen: "it broke" });
    expect(
      await tryClaim(
        claim(async () => notTriedAsDeclared("says so")),
        context,
      ),
    ).toMatchObject({ verdict: "declared", seen: "says so" });
    expect(
      await tryClaim(
        claim(async () => unverifiable("no means")),
        context,
      ),
    ).toMatchObject({ verdict: "unverifiable", seen: "no means" });
  });

  it("counts an attempt that throws as failed, with a message of limited length", async () => {
    const broken = claim(async () => {
      throw new Error("x".repeat(10_000));
    });
    const verdict = await tryClaim(broken, context);
    expect(verdict.verdict).toBe("failed");
    expect(verdict.seen.length).toBeLessThanOrEqual(2_000);
  });
});

describe("the text of a report", () => {
  it("shows what failed and why, and a summary", () => {
    expect(report.verdicts.map(verdictText).join("\n")).toBe(
      "✗ I01  Only harmless calls pass\n       failed: bpf passed\n✓ I02  io_uring is refused",
    );
    expect(summaryText(report)).toContain("1 observed, 0 declared, 0 unverifiable, 1 failed (10.0 s)");
  });
});
