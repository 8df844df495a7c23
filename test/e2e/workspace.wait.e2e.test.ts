import { execFileSync } from "node:child_process";
import { chmodSync, cpSync, existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, test } from "vitest";
import { useWorkspaceCli } from "../support/workspace-cli.ts";

const { cli, work, ok } = useWorkspaceCli();
const identity = { GIT_AUTHOR_NAME: "u", GIT_AUTHOR_EMAIL: "u@x", GIT_COMMITTER_NAME: "u", GIT_COMMITTER_EMAIL: "u@x" };
const git = (folder: string, ...args: string[]) =>
  execFileSync("git", ["-C", folder, ...args], {
    encoding: "utf8",
    env: { ...process.env, ...identity },
    stdio: ["ignore", "pipe", "pipe"],
  }).trim();
const read = (folder: string, name: string) => readFileSync(join(folder, name), "utf8");

async function repository(files: Record<string, string>): Promise<string> {
  const folder = await cli.folder(files);
  git(folder, "init", "-q", "-b", "main");
  git(folder, "add", "-A");
  git(folder, "commit", "-qm", "first");
  return folder;
}

describe("a folder", () => {
  test("can give agents mounts, variables, limits, root and an OCI runtime", async () => {
    const [here, data] = [await cli.folder(), await cli.folder({ file: "from outside\n", ".env": "TOKEN=1\n" })];
    const look = "cat /mnt/data/file /mnt/data/.env > seen; echo $FOO >> seen; (echo x > /mnt/data/new) 2>> seen; sudo id -u >> seen";
    const options = ["--mount", `${data}:/mnt/data`, "--env", "FOO=bar", "--pids", "200", "--allow-root", "--oci-runtime", "runc"];
    const { run, stderr } = await work(look, options, here);
    expect(stderr).toContain("hidden inside: /mnt/data/.env");
    const { text } = await ok(["diff", run], here);
    for (const line of ["+from outside", "+bar", "Read-only file system", "+0"]) expect(text).toContain(line);
    expect(readdirSync(data).sort()).toEqual([".env", "file"]);
  });

  test("shows and discards only its own runs, unless another is named", async () => {
    const [here, there] = [await cli.folder({ "a.txt": "one\n", ".gitignore": "dist/\n" }), await cli.folder({ "a.txt": "one\n" })];
    const own = await work("echo mine >> a.txt; echo new > b.txt; mkdir -p dist; touch dist/1 dist/2", [], here);
    const other = await work("echo theirs >> a.txt", [], there);
    const diff = await ok(["diff"], here);
    expect([diff.text.includes("+mine"), diff.text.includes("dist"), diff.stderr]).toEqual([
      true,
      false,
      "caisson: + 2 ignored files; --ignored shows them\n",
    ]);
    expect((await ok(["diff", "--ignored", "--stat"], here)).text).toContain("dist/2");
    expect((await ok(["diff", "b.txt"], here)).text).not.toContain("+mine");
    expect((await cli.run(["diff", "none.txt"], { cwd: here })).stderr).toContain(`${own.run} changed nothing at none.txt`);
    const rows = JSON.parse((await ok(["ps", "--json"], here)).text) as Record<string, unknown>[];
    expect(rows).toMatchObject([{ run: own.run, folder: here, unappliedFiles: 2 }]);
    const elsewhere = await cli.run(["discard"], { cwd: await cli.folder() });
    expect([elsewhere.code, elsewhere.stderr]).toEqual([125, expect.stringContaining(`${other.run} (${there})`)]);
    await ok(["apply", "b.txt"], here);
    expect(read(here, "a.txt")).toBe("one\n");
    await ok(["apply"], here);
    expect(read(here, "a.txt")).toBe("one\nmine\n");
    expect(read(there, "a.txt")).toBe("one\n");
    expect(JSON.parse((await ok(["ps", "--json"], here)).text)).toMatchObject([{ unappliedFiles: 0 }]);
    expect((await ok(["ps"], there)).text).toMatch(/1 file /);
  });

  test.runIf(process.getuid?.() === 0)("has a disk limit for the agent, whose changes remain for diff and apply", async () => {
    const folder = await cli.folder({ "a.txt": "one\n", "small.prompt": "---\nsandbox:\n  disk: 16m\n---\nWork.\n" });
    const command = "head -c 40000000 /dev/zero > big; stat -c %s big; rm big; echo more >> a.txt";
    const model = await cli.script({ turns: [{ calls: [{ tool: "bash", arguments: { command } }] }, { say: "Done." }] });
    const { code, text } = await cli.run(["run", "./small.prompt", "do it", "--model", model, "--runtime", "oci"], { cwd: folder });
    expect(code).toBe(0);
    expect(text).toContain("No space left");
    expect((await ok(["diff"], folder)).text).toContain("+more");
    await ok(["apply"], folder);
    expect(read(folder, "a.txt")).toBe("one\nmore\n");
  });

  test("is changed only by apply, whole or in part, and git accepts the diff", async () => {
    const folder = await repository({ "a.txt": "one\n", "b.txt": "two\n", old: "moved\n" });
    const { run } = await work(
      "echo more >> a.txt; mv old new; printf '\\0' > x.bin; chmod +x b.txt; mkdir -p src; echo s > src/s",
      [],
      folder,
    );
    expect(git(folder, "status", "--porcelain")).toBe("");
    const { text: stat } = await ok(["diff", "--stat"], folder);
    expect(stat.replaceAll(/ +/g, " ")).toContain("renamed old → new");
    const patch = (await ok(["diff", run], folder)).text;
    const copy = `${folder}-copy`;
    cpSync(folder, copy, { recursive: true });
    writeFileSync(join(copy, "..", "x.patch"), patch);
    git(copy, "apply", join(copy, "..", "x.patch"));
    expect((await ok(["apply", run, "src", "a.txt"], folder)).text).toBe(`2 files applied to ${folder}\n`);
    expect(git(folder, "status", "--porcelain")).toBe("M a.txt\n?? src/".replace("M", "M"));
    await ok(["apply", run], folder);
    expect((await ok(["diff", run], folder)).text).toBe("");
    expect(execFileSync("diff", ["-r", "--exclude=.git", folder, copy], { encoding: "utf8" })).toBe("");
    const { history } = JSON.parse((await ok(["session", "info", "--json", run], folder)).text) as { history: { type: string }[] };
    expect(history.map((event) => event.type)).toEqual([
      "session.created",
      "session.run_started",
      "session.run_ended",
      "session.applied",
      "session.applied",
    ]);
  });

  test("reports a file that is too large to show as a change", async () => {
    const folder = await repository({ a: "1\n" });
    const { text } = await work("truncate -s 80M big", [], folder);
    expect(text).not.toContain("No files were changed");
    expect(text).toMatch(/left out[\s\S]*big: it is larger than 64 MiB/);
  });

  test("that the user edits during a run is marked in the diff and protected from apply", async () => {
    const folder = await cli.folder({ a: "1\n", b: "2\n" });
    const { run } = await work("echo agent >> a; echo agent >> b", [], folder);
    writeFileSync(join(folder, "a"), "1\nmine\n");
    const diff = await ok(["diff", run], folder);
    expect(diff.stderr).toMatch(/you changed these .*: a\n/);
    expect(diff.text).toContain("-mine\n+agent\n");
    const refused = await cli.run(["apply", run], { cwd: folder });
    expect([refused.code, refused.stderr]).toEqual([125, expect.stringMatching(/you changed a [\s\S]*--force/)]);
    expect([read(folder, "a"), read(folder, "b")]).toEqual(["1\nmine\n", "2\n"]);
    await ok(["apply", run, "b"], folder);
    await ok(["apply", run, "--force"], folder);
    expect([read(folder, "a"), read(folder, "b")]).toEqual(["1\nagent\n", "2\nagent\n"]);
  });

  test("with a session shows a run the changes of earlier runs, even applied ones", async () => {
    const folder = await cli.folder({ a: "1\n" });
    await work("echo first >> a; echo kept > k", ["--session", "long"], folder);
    await ok(["apply", "long"], folder);
    await work("grep first a && cat k && echo second >> a", ["--session", "long"], folder);
    expect((await ok(["diff", "long"], folder)).text).toContain("+second");
    // Changes that were applied earlier do not count as the user's.
    await ok(["apply", "long"], folder);
    expect(read(folder, "a")).toBe("1\nfirst\nsecond\n");
    const two = await cli.run(["run", "x", "--session", "long", "--repo", folder, "--model", await cli.script({ turns: [] })], {
      cwd: folder,
    });
    expect([two.code, two.stderr]).toEqual([125, expect.stringContaining("--repo")]);
    await ok(["session", "rm", "long", "--yes"], folder);
    expect(existsSync(join(cli.home(), "sessions", "long"))).toBe(false);
  });

  test("with files that make git run programs is safe for every command", async () => {
    const folder = await repository({ a: "1\n" });
    const canary = join(folder, "..", `canary-${Date.now()}`);
    const evil = "/workspace/evil.sh";
    const plant = [
      `printf '#!/bin/sh\\ntouch ${canary}\\ncat\\n' > evil.sh; chmod +x evil.sh; cp evil.sh ${"/tmp/evil.sh"}`,
      ...[
        "core.fsmonitor",
        "core.hooksPath",
        "core.pager",
        "filter.x.clean",
        "filter.x.smudge",
        "diff.external",
        "diff.x.textconv",
        "alias.status",
      ].map((key) => `git config ${key} ${key === "alias.status" ? "'!'" : ""}${key === "core.hooksPath" ? "/workspace/hooks" : evil}`),
      "mkdir -p hooks .git/hooks; for h in reference-transaction post-index-change pre-commit post-commit post-checkout; do cp evil.sh hooks/$h; cp evil.sh .git/hooks/$h; done",
      "echo '* filter=x diff=x' > .gitattributes",
      `mkdir -p bare/objects bare/refs; echo 'ref: refs/heads/x' > bare/HEAD; printf '[core]\\n\\tfsmonitor = ${evil}\\n\\tworktree = .\\n' > bare/config; echo x > bare/refs/x; echo x > bare/objects/x`,
      "printf '[submodule \"x\"]\\n\\tpath = sub\\n\\turl = ext::sh -c touch%% /tmp/x\\n\\tupdate = !touch\\n' > .gitmodules; git init -q sub; echo changed >> a",
    ].join("\n");
    const { run } = await work(plant, [], folder);
    const diff = await ok(["diff", run], folder);
    expect(diff.text).toContain("+changed");
    expect(diff.text).not.toMatch(/^diff --git.*\.git\//m);
    expect(diff.stderr).toMatch(/left out \.git: .*\n[\s\S]*left out sub\/\.git/);
    const branched = JSON.parse((await ok(["branch", run, "--json"], folder)).text) as { commit: string };
    expect(git(folder, "log", "-1", "--format=%an %s", branched.commit)).toBe(`Caisson Changes of ${run}`);
    const applied = JSON.parse((await ok(["apply", run, "--json"], folder)).text) as { applied: string[]; skipped: { path: string }[] };
    expect(applied.applied).toContain("a");
    expect(applied.skipped.map((each) => each.path)).toEqual(
      expect.arrayContaining([".gitattributes", ".gitmodules", "bare/HEAD", "bare/config"]),
    );
    expect(git(folder, "config", "--list", "--local")).not.toContain("evil");
    expect(git(folder, "status", "--porcelain")).toContain("M a");
    await ok(["session", "rm", run, "--yes"], folder);
    expect(existsSync(canary)).toBe(false);
    // The workspace that the agent left would have run it, so the test can fail.
    writeFileSync(join(folder, "evil.sh"), `#!/bin/sh\ntouch ${canary}\n`);
    chmodSync(join(folder, "evil.sh"), 0o755);
    git(folder, "config", "core.fsmonitor", join(folder, "evil.sh"));
    git(folder, "status");
    expect(existsSync(canary)).toBe(true);
  });
});

describe("a git URL", () => {
  test("is checked out inside, and becomes a branch of a clone or files elsewhere", async () => {
    const remote = await repository({ a: "1\n", b: "2\n" });
    const here = await cli.folder();
    const { run, stderr, text } = await work(
      "git log --format=%s; echo more >> a; rm b; echo n > n",
      ["--repo", pathToFileURL(remote).href],
      here,
    );
    expect(stderr).toMatch(/^caisson: cloning file:.*\n(caisson: Receiving objects: 100%.*\n)?caisson: checking out [0-9a-f]{12}.*\n$/);
    expect(text).toContain(`caisson branch ${run} --to DIR`);
    const { files } = JSON.parse((await ok(["diff", run, "--json"], here)).text) as { files: { path: string; kind: string }[] };
    expect(files.map(({ path, kind }) => `${kind} ${path}`)).toEqual(["modified a", "removed b", "added n"]);
    expect((await cli.run(["apply", run], { cwd: here })).stderr).toContain("--to DIR");
    const clone = join(here, "clone");
    execFileSync("git", ["clone", "-q", remote, clone]);
    await ok(["branch", run, "--to", clone, "--name", "fix/x", "-m", "Fix x"], here);
    expect(git(clone, "show", "--format=%s", "--name-status", "fix/x").split(/\s+/)).toEqual(["Fix", "x", "M", "a", "D", "b", "A", "n"]);
    await ok(["apply", run, "--to", clone], here);
    expect(
      git(clone, "status", "--porcelain")
        .split("\n")
        .map((line) => line.trim()),
    ).toEqual(["M a", "D b", "?? n"]);
    expect(readdirSync(here)).toEqual(["clone"]);
  });

  test("is reported if it cannot be fetched", async () => {
    const here = await cli.folder();
    const model = await cli.script({ turns: [{ say: "Never." }] });
    for (const [url, words] of [
      [`file://${here}/nothing`, /could not be fetched/],
      ["ext::sh -c id", /./],
      ["http://127.0.0.1:1/x.git", /could not be fetched/],
    ] as const) {
      const result = await cli.run(["run", "x", "--repo", url, "--model", model, "--runtime", "oci"], { cwd: here });
      expect(result.code, url).not.toBe(0);
      expect(result.stderr + result.text).toMatch(words);
    }
    // The run does not wait for a person, and `resume` tries again.
    const listed = JSON.parse((await ok(["ps", "--all", "--json"], here)).text) as { status: string; task: string; run: string }[];
    expect(listed.filter(({ status }) => status === "interrupted")).toEqual([]);
    const failed = listed.filter(({ status, task }) => status === "error" && task === "x");
    expect(failed).toHaveLength(2);
    const again = await cli.run(["resume", failed[0]?.run ?? ""], { cwd: here });
    expect([again.code, again.text]).toEqual([1, expect.stringMatching(/could not be fetched/)]);
  });
});
