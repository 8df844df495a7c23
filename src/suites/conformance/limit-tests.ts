import assert from "node:assert/strict";
import { CaissonError } from "../../contract/error/error.ts";
import type { LimitsRequest } from "../../contract/sandbox/sandbox-fields.ts";
import type { ConformanceTest, Feature } from "./context.ts";
import { describeEnd, eventually, rejectsWith, run, runOk, start, within } from "./expectations.ts";

const MIB = 1024 * 1024;
const examples = { cpus: 1, memoryBytes: 256 * MIB, pids: 100, diskBytes: 64 * MIB } satisfies Partial<Record<Feature, number>>;

/** Returns null if the request is unsupported, which is as good as enforcing it. */
async function unlessUnsupported<T>(request: Promise<T>): Promise<T | null> {
  return request.catch((error: unknown) => {
    if (error instanceof CaissonError && error.code === "unsupported") return null;
    throw error;
  });
}

/** Limits: enforced, or unsupported. */
export const limitTests: ConformanceTest[] = [
  {
    name: "limit: exceeding memory kills the process, but not the sandbox",
    needs: "memoryBytes",
    async run(context) {
      const sandbox = await context.create({ limits: { memoryBytes: 64 * MIB } });
      assert.equal(sandbox.info.limits.memoryBytes, 64 * MIB);
      const { ended } = await run({ ...context, patienceMs: context.patienceMs * 2 }, sandbox, "hog");
      assert.equal(describeEnd(ended), "killed memory");
      assert.ok(ended.memoryKills >= 1);
      assert.equal(await runOk(context, sandbox, "print", "alive", ""), "alive");
      const stats = await sandbox.stats();
      assert.ok(stats.memoryKills === null || stats.memoryKills >= 1);
      return undefined;
    },
  },
  {
    name: "limit: processes beyond the limit do not start, and the next command works",
    needs: "pids",
    async run(context) {
      const sandbox = await context.create({ limits: { pids: 24 } });
      assert.equal(sandbox.info.limits.pids, 24);
      const crowd = await start(sandbox, "crowd", { args: ["60"] });
      let printed = "";
      for await (const chunk of crowd.output) if (chunk.stream === "stdout") printed += Buffer.from(chunk.data).toString();
      const started = Number(printed.trim().split("\n").at(-1));
      assert.ok(started >= 4 && started < 24, `${started} processes were started`);
      await within(context, "killing the crowd", crowd.kill());
      assert.equal(await runOk(context, sandbox, "print", "alive", ""), "alive");
      return undefined;
    },
  },
  {
    name: "limit: writing beyond the disk limit is no_space until space is freed",
    needs: "diskBytes",
    async run(context) {
      const sandbox = await context.create({ limits: { diskBytes: 24 * MIB } });
      assert.equal(sandbox.info.limits.diskBytes, 24 * MIB);
      const { ended } = await run(context, sandbox, "write-file", { args: ["/workspace/by-command", String(16 * MIB)] });
      assert.equal(describeEnd(ended), "exited 0");
      await rejectsWith(context, "no_space", "writing beyond the limit", () => sandbox.writeFile("/workspace/big", Buffer.alloc(16 * MIB)));
      assert.deepEqual(
        (await sandbox.list("/workspace")).entries.map((each) => each.name),
        ["by-command"],
      );
      await sandbox.remove("/workspace/by-command");
      await sandbox.writeFile("/workspace/fits", Buffer.alloc(8 * MIB));
      return undefined;
    },
  },
  {
    name: "limit: empty files count toward the disk",
    needs: "diskBytes",
    async run(context) {
      const sandbox = await context.create({ limits: { diskBytes: 8 * MIB } });
      const patient = { ...context, patienceMs: context.patienceMs * 2 };
      const { ended } = await run(patient, sandbox, "empty-files", { args: ["20000"] });
      assert.notEqual(describeEnd(ended), "exited 0", "20,000 files were created on a disk of 8 MiB");
      await sandbox.remove("/workspace/empty-0");
      await sandbox.writeFile("/workspace/fits", Buffer.alloc(1));
      return undefined;
    },
  },
  {
    name: "limit: disk applies to a workspace with a layer, or is unsupported",
    needs: "diskBytes",
    async run(context) {
      if (!context.capabilities.workspaceLayer) return { skipped: "the runtime stores a workspace's changes nowhere on the host" };
      const layer = await context.hostFolder();
      const workspace = { kind: "folder" as const, path: await context.hostFolder(), layer };
      try {
        const sandbox = await unlessUnsupported(context.create({ workspace, limits: { diskBytes: 24 * MIB } }));
        if (sandbox === null) return undefined;
        const { ended } = await run(context, sandbox, "write-file", { args: ["/workspace/big", String(48 * MIB)] });
        assert.notEqual(describeEnd(ended), "exited 0", "48 MiB were written under a limit of 24 MiB");
        await sandbox.destroy();
      } finally {
        await context.runtime.removeLayer?.(layer);
      }
      return undefined;
    },
  },
  {
    name: "limit: disk is unsupported with a read-write folder",
    needs: "rw",
    async run(context) {
      const workspace = { kind: "folder" as const, path: await context.hostFolder(), access: "rw" as const };
      await rejectsWith(context, "unsupported", "a disk limit with :rw", () =>
        context.create({ workspace, limits: { diskBytes: 24 * MIB } }),
      );
      return undefined;
    },
  },
  {
    name: "limit: processes of root inside count, or the limit is unsupported",
    needs: "pids",
    async run(context) {
      if (!context.capabilities.rootUser) return { skipped: "there is no root inside" };
      const sandbox = await unlessUnsupported(context.create({ limits: { pids: 40 }, allowRoot: true }));
      if (sandbox === null) return undefined;
      const crowd = await start(sandbox, "crowd", { args: ["90"], user: "root" });
      let printed = "";
      for await (const chunk of crowd.output) if (chunk.stream === "stdout") printed += Buffer.from(chunk.data).toString();
      const started = Number(printed.trim().split("\n").at(-1));
      assert.ok(started >= 4 && started < 40, `${started} processes were started`);
      await within(context, "killing the crowd", crowd.kill());
      return undefined;
    },
  },
  {
    name: "limit: processor time stays within the requested share",
    needs: "cpus",
    async run(context) {
      const sandbox = await context.create({ limits: { cpus: 0.2 } });
      assert.equal(sandbox.info.limits.cpus, 0.2);
      const running = await start(sandbox, "burn");
      const first = await sandbox.stats();
      if (first.cpuMs === null) return { skipped: "the runtime does not measure processor time" };
      const from = performance.now();
      await eventually(context, "a second passes", async () => performance.now() - from > 1000);
      const used = ((await sandbox.stats()).cpuMs ?? 0) - first.cpuMs;
      const share = used / (performance.now() - from);
      await running.kill();
      assert.ok(share < 0.4, `used ${share.toFixed(2)} processors of 0.2`);
      assert.ok(share > 0.02, `used ${share.toFixed(2)} processors of 0.2: nothing ran`);
      return undefined;
    },
  },
  ...(["cpus", "memoryBytes", "pids", "diskBytes"] as const).map(
    (name): ConformanceTest => ({
      name: `limit: ${name} is unsupported if the runtime cannot enforce it`,
      needs: `!${name}`,
      async run(context) {
        const limits: LimitsRequest = { [name]: examples[name] };
        await rejectsWith(context, "unsupported", `a sandbox with ${name}`, () => context.create({ limits }));
        return undefined;
      },
    }),
  ),
  {
    name: "limit: defaults are enforced, or a warning says that they are not",
    async run(context) {
      const { info } = await context.sandbox();
      for (const name of ["cpus", "memoryBytes", "pids"] as const) {
        if (context.capabilities.limits[name]) assert.ok((info.limits[name] ?? 0) > 0, `${name} has a default`);
        else {
          assert.equal(info.limits[name], null, name);
          assert.notEqual(info.warnings.length, 0, `no warning, although ${name} is not enforced`);
        }
      }
      assert.ok(info.limits.wallClockMs > 0);
      return undefined;
    },
  },
  {
    name: "limit: /tmp has the requested size",
    needs: "isolation",
    async run(context) {
      const sandbox = await context.create({ tmpBytes: 4 * MIB });
      await sandbox.writeFile("/tmp/fits", Buffer.alloc(MIB));
      await rejectsWith(context, "no_space", "filling /tmp", () => sandbox.writeFile("/tmp/big", Buffer.alloc(8 * MIB)));
      return undefined;
    },
  },
];
