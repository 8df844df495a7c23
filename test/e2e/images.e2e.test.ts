import { spawnSync } from "node:child_process";
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { writeDebianArchive } from "../support/debian-archive.ts";
import { ordinaryUser } from "../support/ordinary-user.ts";
import { launcher, useCaisson } from "./caisson-process.ts";

const { run, home, base } = useCaisson();

/** Runs the real mmdebstrap over an archive with one package. */
describe.skipIf(!existsSync("/usr/bin/mmdebstrap"))("caisson image", () => {
  let options: string[];
  beforeAll(() => {
    const folder = join(base(), "archive");
    mkdirSync(folder);
    const { mirror, suite } = writeDebianArchive(folder);
    options = ["--variant", "extract", "--suite", suite, "--mirror", mirror];
  });
  const build = (...more: string[]) => run(["image", "build", "debian", ...options, ...more]);
  const templates = () => readdirSync(join(home(), "templates")).filter((name) => !name.startsWith("host-") && name !== "uses");

  test("builds, lists, starts and removes an image, but not while it is in use", async () => {
    const built = await build("--include", "tiny", "--name", "lab");
    expect(built, built.stderr).toMatchObject({ code: 0 });
    expect(built.text).toContain("caisson exec --image lab");
    expect(built.stderr).toMatch(/downloading packages.*\n(?:.*\n)*.*unpacking the image/);
    expect(JSON.parse((await run(["image", "ls", "--json"])).text)).toMatchObject([{ name: "lab", suite: "test", packages: ["tiny"] }]);

    expect(JSON.parse((await run(["image", "show", "lab", "--json"])).text)).toMatchObject({ name: "lab", digest: expect.any(String) });
    expect((await run(["image", "show", "lab"])).text).toMatch(/^packages +tiny$/m);
    expect(await run(["image", "show", "other"])).toMatchObject({ code: 125, stderr: expect.stringContaining("caisson image ls") });
    const inside = await run(["exec", "--image", "lab", "--no-workspace", "--", "/bin/sh", "-c", "id -u; ls /bin"]);
    expect(inside.text).toBe("1000\nbusybox\ncat\nid\nls\nsh\n");

    const id = (await run(["sandbox", "create", "--image", "lab", "--no-workspace"])).text.trim();
    expect(await run(["image", "rm", "lab"])).toMatchObject({ code: 125, stderr: expect.stringContaining("in use") });
    await run(["sandbox", "rm", id, "--yes"]);
    expect(await run(["image", "rm", "lab"])).toMatchObject({ code: 0, stderr: "" });
    expect(templates()).toEqual([]);
    expect((await run(["image", "ls"])).text).toMatch(/^No images\./);
  });

  test("explains why an image cannot be built, and leaves nothing behind", async () => {
    const failed = await build("--include", "no-such-package");
    expect(failed.code).toBe(125);
    expect(failed.stderr).toMatch(/caisson: mmdebstrap could not build the image: .*no-such-package.*\nhint: /);
    for (const [wrong, words] of [
      [["--name", "../x"], /--name must be/],
      [["--include", "a;b"], /--include must be/],
      [["--mirror", "/etc"], /--mirror must be/],
    ] as const)
      expect(await run(["image", "build", "debian", ...wrong])).toMatchObject({ code: 125, stderr: expect.stringMatching(words) });
    expect(await run(["image", "build", "fedora"])).toMatchObject({ code: 125, stderr: expect.stringContaining("hint: Build `debian`") });
    expect(templates()).toEqual([]);
    expect((await run(["image", "ls"])).text).toMatch(/^No images\./);
  });

  test("builds and runs images for an ordinary user", () => {
    const user = ordinaryUser();
    const folder = mkdtempSync(join(tmpdir(), "caisson-test-"));
    try {
      const archive = join(folder, "archive");
      mkdirSync(archive, { mode: 0o755 });
      const { mirror, suite } = writeDebianArchive(archive);
      chownSync(folder, user.uid, user.gid);
      chmodSync(folder, 0o755);
      const env = { HOME: folder, PATH: "/usr/local/bin:/usr/bin:/bin", CAISSON_HOME: join(folder, "home") };
      const asUser = (...argv: string[]) => spawnSync(launcher, argv, { cwd: folder, env, uid: user.uid, gid: user.gid, encoding: "utf8" });
      const built = asUser("image", "build", "debian", "--variant", "extract", "--suite", suite, "--mirror", mirror, "--include", "tiny");
      expect(built.status, built.stderr).toBe(0);
      const inside = asUser("exec", "--image", "debian", "--no-workspace", "--", "/bin/id", "-u");
      expect(inside.stdout, inside.stderr).toBe("1000\n");
      expect(asUser("image", "rm", "debian").status).toBe(0);
    } finally {
      rmSync(folder, { recursive: true, force: true });
      user.remove();
    }
  });
});
