import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtempDisposable, readFile, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { expectNothingLeftAfterEach, useCaisson } from "./caisson-process.ts";
import { execIn, makeProject } from "./exec-project.ts";

const { run, sandboxes, base } = useCaisson();
expectNothingLeftAfterEach(sandboxes);

describe("caisson exec", () => {
  let project = "";
  beforeAll(async () => {
    project = await makeProject(base());
  });
  const inProject = execIn(run, () => project);

  test("changes the folder with --workspace :rw, and not with :ro", async () => {
    const shared = join(base(), "shared");
    await mkdir(shared);
    expect((await inProject("--workspace", `${shared}:rw`, "--", "sh", "-c", "echo hello > made")).code).toBe(0);
    expect(await readFile(join(shared, "made"), "utf8")).toBe("hello\n");
    expect((await inProject("--workspace", `${shared}:ro`, "--", "sh", "-c", "echo no > made")).code).not.toBe(0);
    expect(await readFile(join(shared, "made"), "utf8")).toBe("hello\n");
  });

  test("commits with git as the user, even in a work tree, and only inside", async () => {
    // Not in the folder for temporary files, where sandboxes have a separate one.
    await using place = await mkdtempDisposable(join(homedir(), ".caisson-test-"));
    const settings = join(place.path, "settings");
    await writeFile(settings, "[user]\n name = Ada Lovelace\n email = ada@example.org\n[alias]\n mine = status\n");
    const git = (...args: string[]) =>
      execFileSync("git", args, { cwd: place.path, encoding: "utf8", env: { ...process.env, GIT_CONFIG_GLOBAL: settings } });
    git("init", "-q", "main");
    git("-C", "main", "commit", "-q", "--allow-empty", "-m", "first");
    git("-C", "main", "worktree", "add", "-q", "../tree");
    const work = "echo new > file && git add file && git commit -qm second && git log --format='%s by %an %ae' && git config alias.mine";
    for (const folder of ["main", "tree"]) {
      const done = await run(["exec", "--quiet", "--", "sh", "-c", work], {
        cwd: join(place.path, folder),
        env: { GIT_CONFIG_GLOBAL: settings },
      });
      const ada = "by Ada Lovelace ada@example.org";
      expect(done, folder).toMatchObject({ text: `second ${ada}\nfirst ${ada}\n`, stderr: "", code: 1 });
    }
    const root = ["exec", "--allow-root", "--user", "root", "--", "git", "status", "--short"];
    expect(await run(root, { cwd: join(place.path, "tree") })).toMatchObject({ text: "", stderr: "", code: 0 });
    expect(git("-C", "tree", "log", "--all", "--format=%s")).toBe("first\n");
    await writeFile(join(place.path, "tree/.git"), "gitdir: /etc/ssl\n");
    const lured = await run(["exec", "--", "ls", "/etc/ssl"], { cwd: join(place.path, "tree") });
    expect(lured.stderr).toMatch(/git does not work in this workspace: .* does not know this work tree/);
  });

  test("hides credentials in the folder unless --show names them, and reports it", async () => {
    const shop = join(base(), "shop");
    await mkdir(join(shop, "keys"), { recursive: true });
    await writeFile(join(shop, ".env"), "TOKEN=outside\n");
    await writeFile(join(shop, "keys/id_rsa"), "private\n");
    const look = ["--", "sh", "-c", "cat .env keys/id_rsa; echo mine > .env; echo seen"];
    const hidden = await run(["exec", ...look], { cwd: shop });
    expect(hidden).toMatchObject({ code: 0, text: "seen\n" });
    expect(hidden.stderr.match(/2 files that look like credentials are hidden inside: \.env, keys\/id_rsa/g)).toHaveLength(1);
    const result = await run(["exec", "--show", ".env", "--hide", "keys", ...look], { cwd: shop });
    expect(result.text).toBe("TOKEN=outside\nseen\n");
    expect((await run(["exec", "-w", ".:rw", "--show", "*", ...look], { cwd: shop })).text).toBe("TOKEN=outside\nprivate\nseen\n");
    expect(await readFile(join(shop, ".env"), "utf8")).toBe("mine\n");
  });

  test("mounts further folders with the guards of the workspace", async () => {
    const data = join(base(), "data");
    await mkdir(join(data, "sub"), { recursive: true });
    await writeFile(join(data, "file"), "outside\n");
    await writeFile(join(data, ".env"), "TOKEN=outside\n");
    const change = (at: string) => ["--", "sh", "-c", `cat ${at}/file ${at}/.env; (echo inside > ${at}/file) 2>/dev/null; cat ${at}/file`];
    const hidden = /1 file that looks like a credential is hidden inside: \/\S+\/\.env/;
    const readOnly = await run(["exec", "--mount", "../data", ...change("/mnt/data")], { cwd: project });
    expect(readOnly).toMatchObject({ text: "outside\noutside\n", stderr: expect.stringMatching(hidden) });
    const overlay = await run(["exec", "--mount", "../data:/data:overlay", ...change("/data")], { cwd: project });
    expect(overlay.text).toBe("outside\ninside\n");
    expect(await readFile(join(data, "file"), "utf8")).toBe("outside\n");
    expect((await run(["exec", "--mount", `${data}:rw`, ...change("/mnt/data")], { cwd: project })).text).toBe("outside\ninside\n");
    expect(await readFile(join(data, "file"), "utf8")).toBe("inside\n");
    for (const [mount, reason] of [
      [".:/workspace/sub", "sandboxes use /workspace themselves"],
      ["/:/mnt/all", "refusing to mount /: it is the whole machine"],
      ["../missing", "does not exist"],
    ]) {
      expect(await run(["exec", "--mount", mount as string, "--", "true"], { cwd: project })).toMatchObject({
        code: 125,
        stderr: expect.stringContaining(reason as string),
      });
    }
  });

  test("protects git's hooks and settings in a read-write folder, but allows commits", async () => {
    const repository = join(base(), "repository");
    execFileSync("git", ["init", "-q", repository]);
    const settings = await readFile(join(repository, ".git/config"), "utf8");
    const attempts = [
      "echo evil > .git/hooks/pre-commit",
      "git config core.fsmonitor evil",
      "mv .git elsewhere",
      "rm -rf .git/hooks && mkdir .git/hooks && echo evil > .git/hooks/pre-commit",
    ];
    const commit = "git -c user.name=a -c user.email=b commit -q --allow-empty -m first && git log --format=%s";
    const script = `${attempts.map((attempt) => `( ${attempt} ) 2>/dev/null && echo "done: ${attempt}"`).join("\n")}\n${commit}`;
    const guarded = await run(["exec", "-w", ".:rw", "--", "sh", "-c", script], { cwd: repository });
    expect(guarded).toMatchObject({ code: 0, text: "first\n" });
    expect(await readFile(join(repository, ".git/config"), "utf8")).toBe(settings);
    expect(existsSync(join(repository, ".git/hooks/pre-commit"))).toBe(false);
    const allowed = await run(["exec", "-w", ".:rw", "--allow-hooks", "--", "git", "config", "user.name", "me"], { cwd: repository });
    expect(allowed.code, allowed.stderr).toBe(0);
    expect(await readFile(join(repository, ".git/config"), "utf8")).toContain("name = me");
  });

  test("refuses a home or system folder as the workspace unless it is named", async () => {
    const env = { HOME: project };
    const refused = await run(["exec", "--", "true"], { cwd: project, env });
    expect(refused).toMatchObject({
      code: 125,
      stderr: expect.stringMatching(/it is your home folder\nhint: .*name this one with --workspace DIR/),
    });
    expect((await run(["sandbox", "create"], { cwd: "/etc" })).stderr).toContain("a system folder");
    expect((await run(["run", "x", "--model", "scripted:none"], { cwd: "/" })).code).toBe(125);
    expect((await run(["exec", "-w", ".", "--", "cat", "data.txt"], { cwd: project, env })).text).toBe("from outside\n");
  });

  test("has an empty workspace with --no-workspace", async () => {
    expect((await inProject("--no-workspace", "--", "ls", "-A", "/workspace")).text).toBe("");
  });

  test("reports lost files in one line, unless --quiet or --json is given", async () => {
    const change = ["--", "sh", "-c", "mkdir made; touch made/a made/b; rm data.txt; mkdir __pycache__; touch __pycache__/x"];
    expect((await inProject(...change)).stderr).toBe("caisson: 3 files changed inside and were discarded; use -w .:rw to keep them\n");
    expect((await inProject("--quiet", ...change)).stderr).toBe("");
    expect((await inProject("--json", ...change)).stderr).toBe("");
    expect((await inProject("--", "true")).stderr).toBe("");
    expect((await inProject("--", "touch", "data.txt/x")).stderr).not.toContain("discarded");
  });
});
