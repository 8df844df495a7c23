import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ordinaryUser } from "../support/ordinary-user.ts";
import { root } from "./caisson-process.ts";

const MIB = 1024 * 1024;
/** The oldest version that package.json supports. */
const OLDEST_NODE = "node@22.18.0";

let base = "";
let tarball = "";
/** A folder with the package and the oldest Node installed. */
let project = "";
const user = ordinaryUser();

/** As in setup: the registry may be behind a server whose certificate only the system trusts. */
const npmEnv = { ...process.env, NODE_OPTIONS: "--use-system-ca" };

function npm(args: readonly string[], cwd: string): string {
  return execFileSync("npm", [...args, "--no-audit", "--no-fund", "--loglevel=error"], {
    cwd,
    env: npmEnv,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
    // The call blocks this process, so not even the hook's own timeout can end it.
    timeout: 600_000,
  });
}

function emptyProject(name: string): string {
  const folder = join(base, name);
  mkdirSync(folder);
  chmodSync(folder, 0o755);
  writeFileSync(join(folder, "package.json"), JSON.stringify({ name, private: true, type: "module" }));
  return folder;
}

/**
 * Runs a program with the oldest Node, `caisson` on its PATH, and a separate state folder. Returns its output and
 * status.
 */
function inProject(argv: readonly [string, ...string[]], options: { asUser?: boolean; cwd?: string } = {}) {
  const { asUser = false, cwd = project } = options;
  const state = join(asUser ? user.home : base, "caisson-package-state");
  const { stdout, stderr, status } = spawnSync(argv[0], argv.slice(1), {
    cwd,
    encoding: "utf8",
    env: {
      HOME: asUser ? user.home : base,
      CAISSON_HOME: state,
      PATH: [join(project, "node_modules/node/bin"), join(project, "node_modules/.bin"), process.env.PATH].join(":"),
    },
    ...(asUser && { uid: user.uid, gid: user.gid }),
  });
  return { stdout, stderr, status };
}

beforeAll(() => {
  base = mkdtempSync(join(tmpdir(), "caisson-package-"));
  chmodSync(base, 0o755);
  npm(["pack", "--pack-destination", base], root);
  tarball = join(base, readdirSync(base).find((name) => name.endsWith(".tgz")) ?? "");
  project = emptyProject("project");
  // Skips the dependencies of an optional peer, all of which npm would otherwise request from the registry.
  npm(["install", "--ignore-scripts", "--prefer-offline", "--legacy-peer-deps", tarball, OLDEST_NODE], project);
  // We have no install script, but the install script of `node` brings its binary.
  if (!readdirSync(join(project, "node_modules/node")).includes("bin")) {
    execFileSync("node", ["installArchSpecificPackage.js"], { cwd: join(project, "node_modules/node"), env: npmEnv });
  }
}, 900_000);

afterAll(() => {
  rmSync(join(user.home, "caisson-package-state"), { recursive: true, force: true });
  user.remove();
  rmSync(base, { recursive: true, force: true });
});

