import { chmod, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { createDockerRuntime } from "../../src/runtimes/docker/runtime.ts";
import { createHostRuntime } from "../../src/runtimes/host/runtime.ts";
import { hostClaims } from "../../src/station/machine/host-claims.ts";
import type { Verdict } from "../../src/suites/attack/claim.ts";
import { runAttacks } from "../../src/suites/attack/run-attacks.ts";
import { describeAttack } from "../support/attack-results.ts";
import { useDockerEngine } from "../support/docker-engine.ts";
import { networkedForTest } from "../support/network-host.ts";
import { ordinaryUser } from "../support/ordinary-user.ts";
import { runSuite } from "../support/run-suite.ts";

const builds = join(import.meta.dirname, "../../guest/build");
const [guestPath, probePath] = [join(builds, "caisson-guest"), join(builds, "caisson-probe")];
const more = hostClaims({ guestPath, path: process.env.PATH ?? "" });

async function withStateDir<T>(work: (stateDir: string) => Promise<T>): Promise<T> {
  const base = await mkdtemp(join(tmpdir(), "caisson-test-"));
  // One claim shares this parent of the state folder with a sandbox, and sandboxes may run as any user.
  await chmod(base, 0o755);
  const stateDir = join(base, "state");
  await mkdir(stateDir, { mode: 0o700 });
  try {
    return await work(stateDir);
  } finally {
    await rm(base, { recursive: true, force: true });
  }
}

async function attackOci(user?: { uid: number; gid: number; home: string; name: string }): Promise<Verdict[] | { absent: string }> {
  const [probe, ...verdicts] = await runSuite({ suite: "attack", ...(user && { user }) });
  if (probe?.usable !== true) return { absent: probe?.findings?.map(({ text }) => text).join(" ") ?? "it did not start" };
  return verdicts as Verdict[];
}

describeAttack("oci", { more, attack: () => attackOci() });

describeAttack("oci-rootless", {
  more,
  attack: async () => {
    const user = ordinaryUser();
    try {
      return await attackOci(user);
    } finally {
      user.remove();
    }
  },
});

describeAttack("docker", {
  more,
  attack: async () => {
    const engine = await useDockerEngine();
    return withStateDir(async (stateDir) => {
      await using runtime = createDockerRuntime({ stateDir, guestPath }, { socketPath: engine.socketPath });
      const config = { template: { kind: "image" as const, reference: await engine.image("debian") } };
      return (await runAttacks(networkedForTest(runtime, { stateDir }), { version: "test", stateDir, probePath, spec: config, more }))
        .verdicts;
    });
  },
});

describe("attacks on the host runtime, which has no walls", () => {
  // These claims fail there for every user; more fail for root.
  const broken = ["I01", "I13", "I20", "I24", "I25", "I26", "H01", "H03", "H18", "N01", "N03", "N04", "N13", "R23"];

  it("fail where they must, which proves that the suite can fail", { timeout: 120_000 }, async () => {
    await withStateDir(async (stateDir) => {
      await using runtime = createHostRuntime({ stateDir, guestPath });
      const report = await runAttacks(runtime, { version: "test", stateDir, probePath, only: [...broken, "R01", "R02", "I06"] });
      expect(report.holds).toBe(false);
      const of = (kind: Verdict["verdict"]) => report.verdicts.filter((each) => each.verdict === kind).map((each) => each.id);
      expect(of("failed").sort()).toEqual([...broken].sort());
      expect(of("unverifiable").sort()).toEqual(["I06", "R01", "R02"]);
    });
  });
});
