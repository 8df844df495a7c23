import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { SandboxConfigInput } from "../../contract/sandbox/sandbox.ts";
import type { OwnedSandbox } from "../../sandbox/sandbox.ts";
import { detailsOf } from "./details.ts";
import { createOciContext } from "./oci-context.ts";
import { createOciRuntime, type OciRuntime } from "./runtime.ts";
import { asRoot, configOf, guestPath, nothing, recordIn, remainsOf, settings, sh } from "./testing-oci.ts";

let base: string;
let stateDir: string;
let runtime: OciRuntime;
const create = (input?: SandboxConfigInput): Promise<OwnedSandbox> => runtime.create(configOf(input));
const remains = () => remainsOf(stateDir);
const guestPid = (id: string) => detailsOf(recordIn(stateDir, id)).guest?.pid ?? -1;

/** Starts another Node process that creates a sandbox, prints its id and stays. */
function creator(code: string): { child: ChildProcess; line: Promise<string> } {
  const program = `
    import { createOciRuntime } from ${JSON.stringify(join(import.meta.dirname, "runtime.ts"))};
    import { SandboxConfig } from ${JSON.stringify(join(import.meta.dirname, "../../contract/sandbox/sandbox.ts"))};
    const make = (options = {}) => createOciRuntime(${JSON.stringify({ stateDir, guestPath })}, { ...${JSON.stringify(settings)}, ...options });
    ${code}`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], { stdio: ["ignore", "pipe", "inherit"] });
  const line = new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stdout }).once("line", resolve);
    child.once("exit", () => reject(new Error("the creator ended")));
  });
  line.catch(() => {});
  return { child, line };
}
const exit = (child: ChildProcess) =>
  child.exitCode !== null || child.signalCode !== null ? Promise.resolve() : new Promise((resolve) => child.once("exit", resolve));

describe.skipIf(!asRoot)("oci as root", () => {
  beforeEach(() => {
    base = mkdtempSync(join(tmpdir(), "caisson-test-"));
    stateDir = join(base, "state");
    runtime = createOciRuntime({ stateDir, guestPath }, settings);
  });
  afterEach(async () => {
    await runtime[Symbol.asyncDispose]();
    await runtime.sweep();
    for (const { id } of await runtime.list()) await (await runtime.open(id)).destroy();
    rmSync(base, { recursive: true, force: true });
  });

  it("removes everything of twenty sandboxes, some with a separate disk", async () => {
    for (let round = 0; round < 4; round++) {
      const sandboxes = await Promise.all([1, 2, 3, 4, 5].map((n) => create(n === 5 ? { limits: { diskBytes: 8_388_608 } } : {})));
      await Promise.all(sandboxes.map((sandbox) => sh(sandbox, "sleep 100 & mkdir -p a/b/c && touch a/b/c/d /tmp/x")));
      expect(remains().processes.length).toBeGreaterThanOrEqual(sandboxes.length);
      await Promise.all(sandboxes.map((sandbox) => sandbox.destroy()));
    }
    expect(remains()).toEqual(nothing);
  });

  it("removes trees of any depth, and follows no link out of them", async () => {
    const outside = join(base, "outside");
    mkdirSync(outside);
    writeFileSync(join(outside, "file"), "precious");
    const sandbox = await create({ workspace: { kind: "folder", path: outside } });
    const { ended } = await sh(
      sandbox,
      `ln -s ${outside} link; ln -s / root; exec perl -e 'for (1..3000) { mkdir "d" and chdir "d" or exit 1 } open F, ">end"; chmod 0, "."'`,
    );
    expect(ended).toMatchObject({ kind: "exited", exitCode: 0 });
    await sandbox.destroy();
    expect(remains()).toEqual(nothing);
    expect(readFileSync(join(outside, "file"), "utf8")).toBe("precious");
  });

  describe("when the creator dies", () => {
    it("a kept sandbox survives with its files and processes, and can be opened", async () => {
      const { child, line } = creator(`
        const sandbox = await make().create(SandboxConfig.parse({ keep: true }));
        await sandbox.spawn({ ref: "sleeper", argv: ["sleep", "100"] });
        await sandbox.writeFile("/workspace/note", Buffer.from("kept"));
        console.log(sandbox.id);
        setInterval(() => {}, 1000);`);
      const id = await line;
      child.kill("SIGKILL");
      await exit(child);
      expect(await runtime.sweep()).toEqual([]);
      const sandbox = await runtime.open(id);
      expect((await sh(sandbox, "cat note")).text).toBe("kept");
      expect((await sandbox.processes()).some(({ ref, state }) => ref === "sleeper" && state === "running")).toBe(true);
      await sandbox.destroy();
      expect(remains()).toEqual(nothing);
    });

    it("the next sweep removes any other sandbox, including pooled ones", async () => {
      const { child, line } = creator(`
        const runtime = make({ pool: { sandboxes: 2, networkNamespaces: 1 } });
        await runtime.warm();
        const sandbox = await runtime.create(SandboxConfig.parse({}));
        await sandbox.spawn({ argv: ["sleep", "100"] });
        console.log(sandbox.id);
        setInterval(() => {}, 1000);`);
      const id = await line;
      child.kill("SIGKILL");
      await exit(child);
      const removed = await runtime.sweep();
      expect(removed).toContain(id);
      expect(removed.length).toBeGreaterThanOrEqual(2);
      expect(remains()).toEqual(nothing);
    });

    it("a sweep removes a half-created sandbox, at whatever stage", async () => {
      for (const afterMs of [0, 3, 6, 10, 15, 20, 30, 45, 60, 90]) {
        const { child, line } = creator(`
          const runtime = make();
          await runtime.capabilities();
          console.log("go");
          await runtime.create(SandboxConfig.parse({}));
          setInterval(() => {}, 1000);`);
        await line;
        await new Promise((resolve) => setTimeout(resolve, afterMs));
        child.kill("SIGKILL");
        await exit(child);
        await runtime.sweep();
        expect(remains(), `killed after ${afterMs} ms`).toEqual(nothing);
      }
    }, 120_000);
  });

  it("leaves nothing when a create is aborted, at whatever stage", async () => {
    await (await create()).destroy();
    for (const afterMs of [0, 2, 5, 8, 12, 18, 25]) {
      const abort = new AbortController();
      const creating = runtime.create(configOf(), { signal: abort.signal });
      setTimeout(() => abort.abort(), afterMs);
      await creating.then(
        (sandbox) => sandbox.destroy(),
        (error) => expect(error).toMatchObject({ code: "cancelled" }),
      );
      expect(remains(), `aborted after ${afterMs} ms`).toEqual(nothing);
    }
  });

  it("reports a killed guest's commands as lost, and can still remove the sandbox", async () => {
    const sandbox = await create({ keep: true });
    const command = await sandbox.spawn({ argv: ["sleep", "100"] });
    command.discardOutput();
    process.kill(guestPid(sandbox.id), "SIGKILL");
    expect((await command.ended).kind).toBe("lost");
    expect(await sandbox.closed).toEqual({ why: "lost" });
    await expect(runtime.open(sandbox.id)).rejects.toMatchObject({ code: "lost" });
    await sandbox.destroy();
    expect(remains()).toEqual(nothing);
  });

  it("removes groups without a record", async () => {
    const oci = createOciContext({ stateDir, guestPath }, settings);
    const [parent] = oci.cgroups().parents;
    mkdirSync(join(parent?.dir ?? "", oci.cgroupName, "sb_aaaaaaaaaaaa", "work"), { recursive: true });
    await runtime.sweep();
    expect(remains()).toEqual(nothing);
  });
});