describe("the package, installed from its tarball", () => {
  test("is small, has no install script, and contains a guest for each architecture", () => {
    expect(statSync(tarball).size).toBeLessThan(6 * MIB);
    const installed = join(project, "node_modules/caisson");
    expect(readdirSync(join(installed, "dist/guest")).sort()).toEqual(["aarch64", "x86_64"]);
    expect(readdirSync(installed)).not.toContain("src");
    const { scripts } = JSON.parse(execFileSync("cat", [join(installed, "package.json")], { encoding: "utf8" }));
    expect(Object.keys(scripts).filter((name) => /install/.test(name))).toEqual([]);
  });

  test("runs with the oldest supported Node", () => {
    expect(inProject(["node", "--version"]).stdout).toBe("v22.18.0\n");
    expect(inProject(["npx", "--no-install", "caisson", "exec", "--", "echo", "from inside"])).toEqual({
      stdout: "from inside\n",
      stderr: expect.not.stringContaining("Warning"),
      status: 0,
    });
    expect(inProject(["caisson", "ps"])).toMatchObject({ stderr: "", status: 0 });
    // Covers the walls and limits of a sandbox, and an agent's run.
    expect(inProject(["caisson", "demo"])).toMatchObject({ stdout: expect.stringContaining("Everything held."), status: 0 });
  });

  test("evaluates workflow expressions in a separate thread", () => {
    const file = join(project, "flow.yaml");
    // biome-ignore lint/suspicious/noTemplateCurlyInString: expressions of workflows are written so.
    writeFileSync(file, 'name: x\nsteps:\n  - { name: a, kind: set, data: { sum: "${1 + 2}" } }\noutput: "${data.sum}"\n');
    expect(inProject(["caisson", "workflow", "run", file, "--json"])).toMatchObject({
      stdout: expect.stringMatching(/"output": ?3\b/),
      status: 0,
    });
  });

  test("tells an older Node which version it needs", () => {
    const older = join(base, "older");
    mkdirSync(older);
    // A Node that reports an older version, since only the version is checked.
    const node = join(project, "node_modules/node/bin/node");
    const preload = join(older, "older.cjs");
    writeFileSync(preload, 'Object.defineProperty(process.versions, "node", { value: "20.19.0" });');
    const result = spawnSync(node, ["--require", preload, join(project, "node_modules/caisson/dist/caisson.mjs"), "--version"], {
      encoding: "utf8",
    });
    expect(result).toMatchObject({ status: 125, stderr: "caisson: requires Node 22.18 or later; this is 20.19.0\n" });
  });

  test("works as a library in plain JavaScript", () => {
    const program = join(project, "use.js");
    writeFileSync(
      program,
      `import { createSandbox, runCommand } from "caisson";
       import { runAttacks } from "caisson/attack";
       const sandbox = await createSandbox({ workspace: { kind: "folder", path: "." } });
       const { stdout } = await runCommand(sandbox, { argv: ["sh", "-c", "ls package.json; id -u"] });
       process.stdout.write(stdout);
       await sandbox.destroy();
       process.stdout.write(typeof runAttacks);`,
    );
    expect(inProject(["node", program])).toMatchObject({ stdout: "package.json\n1000\nfunction", status: 0 });
  });

  test("includes the conformance suite for custom runtimes", () => {
    writeFileSync(
      join(project, "own.test.js"),
      `import { createCaisson } from "caisson";
       import { describeRuntime } from "caisson/conformance";
       const caisson = createCaisson();
       describeRuntime("my runtime", async () => ({ runtime: await caisson.runtime("oci") }));`,
    );
    // The optional peer, from this checkout.
    symlinkSync(join(root, "node_modules/vitest"), join(project, "node_modules/vitest"));
    const report = join(project, "report.json");
    const some = ["-t", "attach: an unknown ref is not_found", "--reporter", "json", "--outputFile", report];
    const { stdout, stderr } = inProject(["node", "node_modules/vitest/vitest.mjs", "run", ...some]);
    expect(JSON.parse(readFileSync(report, "utf8")), stdout + stderr).toMatchObject({ numPassedTests: 1, numFailedTests: 0 });
  });

  test("includes a client that works without Node's modules", () => {
    const program = join(project, "client.js");
    writeFileSync(
      program,
      `import { connect } from "caisson/client";
       const { status, sandboxes } = connect({ url: process.argv[2], token: process.argv[3] });
       console.log((await status()).url === process.argv[2], (await sandboxes.list()).sandboxes.length);`,
    );
    const started = inProject(["caisson", "up", "--detach", "--port", "0", "--json"]);
    expect(started).toMatchObject({ status: 0 });
    try {
      const { url, token } = JSON.parse(started.stdout);
      expect(inProject(["node", program, url, token])).toEqual({ stdout: "true 0\n", stderr: "", status: 0 });
    } finally {
      expect(inProject(["caisson", "down"])).toMatchObject({ status: 0 });
    }
    // A browser has none of these.
    const text = readFileSync(join(project, "node_modules/caisson/dist/client.mjs"), "utf8");
    expect(text).not.toMatch(/node:|getBuiltinModule|from "zod"/);
  });

  test("works as a typed library in TypeScript", () => {
    const program = join(project, "use.ts");
    writeFileSync(
      program,
      `import { createSandbox, runCommand, type Sandbox } from "caisson";
       const sandbox: Sandbox & AsyncDisposable = await createSandbox({ workspace: { kind: "folder", path: "." } });
       const { stdout } = await runCommand(sandbox, { argv: ["echo", "typed"] });
       export const length: number = stdout.length;
       process.stdout.write(stdout);
       await sandbox[Symbol.asyncDispose]();`,
    );
    writeFileSync(
      join(project, "check.ts"),
      `import { createSandbox } from "caisson";
       import { connect, type RunView } from "caisson/client";
       const { runs } = connect({ url: "http://127.0.0.1:7433" });
       export const view: RunView = await runs.get("run");
       // @ts-expect-error There is no such field.
       await runs.start({ task: "x", nonsense: true });
       // @ts-expect-error There is no such field.
       await createSandbox({ nonsense: true });`,
    );
    const options = { module: "nodenext", target: "es2024", lib: ["es2024", "esnext.disposable"], strict: true, noEmit: true };
    const compilerOptions = { ...options, skipLibCheck: true, types: ["node"], typeRoots: [join(root, "node_modules/@types")] };
    writeFileSync(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["use.ts", "check.ts"] }));
    const { stdout, status } = spawnSync(join(root, "node_modules/.bin/tsc"), ["-p", project], { encoding: "utf8" });
    expect({ stdout, status }).toEqual({ stdout: "", status: 0 });
    expect(inProject(["node", program])).toMatchObject({ stdout: "typed\n", status: 0 });
  });

  test("works for an ordinary user", () => {
    const result = inProject(["caisson", "exec", "--no-workspace", "--", "id", "-u"], { asUser: true, cwd: user.home });
    expect(result).toMatchObject({ stdout: "1000\n", status: 0 });
  });

  test("installs again without a network", () => {
    const second = emptyProject("second");
    npm(["install", "--ignore-scripts", "--offline", "--legacy-peer-deps", tarball], second);
    expect(inProject([join(second, "node_modules/.bin/caisson"), "--version"]).stdout).toMatch(/^caisson \d/);
  });
});
