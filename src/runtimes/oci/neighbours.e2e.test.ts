import { execFileSync } from "node:child_process";
import { lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { SandboxConfigInput } from "../../contract/sandbox/sandbox.ts";
import { connectGuest } from "../../sandbox/guest/connection.ts";
import type { SandboxRecord } from "../../sandbox/store.ts";
import type { OciDetails } from "./details.ts";
import { createOciRuntime, type OciRuntime } from "./runtime.ts";
import { asRoot, configOf, guestPath, settings, sh } from "./testing-oci.ts";

let base: string;
let stateDir: string;
let runtime: OciRuntime;
const create = (input: SandboxConfigInput = {}) => runtime.create(configOf(input));

/** Covers the resources of a sandbox that another one could reach or exhaust. */
describe.skipIf(!asRoot)("neighboring sandboxes", () => {
  beforeEach(() => {
    base = mkdtempSync(join(tmpdir(), "caisson-test-"));
    stateDir = join(base, ".local", "state", "caisson");
    mkdirSync(stateDir, { recursive: true, mode: 0o700 });
    runtime = createOciRuntime({ stateDir, guestPath }, settings);
  });
  afterEach(async () => {
    await runtime[Symbol.asyncDispose]();
    await runtime.sweep();
    for (const { id } of await runtime.list()) await (await runtime.open(id)).destroy();
    rmSync(base, { recursive: true, force: true });
  });

  it("require the token even from a process that finds a guest's socket", async () => {
    await using sandbox = await create({ keep: true });
    const folder = join(stateDir, "sandboxes", sandbox.id);
    const socketPath = join(folder, "guest.sock");
    for (const token of [undefined, Buffer.alloc(64, "0")]) {
      await expect(connectGuest({ socketPath, token, timeoutMs: 5_000 })).rejects.toMatchObject({ code: "denied" });
    }
    expect(lstatSync(join(folder, "token")).mode & 0o777).toBe(0o600);
    const again = await runtime.open(sandbox.id);
    expect(await again.processes()).toEqual(expect.any(Array));
    await again.release();
  });

  const firstIdOf = (id: string) => {
    const { details } = JSON.parse(readFileSync(join(stateDir, "sandboxes", id, "sandbox.json"), "utf8")) as SandboxRecord;
    return (details as OciDetails).firstId ?? Number.NaN;
  };

  it("have separate ids on the host, and use no keyrings", async () => {
    const sandboxes = await Promise.all([create(), create(), create()]);
    const starts = sandboxes.map(({ id }) => firstIdOf(id));
    expect(new Set(starts).size).toBe(3);
    // The kernel allows each id only 200 keys.
    const keys = readFileSync("/proc/key-users", "latin1");
    for (const [index, sandbox] of sandboxes.entries()) {
      const { text } = await sh(sandbox, "cat /proc/self/uid_map");
      expect(text.split(/\s+/)).toEqual(["0", String(starts[index]), "65536"]);
      expect(keys).not.toMatch(new RegExp(`^\\s*${starts[index]}:`, "m"));
    }
    for (const sandbox of sandboxes) await sandbox.destroy();
    expect(readdirSync(join(stateDir, "oci", "ranges"))).toEqual([]);
  });

  it("keep file owners in snapshots, forks, layers and shared folders", async () => {
    const owners = "stat -c '%u %n' /etc/mine /workspace/theirs /usr/bin/tool";
    const folder = join(base, "project");
    mkdirSync(folder);
    await using first = await create({ workspace: { kind: "folder", path: folder }, allowRoot: true });
    await sh(first, "touch /etc/mine /usr/bin/tool; chown 7 /etc/mine", "root");
    await sh(first, "touch /workspace/theirs");
    const expected = "7 /etc/mine\n1000 /workspace/theirs\n0 /usr/bin/tool";
    await using fork = await first.fork();
    expect(firstIdOf(fork.id)).not.toBe(firstIdOf(first.id));
    expect((await sh(fork, owners)).text).toBe(expected);
    await using again = await fork.fork();
    expect((await sh(again, owners)).text).toBe(expected);
    expect((await sh(again, "echo more >> /workspace/theirs && cat /workspace/theirs")).text).toBe("more");

    const layer = join(base, "layer");
    mkdirSync(layer, { mode: 0o755 });
    for (const [script, text] of [
      ["mkdir -p kept && touch kept/file && stat -c %u kept/file", "1000"],
      ["stat -c %u kept/file && touch kept/other && rm kept/file && ls kept", "1000\nother"],
    ] as const) {
      await using sandbox = await create({ workspace: { kind: "folder", path: folder, access: "overlay", layer } });
      expect((await sh(sandbox, script)).text).toBe(text);
    }
    for (const script of ["touch by-root; chmod 600 by-root; stat -c %u by-root", "echo x >> by-root && stat -c %u by-root"]) {
      await using sandbox = await create({ workspace: { kind: "folder", path: folder, access: "rw" }, allowRoot: true });
      expect((await sh(sandbox, script, "root")).text).toBe("0");
    }
    await runtime.removeLayer?.(layer);
    expect(readdirSync(layer)).toEqual([]);
    expect(readdirSync(join(stateDir, "oci", "ranges"))).toHaveLength(3);
  });

  describe("a folder that contains the state folder", () => {
    let home: string;
    beforeEach(() => {
      home = base;
      writeFileSync(join(home, "mine"), "mine");
      writeFileSync(join(stateDir, "log.db"), "precious");
    });
    /**
     * `search` finds anything of the state folder in the workspace; `tamper` tries to write to it and to move it away.
     */
    const search = "find /workspace -name log.db -o -name guest.sock -o -name token -o -name sandbox.json; cat mine";
    const tamper = "touch .local/state/caisson/x && echo wrote; mv .local moved && echo moved; rm -rf .local; find . -name log.db";

    it("is shared without the state folder, as root and as the user, with any access", async () => {
      for (const access of ["overlay", "ro", "rw"] as const) {
        await using sandbox = await create({ workspace: { kind: "folder", path: home, access }, allowRoot: true });
        expect({ access, found: (await sh(sandbox, search)).text }).toEqual({ access, found: "mine" });
        await sh(sandbox, tamper, "root");
        const { text } = await sh(sandbox, tamper);
        expect({ access, text }).toEqual({ access, text: "" });
        expect((await sh(sandbox, search, "root")).text).toBe("mine");
      }
      expect(readdirSync(stateDir).sort()).toEqual(["log.db", "oci", "sandboxes", "templates"]);
      expect(readdirSync(home).sort()).toEqual([".local", "mine"]);
    });

    it("hides the state folder in pooled sandboxes, and under moved folders", async () => {
      await runtime[Symbol.asyncDispose]();
      runtime = createOciRuntime({ stateDir, guestPath }, { ...settings, pool: { sandboxes: 1 } });
      await runtime.warm();
      for (const access of ["overlay", "ro"] as const) {
        await using sandbox = await create({ workspace: { kind: "folder", path: home, access } });
        expect((await sh(sandbox, search)).text).toBe("mine");
        await runtime.warm();
      }
      const layer = mkdtempSync(join(tmpdir(), "caisson-test-"));
      try {
        for (const script of ["mv .local moved", "mv moved/state elsewhere"]) {
          await using sandbox = await create({ workspace: { kind: "folder", path: home, access: "overlay", layer } });
          expect((await sh(sandbox, script)).ended).toMatchObject({ exitCode: 0 });
          expect((await sh(sandbox, search)).text).toBe("mine");
        }
      } finally {
        await runtime.removeLayer?.(layer);
        rmSync(layer, { recursive: true, force: true });
      }
    });

    it("is shared without the state folder even if a mount shows it again", async () => {
      mkdirSync(join(home, "again"));
      mkdirSync(join(home, "part"));
      const program = `
        import { createOciRuntime } from ${JSON.stringify(join(import.meta.dirname, "runtime.ts"))};
        import { SandboxConfig } from ${JSON.stringify(join(import.meta.dirname, "../../contract/sandbox/sandbox.ts"))};
        import { runCommand } from ${JSON.stringify(join(import.meta.dirname, "../../sandbox/run-command.ts"))};
        const runtime = createOciRuntime(${JSON.stringify({ stateDir, guestPath })}, ${JSON.stringify(settings)});
        for (const access of ["ro", "rw"]) {
          await using sandbox = await runtime.create(SandboxConfig.parse({ workspace: { kind: "folder", path: ${JSON.stringify(home)}, access } }));
          process.stdout.write((await runCommand(sandbox, { argv: ["sh", "-c", ${JSON.stringify(`${search}; ls part again`)}] })).stdout);
        }
        await runtime.create(SandboxConfig.parse({ workspace: { kind: "folder", path: ${JSON.stringify(join(home, "part"))} } })).catch((error) => console.log(error.code));`;
      const mounts = `mount --bind ${home}/.local ${home}/again && mount --bind ${stateDir} ${home}/part && exec "$0" --input-type=module -e "$1"`;
      const output = execFileSync("unshare", ["--mount", "sh", "-c", mounts, process.execPath, program], { encoding: "utf8" });
      expect(output).toBe(`${"mineagain:\nstate\n\npart:\n".repeat(2)}invalid\n`);
    });
  });
});
