import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, watch, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { resolveImage } from "./image.ts";
import { writeLayout } from "./image-fixture.ts";
import { createTemplateCache } from "./template-cache.ts";

const installed = (program: string) => spawnSync(program, ["--version"]).status === 0;
const isRoot = process.getuid?.() === 0;

let folder = "";
let stateDir = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "caisson-test-"));
  stateDir = join(folder, "state");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const at = (name: string) => join(folder, name);
const resolve = (reference: string) => resolveImage({ reference, stateDir });

/** Writes an image with one static program, which prints where it runs. */
function writeProgramImage(): void {
  writeFileSync(at("hello.c"), '#include <stdio.h>\nint main(void) { printf("inside\\n"); return 0; }\n');
  execFileSync("cc", ["-static", "-O1", "-o", at("hello"), at("hello.c")]);
  const program = readFileSync(at("hello"));
  writeLayout(at("layout"), [
    {
      tag: "latest",
      layers: [
        [
          { name: "proc/", type: "5" },
          { name: "etc/passwd", content: "root:x:0:0::/:/bin/sh\n" },
          { name: "bin/hello", content: program, mode: 0o4755, uid: 12, gid: 34 },
        ],
        [{ name: "many/uid", content: "x", uid: 1_000_000 }],
      ],
    },
  ]);
}

describe("an image unpacked by a separate process", () => {
  it.skipIf(!isRoot)("keeps the image's owners within bounds, and drops setuid bits", async () => {
    writeProgramImage();
    const { rootfsDir } = await resolve(at("layout"));
    expect(lstatSync(join(rootfsDir, "bin/hello"))).toMatchObject({ uid: 12, gid: 34 });
    expect(lstatSync(join(rootfsDir, "bin/hello")).mode & 0o7777).toBe(0o755);
    expect(lstatSync(join(rootfsDir, "many/uid")).uid).toBe(65_534);
  });

  it.skipIf(!isRoot || !installed("runc"))("runs", async () => {
    writeProgramImage();
    const { rootfsDir } = await resolve(at("layout"));
    mkdirSync(at("bundle"));
    const config = {
      ociVersion: "1.0.2",
      process: { user: { uid: 1000, gid: 1000 }, args: ["/bin/hello"], env: [], cwd: "/" },
      root: { path: rootfsDir, readonly: true },
      mounts: [
        { destination: "/proc", source: "proc", type: "proc" },
        // A separate one: devices may not work in the temporary folder.
        { destination: "/dev", source: "tmpfs", type: "tmpfs", options: ["nosuid", "mode=755"] },
      ],
      linux: { namespaces: [{ type: "pid" }, { type: "mount" }] },
    };
    writeFileSync(at("bundle/config.json"), JSON.stringify(config));
    const outcome = spawnSync("runc", ["--root", at("runc"), "run", "-b", at("bundle"), `caisson-test-${process.pid}`], {
      encoding: "utf8",
    });
    expect([outcome.stdout, outcome.stderr]).toEqual(["inside\n", ""]);
  });

  it.skipIf(!installed("skopeo"))("is the same in every format that skopeo writes", async () => {
    writeProgramImage();
    const plain = await resolve(at("layout"));
    const copy = (target: string) =>
      execFileSync("skopeo", ["--insecure-policy", "copy", "--quiet", "--", `oci:${at("layout")}:latest`, target]);
    copy(`docker-archive:${at("docker.tar")}:example.test/hello:2`);
    copy(`oci-archive:${at("oci.tar")}:latest`);
    copy(`oci:${at("copy")}:again`);
    expect(await resolve(at("oci.tar"))).toEqual(plain);
    expect(await resolve(`${at("copy")}:again`)).toEqual(plain);
    const docker = await resolve(`${at("docker.tar")}:hello:2`);
    expect(readFileSync(join(docker.rootfsDir, "bin/hello"))).toEqual(readFileSync(join(plain.rootfsDir, "bin/hello")));
    // Docker's own format of the layout, with a list of manifests.
    execFileSync("skopeo", [
      "--insecure-policy",
      "copy",
      "--quiet",
      "--all",
      "--format",
      "v2s2",
      "--",
      `oci:${at("layout")}:latest`,
      `oci:${at("v2s2")}:x`,
    ]);
    expect((await resolve(at("v2s2"))).digest).toMatch(/^sha256:/);
  });

  it.skipIf(!installed("umoci"))("has the same files as when umoci unpacks it", async () => {
    writeProgramImage();
    const { rootfsDir } = await resolve(at("layout"));
    execFileSync("umoci", ["raw", "unpack", "--rootless", "--image", `${at("layout")}:latest`, at("umoci")], { stdio: "pipe" });
    const tree = (root: string) => readdirSync(root, { recursive: true }).map(String).sort();
    expect(tree(rootfsDir)).toEqual(tree(at("umoci")));
  });

  it("leaves only a draft when its caller is killed, which the next sweep removes", async () => {
    writeLayout(at("layout"), [{ layers: [Array.from({ length: 20_000 }, (_, index) => ({ name: `f/${index}`, content: "x" }))] }]);
    const program = `import { resolveImage } from ${JSON.stringify(join(import.meta.dirname, "image.ts"))}; await resolveImage(${JSON.stringify({ reference: at("layout"), stateDir })});`;
    mkdirSync(join(stateDir, "templates"), { recursive: true });
    const firstChange = new Promise<void>((begin) => {
      const watcher = watch(join(stateDir, "templates"), () => {
        watcher.close();
        begin();
      });
    });
    const child = spawn(process.execPath, ["--input-type=module", "-e", program], { stdio: "ignore" });
    await firstChange;
    const draft = readdirSync(join(stateDir, "templates")).find((name) => name.startsWith(".draft")) ?? "";
    const cache = createTemplateCache({ stateDir });
    expect(await cache.sweep()).toBe(0);
    child.kill("SIGKILL");
    await once(child, "exit");
    expect(await cache.sweep()).toBe(1);
    expect(existsSync(join(stateDir, "templates", draft))).toBe(false);
    expect(await cache.use(draft)).toBeNull();
  });
});
