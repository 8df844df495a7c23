import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { run, sh, useDockerHarness } from "../../../test/support/docker-harness.ts";

const MIB = 1024 * 1024;
const docker = useDockerHarness();

describe("a sandbox in Docker", () => {
  test("runs commands of any image as a separate user, without privileges or network", async () => {
    await using sandbox = await docker.runtime.create(docker.configOf());
    const script =
      "id -un; pwd; echo $HOME; grep -E 'CapEff|CapBnd|NoNewPrivs|Seccomp:' /proc/self/status; ls /sys/class/net; cat /etc/shadow";
    const { stdout, stderr } = await sh(sandbox, script);
    expect(stdout.replaceAll("\t", " ").trim().split("\n")).toEqual([
      ...["user", "/workspace", "/home/user"],
      ...["CapEff: 0000000000000000", "CapBnd: 0000000000000000", "NoNewPrivs: 1", "Seccomp: 2", "lo"],
    ]);
    expect(stderr).toContain("Permission denied");
    expect(sandbox.info.warnings).toEqual([]);
    expect(docker.events.map(({ type }) => type)).toContain("sandbox.created");
  });

  test("keeps the guest and its socket out of reach of sandboxed programs", async () => {
    await using sandbox = await docker.runtime.create(docker.configOf());
    const script = "ls /.caisson/private/socket; kill -9 1; kill -9 -1; cat /proc/1/mem; echo x > /.caisson/guest; rm -rf /.caisson; true";
    await sh(sandbox, script);
    expect((await sh(sandbox, "echo alive; ls /.caisson/private/socket 2>&1")).stdout).toMatch(/^alive\n.*Permission denied/);
    expect(existsSync(join(docker.stateDir, "sandboxes", sandbox.id, "socket", "token"))).toBe(false);
  });

  test("hides the host's processes, mounts and sockets", async () => {
    await using sandbox = await docker.runtime.create(docker.configOf());
    expect((await sh(sandbox, "find / -xdev -type s 2>/dev/null")).stdout).toBe("");
    expect((await sh(sandbox, "cat /proc/[0-9]*/comm")).stdout).not.toMatch(/dockerd|node/);
  });

  test("takes the image's variables, but not its user, entry point or health check", async () => {
    const name = "caisson-test:configured";
    const cid = docker.docker("create", "--network", "none", docker.image, "true").trim();
    docker.docker(
      "commit",
      "-c",
      "ENV FROM_IMAGE=yes",
      "-c",
      "USER nobody",
      "-c",
      'ENTRYPOINT ["false"]',
      "-c",
      "HEALTHCHECK --interval=1s CMD false",
      "-c",
      "ENV HOME=/nowhere",
      cid,
      name,
    );
    docker.docker("rm", cid);
    try {
      await using sandbox = await docker.runtime.create(
        docker.configOf({ template: { kind: "image", reference: name }, env: { MINE: "too" } }),
      );
      expect((await sh(sandbox, "echo $FROM_IMAGE $MINE $HOME; id -un")).stdout).toBe("yes too /home/user\nuser\n");
      expect(docker.docker("inspect", "-f", "{{.Config.Healthcheck.Test}}", `caisson-${sandbox.id}`).trim()).toBe("[NONE]");
    } finally {
      docker.docker("rmi", name);
    }
  });

  test("refuses root unless the config allows it, and then lets it change system files", async () => {
    await using plain = await docker.runtime.create(docker.configOf());
    await expect(plain.spawn({ argv: ["id"], user: "root" })).rejects.toMatchObject({ code: "denied" });
    await using sandbox = await docker.runtime.create(docker.configOf({ allowRoot: true }));
    const { stdout } = await sh(
      sandbox,
      "id -u; touch /etc/new && chown nobody /etc/new && echo made; mount -t tmpfs x /mnt 2>&1 | head -1",
      { user: "root" },
    );
    expect(stdout).toMatch(/^0\nmade\nmount: .*/);
    expect(stdout).toMatch(/Operation not permitted|permission denied/);
    expect(sandbox.info.warnings.join()).toContain("user namespace");
  });
});

describe("limits", () => {
  test("kills a process that exceeds the memory limit, and the sandbox survives", async () => {
    await using sandbox = await docker.runtime.create(docker.configOf({ limits: { memoryBytes: 64 * MIB } }));
    const { ended } = await run(sandbox, ["tail", "/dev/zero"]);
    expect(ended).toMatchObject({ kind: "killed", why: "memory" });
    expect((await sh(sandbox, "echo alive")).stdout).toBe("alive\n");
  });

  test("contains a fork bomb, and the next command works", async () => {
    await using sandbox = await docker.runtime.create(docker.configOf({ limits: { pids: 50 } }));
    const bomb = await run(sandbox, ["sh", "-c", "b() { b | b & }; b; sleep 60"], { timeoutMs: 2000 });
    expect(["timedOut", "exited"]).toContain(bomb.ended.kind);
    expect((await sh(sandbox, "echo alive")).stdout).toBe("alive\n");
    await sandbox.writeFile("/workspace/file", Buffer.from("x"));
  });

  test("leaves room for the guest when programs reach the process limit", async () => {
    await using sandbox = await docker.runtime.create(docker.configOf({ limits: { pids: 30 } }));
    const full = await sandbox.spawn({ argv: ["sh", "-c", "while sleep 60 & do :; done; wait"] });
    // The shell's last output says that it cannot fork.
    for await (const { stream } of full.output) if (stream === "stderr") break;
    expect((await sandbox.stats()).processes).toBeGreaterThanOrEqual(25);
    for (const user of ["4321", "4322", "4323"]) expect((await sandbox.stat("/workspace", { user })).kind).toBe("directory");
    await full.kill();
    expect((await sh(sandbox, "echo alive")).stdout).toBe("alive\n");
  });

  test("counts the processes of two sandboxes separately", async () => {
    await using one = await docker.runtime.create(docker.configOf({ limits: { pids: 20 } }));
    await using two = await docker.runtime.create(docker.configOf({ limits: { pids: 20 } }));
    const full = await one.spawn({ argv: ["sh", "-c", "for i in $(seq 40); do sleep 60 & done; wait"] });
    full.discardOutput();
    expect((await sh(two, "for i in 1 2 3 4 5; do sleep 0 & done; wait; echo alive")).stdout).toBe("alive\n");
    await full.kill();
  });

  test("refuses limits that the engine cannot enforce, and creates nothing", async () => {
    await expect(docker.runtime.create(docker.configOf({ limits: { diskBytes: 64 * MIB } }))).rejects.toMatchObject({
      code: "unsupported",
    });
    await expect(docker.runtime.create(docker.configOf({ limits: { memoryBytes: 4 * MIB } }))).rejects.toMatchObject({
      code: "unsupported",
    });
    expect(await docker.runtime.list()).toEqual([]);
  });

  test("reports the engine's stats", async () => {
    await using sandbox = await docker.runtime.create(docker.configOf());
    await sh(sandbox, "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; head -c 1000000 /dev/zero > /workspace/file");
    const stats = await sandbox.stats();
    expect(stats.source).toBe("host");
    expect(stats.cpuMs).toBeGreaterThan(20);
    expect(stats.memoryBytes).toBeGreaterThan(100_000);
    expect(stats.diskBytes).toBeGreaterThanOrEqual(1_000_000);
    expect(stats.processes).toBeGreaterThanOrEqual(1);
  });
});
