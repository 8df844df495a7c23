import { execFileSync } from "node:child_process";
import { chmodSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { guestPath, useDockerHarness } from "../../../test/support/docker-harness.ts";

const docker = useDockerHarness();
const USER = 12_345;

/** The common setup: an engine that runs as root, and an ordinary user in the group of its socket. */
test.skipIf(process.getuid?.() !== 0)("a user in the engine's group creates sandboxes whose files belong to that user", () => {
  const stateDir = docker.newFolder("state", USER);
  const workspace = docker.newFolder("workspace", USER);
  writeFileSync(join(workspace, "file"), "the user's\n");
  chmodSync(join(workspace, "file"), 0o644);
  const here = (path: string) => JSON.stringify(join(import.meta.dirname, path));
  const script = `
    import { readdirSync, statSync } from "node:fs";
    import { createDockerRuntime } from ${here("runtime.ts")};
    import { SandboxConfig } from ${here("../../contract/sandbox/sandbox.ts")};
    const runtime = createDockerRuntime(${JSON.stringify({ stateDir, guestPath })}, ${JSON.stringify({ socketPath: docker.engine.socketPath })});
    const template = { kind: "image", reference: ${JSON.stringify(docker.image)} };
    for (const access of ["overlay", "rw"]) {
      const config = SandboxConfig.parse({ template, workspace: { kind: "folder", path: ${JSON.stringify(workspace)}, access } });
      const sandbox = await runtime.create(config);
      const running = await sandbox.spawn({ argv: ["sh", "-c", "cat file; touch made; id -G; ls /.caisson/private/socket"] });
      for await (const { data } of running.output) process.stdout.write(data);
      await (await runtime.open(sandbox.id)).ping();
      await sandbox.destroy();
    }
    console.log("left: " + readdirSync(${JSON.stringify(join(stateDir, "sandboxes"))}).join());`;
  const group = statSync(docker.engine.socketPath).gid;
  const as = [`--reuid=${USER}`, `--regid=${USER}`, `--groups=${group}`, "--inh-caps=-all"];
  const output = execFileSync("setpriv", [...as, process.execPath, "--input-type=module", "-e", script], { encoding: "utf8" });
  const refused = expect.stringMatching(/^ls: .*Permission denied$/);
  expect(output.split("\n")).toEqual([
    ...["the user's", expect.stringMatching(/^[2-5]\d{4}$/), refused],
    // In a read-write folder, programs run with its owner's ids, but still without the group by which the guest
    // reaches its socket's folder.
    ...["the user's", String(USER), refused, "left: ", ""],
  ]);
  expect(statSync(join(workspace, "made")).uid).toBe(USER);
});
