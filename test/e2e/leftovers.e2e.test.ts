import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createOciContext } from "../../src/runtimes/oci/oci-context.ts";
import { processOne } from "../support/process-one.ts";
import { useRunsCli } from "../support/runs-cli.ts";

const cli = useRunsCli();
const root = join(import.meta.dirname, "..", "..");
const asRoot = process.getuid?.() === 0;

/** A test run as `scripts/test` starts it: a shell that creates the run's folders and reports leftovers. */
interface Run {
  env: Record<string, string>;
  shell: ChildProcess;
  /**
   * Returns the lines about leftovers that contain one of these words. Other runs may use this machine and create
   * cgroups.
   */
  left(...words: (string | number | undefined)[]): string[];
}

let place = "";
let ours: Run;
let other: Run;

async function begin(name: string): Promise<Run> {
  const list = join(place, name);
  mkdirSync(list);
  const script = `. scripts/own-run && begin_run "${list}" && env | grep -E "^(TMPDIR|XDG_STATE_HOME|CAISSON_TEST_RUN)=" && echo ready && read -r _`;
  const shell = spawn("bash", ["-c", script], { cwd: root, env: { ...process.env, TMPDIR: place }, stdio: ["pipe", "pipe", "inherit"] });
  const env: Record<string, string> = {};
  for await (const line of createInterface({ input: shell.stdout as NonNullable<typeof shell.stdout> })) {
    if (line === "ready") break;
    const [key = "", value = ""] = line.split("=");
    env[key] = value;
  }
  const left: Run["left"] = (...words) =>
    execFileSync(join(root, "scripts", "leftovers"), [join(list, "before")], {
      cwd: root,
      encoding: "utf8",
      env: { ...process.env, ...env },
    })
      .split("\n")
      .filter((line) => words.some((word) => line.includes(`${word}`)));
  return { env, shell, left };
}

beforeAll(async () => {
  place = mkdtempSync(join(tmpdir(), "caisson-test-left-"));
  ours = await begin("ours");
  other = await begin("other");
});
afterAll(async () => {
  for (const { shell } of [ours, other]) {
    shell.stdin?.end("\n");
    await once(shell, "exit");
  }
  rmSync(place, { recursive: true });
});

test("a process and a folder are reported by their own run only", async () => {
  const program = "process.stdin.resume(); console.log('up')";
  const keeper = spawn(process.execPath, ["-e", program, "--", "net", "serve", "sb_aaaaaaaaaaaa"], {
    env: { ...process.env, ...ours.env },
    stdio: ["pipe", "pipe", "ignore"],
  });
  await once(keeper.stdout as NonNullable<typeof keeper.stdout>, "data");
  const folder = mkdtempSync(join(ours.env.TMPDIR ?? "", "caisson-test-"));
  const words = [`process ${keeper.pid} `, folder];
  expect(ours.left(...words)).toEqual([expect.stringMatching(`^process ${keeper.pid} `), `folder ${folder}`]);
  expect(other.left(...words)).toEqual([]);
  keeper.kill();
  await once(keeper, "exit");
  rmSync(folder, { recursive: true });
  expect(ours.left(...words)).toEqual([]);
});

test.runIf(asRoot)("a mount is reported by its own run only", () => {
  const folder = mkdtempSync(join(ours.env.TMPDIR ?? "", "disk-"));
  execFileSync("mount", ["-t", "tmpfs", "-o", "size=64k", "tmpfs", folder]);
  try {
    expect(ours.left(place)).toEqual([`mount ${folder}`]);
    expect(other.left(place)).toEqual([]);
  } finally {
    execFileSync("umount", [folder]);
  }
});

test("a sandbox's guest, cgroups and record are reported by their own run only", async () => {
  const home = join(ours.env.XDG_STATE_HOME ?? "", "caisson");
  const result = await cli.run(["sandbox", "create", "--no-station"], { home, env: ours.env });
  const id = result.text.trim();
  try {
    const guest = `process ${processOne(id)} `;
    const left = ours.left(guest, id);
    expect(left).toContainEqual(expect.stringMatching(`^${guest}`));
    expect(left).toContain(`sandbox ${join(home, "sandboxes", id)}`);
    if (asRoot) expect(left).toContainEqual(expect.stringMatching(`^cgroup .*/${id}$`));
    expect(other.left(guest, id)).toEqual([]);
  } finally {
    await cli.run(["sandbox", "rm", id, "--yes"], { home });
  }
  expect(ours.left(id)).toEqual([]);
});

test.runIf(asRoot)("an empty cgroup is reported by the run that has its state folder", () => {
  const stateDir = join(ours.env.TMPDIR ?? "", "home");
  mkdirSync(join(stateDir, "sandboxes"), { recursive: true });
  const guestPath = join(root, "guest", "build", "caisson-guest");
  const oci = createOciContext({ stateDir, guestPath }, { home: stateDir, path: process.env.PATH ?? "" });
  const group = join(oci.cgroups().parents[0]?.dir ?? "", oci.cgroupName);
  mkdirSync(group);
  try {
    expect(ours.left(group)).toEqual([`cgroup ${group}`]);
    expect(other.left(group)).toEqual([]);
  } finally {
    rmdirSync(group);
  }
});
