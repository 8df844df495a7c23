import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { useCaisson } from "./caisson-process.ts";

// Stations of the modes would open their own state folders.
const { run, home, base } = useCaisson({ mode: "none" });
const isRoot = process.getuid?.() === 0;

const mounts = () =>
  readFileSync("/proc/self/mounts", "latin1")
    .split("\n")
    .map((line) => line.split(" ")[1] ?? "")
    .filter((path) => path.startsWith(home()));
const unmount = () => {
  for (const path of mounts().reverse()) execFileSync("umount", [path]);
};
const configure = (volumeBytes: number) => {
  mkdirSync(home(), { recursive: true, mode: 0o700 });
  writeFileSync(join(home(), "config.json"), JSON.stringify({ volumeBytes }));
};
const ok = async (...argv: string[]) => {
  const result = await run(argv);
  expect(result.code, `${argv.join(" ")}: ${result.stderr}`).toBe(0);
  return result.text;
};
afterAll(unmount);

test.skipIf(!isRoot)("keeps sessions in a btrfs volume, which the next command mounts after a reboot", { timeout: 120_000 }, async () => {
  configure(600 * 1024 ** 2);
  writeFileSync(
    join(base(), "script.json"),
    JSON.stringify({ turns: [{ calls: [{ tool: "bash", arguments: { command: "echo 1 > one" } }] }, { say: "Done." }] }),
  );
  await ok("run", "write", "--runtime", "oci", "--model", "scripted:script.json", "--name", "first");
  expect(mounts().sort()).toEqual(["layers", "sandboxes", "sessions", "volume"].map((name) => join(home(), name)));
  const [layer = ""] = readdirSync(join(home(), "layers"));
  expect(existsSync(join(home(), "layers", layer, "tree", "upper", "one"))).toBe(true);
  unmount();
  expect(mounts()).toEqual([]);
  expect(await ok("show", "first@1", "one")).toBe("1\n");
  await ok("fork", "first@1");
  await ok("rewind", "first", "--to", "0");
  expect(await ok("diff", "first")).toBe("");
  const { code, stderr } = await run(["sandbox", "ls"], { env: { CAISSON_HOME: join(base(), "..", "other") } });
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
});

test.skipIf(!isRoot)("refuses a volume that would hide sessions, and one that does not fit", async () => {
  const other = join(base(), "..", "full");
  mkdirSync(join(other, "sessions", "old"), { recursive: true, mode: 0o700 });
  const use = async (volumeBytes: number) => {
    writeFileSync(join(other, "config.json"), JSON.stringify({ volumeBytes }));
    return run(["ps"], { env: { CAISSON_HOME: other } });
  };
  expect(await use(600 * 1024 ** 2)).toMatchObject({ code: 125, stderr: expect.stringContaining("has sessions already") });
  execFileSync("rm", ["-rf", join(other, "sessions")]);
  expect(await use(2 ** 50)).toMatchObject({ code: 125, stderr: expect.stringContaining("does not fit") });
  expect(await use(1)).toMatchObject({ code: 125, stderr: expect.stringContaining("volumeBytes") });
  expect(readdirSync(other)).toEqual(["config.json"]);
});
