import { execFileSync } from "node:child_process";
import { chmodSync, cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { cpuMs } from "../../test/support/cpu-time.ts";
import { readTree } from "../../test/support/tree-on-disk.ts";
import { SandboxConfig } from "../contract/sandbox/sandbox.ts";
import { createOciRuntime } from "../runtimes/oci/runtime.ts";
import { runCommand } from "../sandbox/run-command.ts";
import type { Runtime } from "../sandbox/runtime.ts";
import type { OwnedSandbox } from "../sandbox/sandbox.ts";
import { type Changes, kindOf } from "./change.ts";
import { findChanges } from "./changes.ts";
import { renderDiff } from "./testing-diff.ts";

/** Uses real overlays: only the kernel decides what a moved, replaced or removed folder looks like in one. */
describe("changes of a workspace", () => {
  let runtime: Runtime;
  let base = "";
  let number = 0;
  let lower = "";
  let layer = "";
  beforeAll(() => {
    base = mkdtempSync(join(tmpdir(), "caisson-test-"));
    mkdirSync(join(base, "home"), { mode: 0o700 });
    const guestPath = join(import.meta.dirname, "..", "..", "guest", "build", "caisson-guest");
    runtime = createOciRuntime({ stateDir: join(base, "home"), guestPath }, { home: base, path: process.env.PATH ?? "" });
  });
  afterAll(async () => {
    await runtime[Symbol.asyncDispose]();
    rmSync(base, { recursive: true, force: true });
  });
  beforeEach(() => {
    number += 1;
    lower = join(base, `lower-${number}`);
    layer = join(base, `layer-${number}`);
    mkdirSync(lower);
    mkdirSync(layer, { mode: 0o755 });
  });

  const sandbox = () => runtime.create(SandboxConfig.parse({ workspace: { kind: "folder", path: lower, access: "overlay", layer } }));
  const sh = async (where: OwnedSandbox, script: string) => {
    const { ended, stderr } = await runCommand(where, { argv: ["sh", "-ec", script] });
    expect(ended, stderr).toMatchObject({ kind: "exited", exitCode: 0 });
  };
  const put = (path: string, content: string | Buffer) => {
    mkdirSync(join(lower, path, ".."), { recursive: true });
    writeFileSync(join(lower, path), content);
  };
  const find = (where: OwnedSandbox, more: { layers?: readonly string[] | null } = {}) =>
    findChanges({ sandbox: where, lower, layers: [`${layer}/upper`], sinceMs: Date.now(), stateDir: join(base, "home"), ...more });
  const summary = ({ changes }: Changes) =>
    changes.map((each) => `${kindOf(each)} ${each.from === null ? "" : `${each.from} > `}${each.path}`);

  /**
   * Git applies the diff to a copy of the folder, which must then equal the inside. Compares the diff from the layer
   * with a full comparison.
   */
  async function expectFaithful(where: OwnedSandbox): Promise<Changes> {
    const inside = join(base, `inside-${number}`);
    mkdirSync(inside, { recursive: true });
    const pieces: Uint8Array[] = [];
    for await (const piece of await where.tarOut("/workspace")) pieces.push(piece);
    execFileSync("tar", ["-xf", "-", "-C", inside, "--no-same-owner"], { input: Buffer.concat(pieces) });
    const found = await find(where);
    for (const changes of [found, await find(where, { layers: null })]) {
      const copy = join(base, `copy-${number}`);
      cpSync(lower, copy, { recursive: true, verbatimSymlinks: true });
      if (changes.changes.length > 0)
        execFileSync("git", ["apply", "--whitespace=nowarn"], {
          cwd: copy,
          input: renderDiff(changes.changes),
          env: { PATH: process.env.PATH, GIT_CEILING_DIRECTORIES: tmpdir() },
        });
      expect(readTree(copy)).toEqual(readTree(inside));
      rmSync(copy, { recursive: true });
    }
    return found;
  }

  test.each<[string, string, string[]]>([
    ["nothing", "true", []],
    ["reading changes nothing", "cat a d/one; ls -R . >/dev/null", []],
    ["added, modified, removed", "echo x > new; echo y >> a; rm d/one", ["modified a", "removed d/one", "added new"]],
    ["written and put back", "cp a b; echo x > a; cp b a; rm b", []],
    ["modes", "chmod +x a; chmod -x run", ["modified a", "modified run"]],
    ["a file moved", "mv d/one moved", ["renamed d/one > moved"]],
    ["a folder moved", "mv d e", ["renamed d/one > e/one", "renamed d/sub/deep > e/sub/deep", "renamed d/two > e/two"]],
    [
      "a folder moved and changed",
      "mv d e; echo more >> e/one; rm e/two",
      ["removed d/two", "renamed d/one > e/one", "renamed d/sub/deep > e/sub/deep"],
    ],
    [
      "two folders change places",
      "mv d t; mv f d; mv t f",
      ["modified d/one", "modified d/two", "modified f/one", "renamed d/sub/deep > f/sub/deep", "modified f/two"],
    ],
    ["a folder takes the place of one in another", "rm -r f; mv d f; mkdir d; echo n > d/one", []],
    [
      "a folder removed and made again",
      "rm -r d; mkdir d; echo n > d/fresh",
      ["added d/fresh", "removed d/one", "removed d/sub/deep", "removed d/two"],
    ],
    ["a folder becomes a file", "rm -r d; echo x > d", ["added d", "removed d/one", "removed d/sub/deep", "removed d/two"]],
    ["a file becomes a folder", "rm a; mkdir a; echo x > a/in", ["removed a", "added a/in"]],
    ["links", "ln -s /etc/passwd out; ln -sf d/two link; rm run; ln -s a run", ["modified link", "added out", "modified run"]],
    ["a link to a folder is not followed", "ln -s d/sub s; ln -s /etc etc", ["added etc", "added s"]],
    [
      "binary, empty, without newline",
      "printf 'a\\0b' > bin; : > empty; printf x > short; printf '' > a",
      ["modified a", "added bin", "added empty", "added short"],
    ],
    [
      "names",
      `echo 1 > 'a b'; echo 2 > "it's \\"q\\""; echo 3 > "$(printf 'new\\nline')"; echo 4 > 'ü 文'; echo 5 > -dash; echo 6 > 'back\\slash'`,
      [],
    ],
    ["an empty folder does not count", "mkdir -p x/y/z", []],
    ["deep", "mkdir -p $(seq -s / 1 80); echo x > $(seq -s / 1 80)/f; echo x > $(seq -s / 1 64)/f", []],
    ["hard links and big files", "ln a hard; head -c 3000000 /dev/urandom > big", ["added big", "added hard"]],
  ])("%s", async (_, script, expected) => {
    put("a", "one\ntwo\nthree\n");
    put("run", "#!/bin/sh\n");
    chmodSync(join(lower, "run"), 0o755);
    for (const [name, text] of [
      ["d/one", "1\n1\n1\n"],
      ["d/two", "2\n2\n2\n"],
      ["d/sub/deep", "deep\n"],
      ["f/one", "f\nf\n"],
      ["f/two", "g\ng\n"],
      ["untouched/x", "x\n"],
    ] as const)
      put(name, text);
    symlinkSync("d/one", join(lower, "link"));
    // As after a clone: all files have the same age, so only size and content tell them apart.
    for (const name of Object.keys(readTree(lower))) if (name !== "link") utimesSync(join(lower, name), 1_700_000_000, 1_700_000_000);
    {
      await using first = await sandbox();
      await sh(first, script);
      const live = await expectFaithful(first);
      if (expected.length > 0 || script === "true") expect(summary(live)).toEqual(expected);
    }
    // Again in another sandbox, after the first one was removed.
    await using second = await sandbox();
    const found = await expectFaithful(second);
    if (expected.length > 0) expect(summary(found)).toEqual(expected);
    expect(found.leftOut).toEqual([]);
    expect(found.changes.filter((change) => change.changedOutside)).toEqual([]);
  });

  test("names files that no diff can show, without hiding others", async () => {
    put(".git/config", "[core]\n");
    put(Buffer.from("caf\xe9", "latin1").toString("latin1"), "x");
    await using inside = await sandbox();
    await sh(
      inside,
      `echo ok > ok; mkfifo fifo; echo x > "$(printf 'bad\\377')"; echo hook > .git/hook; mkdir sub; git init -q sub/repo; echo x > closed; chmod 000 closed; mkdir shut; echo x > shut/x; chmod 000 shut; truncate -s 100M large; ln -s "$(printf 'l\\377')" badlink`,
    );
    const { changes, leftOut } = await find(inside);
    expect(changes.map((change) => change.path)).toEqual(["ok"]);
    expect(leftOut.map(({ path }) => path)).toEqual(
      [".git", "bad\ufffd", "badlink", "closed", "fifo", "large", "shut", "sub/repo/.git"].sort(),
    );
    for (const { reason } of leftOut) expect(reason).toMatch(/\w/);
  });

  test("marks files that the user changed, even if changed, removed or moved inside", async () => {
    for (const name of ["same", "edited", "gone", "moved", "d/x", "theirs"]) put(name, `${name} 1\n${name} 2\n${name} 3\n`);
    {
      await using inside = await sandbox();
      await sh(inside, "for f in same edited; do echo agent >> $f; done; rm gone; mv moved to; rm -r d; echo new > new");
    }
    for (const name of ["edited", "gone", "moved", "d/x", "theirs", "new"]) put(name, `${name} 1\n${name} 2\n${name} 3\nmine\n`);
    await using view = await sandbox();
    const { changes } = await find(view);
    expect(changes.filter((change) => change.changedOutside).map((change) => change.from ?? change.path)).toEqual([
      "d/x",
      "edited",
      "gone",
      "new",
      "moved",
    ]);
    expect(changes.filter((change) => !change.changedOutside).map((change) => change.path)).toEqual(["same"]);
  });

  test("finds 100 changes among 20,000 files quickly", async () => {
    for (let folder = 0; folder < 200; folder++) {
      mkdirSync(join(lower, `d${folder}`));
      for (let file = 0; file < 100; file++) writeFileSync(join(lower, `d${folder}`, `f${file}`), `${folder} ${file}\n`);
    }
    await using inside = await sandbox();
    await sh(inside, "for n in $(seq 1 100); do echo changed >> d$n/f7; done");
    await find(inside);
    const startMs = cpuMs();
    const { changes } = await find(inside);
    expect(changes.length).toBe(100);
    expect(cpuMs() - startMs).toBeLessThan(1000);
  });
});
