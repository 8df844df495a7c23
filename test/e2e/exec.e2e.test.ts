import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { copyFile, mkdir, mkdtempDisposable, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { SandboxEvent } from "../../src/contract/event.ts";
import { expectNothingLeftAfterEach, useCaisson } from "./caisson-process.ts";

const { run, start, sandboxes, base, home } = useCaisson();
expectNothingLeftAfterEach(sandboxes);

describe("caisson exec", () => {
  let project = "";
  beforeAll(async () => {
    project = join(base(), "project");
    await mkdir(project, { recursive: true });
    await writeFile(join(project, "data.txt"), "from outside\n");
  });
  const inProject = (...argv: string[]) => run(["exec", ...argv], { cwd: project });

  test("shows a sandbox, and the folder outside stays as it was", async () => {
    const result = await inProject(
      "--",
      "sh",
      "-c",
      'id; cat /etc/shadow; ls -A /root | grep -E "^.(ssh|bashrc|profile)"; touch /workspace/x; ls /workspace; ip link',
    );
    expect(result.code).toBe(0);
    expect(result.text).toMatch(/uid=1000/);
    expect(result.stderr).toMatch(/shadow/);
    expect(result.text).toMatch(/^uid=.*\ndata.txt\nx\n1: lo: /);
    expect(result.text).not.toMatch(/^\d+: (?!lo)/m);
    expect(existsSync(join(project, "x"))).toBe(false);
  });

  test("stdout and stderr are kept apart", async () => {
    const result = await inProject("--", "sh", "-c", "echo out; echo err >&2");
    expect(result.text).toBe("out\n");
    expect(result.stderr).toBe("err\n");
  });

  test.each([0, 1, 3, 255])("the exit code %d is the command's own", async (code) => {
    expect((await inProject("--", "sh", "-c", `exit ${code}`)).code).toBe(code);
  });

  test("a signal's exit code is 128 and its number", async () => {
    expect((await inProject("--", "sh", "-c", "kill -TERM $$")).code).toBe(143);
    expect((await inProject("--", "sh", "-c", "kill -KILL $$")).code).toBe(137);
  });

  test("10 MB go through stdin and stdout unchanged", async () => {
    const bytes = randomBytes(10_000_000);
    const result = await run(["exec", "--", "cat"], { cwd: project, input: bytes });
    expect(result.code).toBe(0);
    expect(result.stdout.equals(bytes)).toBe(true);
  });

  test("an open stdin that nobody writes to holds nothing up", async () => {
    const { child, finished } = start(["exec", "--", "echo", "done"], { cwd: project });
    const result = await finished;
    child.stdin?.destroy();
    expect(result).toMatchObject({ code: 0, text: "done\n" });
  });

  test("a closed stdin is closed inside", async () => {
    expect((await inProject("--", "cat")).code).toBe(0);
  });

  test("a reader that goes away ends the command", async () => {
    const { child, finished } = start(["exec", "--", "yes"], { cwd: project });
    child.stdout?.once("data", () => child.stdout?.destroy());
    expect((await finished).code).toBe(141);
  });

  test("variables, folder and arguments arrive as given", async () => {
    const result = await run(
      [
        "exec",
        "--env",
        "A=x y",
        "--env",
        "TAKEN",
        "--cwd",
        "/tmp",
        "--",
        "sh",
        "-c",
        'pwd; printf "%s|%s|%s\\n" "$A" "$TAKEN" "$1"',
        "sh",
        "a  b\n'",
      ],
      {
        cwd: project,
        env: { TAKEN: "from outside", SECRET_OF_MINE: "never inside" },
      },
    );
    expect(result.text).toBe("/tmp\nx y|from outside|a  b\n'\n");
    expect((await run(["exec", "--", "env"], { env: { SECRET_OF_MINE: "never inside" } })).text).not.toContain("SECRET_OF_MINE");
  });

  test("a workspace that is shared for real is changed, and the files are their owner's", async () => {
    const shared = join(base(), "shared");
    await mkdir(shared);
    expect((await inProject("--workspace", `${shared}:rw`, "--", "sh", "-c", "echo hello > made")).code).toBe(0);
    expect(await readFile(join(shared, "made"), "utf8")).toBe("hello\n");
    expect((await inProject("--workspace", `${shared}:ro`, "--", "sh", "-c", "echo no > made")).code).not.toBe(0);
    expect(await readFile(join(shared, "made"), "utf8")).toBe("hello\n");
  });

  test("git commits inside as the user, in a work tree too, and nothing of it is outside", async () => {
    // Not in the folder for temporary files: sandboxes have one of their own there.
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

  test("credentials of the folder show nothing inside, unless they are asked for; one line says so", async () => {
    const shop = join(base(), "shop");
    await mkdir(join(shop, "keys"), { recursive: true });
    await writeFile(join(shop, ".env"), "TOKEN=outside\n");
    await writeFile(join(shop, "keys/id_rsa"), "private\n");
    const look = ["--", "sh", "-c", "cat .env keys/id_rsa; echo mine > .env; echo seen"];
    const hidden = await run(["exec", ...look], { cwd: shop });
    expect(hidden).toMatchObject({ code: 0, text: "seen\n" });
    expect(hidden.stderr.match(/2 files that look like credentials are hidden inside: \.env, keys\/id_rsa/g)).toHaveLength(1);
    const shown = await run(["exec", "--show", ".env", "--hide", "keys", ...look], { cwd: shop });
    expect(shown.text).toBe("TOKEN=outside\nseen\n");
    expect((await run(["exec", "-w", ".:rw", "--show", "*", ...look], { cwd: shop })).text).toBe("TOKEN=outside\nprivate\nseen\n");
    expect(await readFile(join(shop, ".env"), "utf8")).toBe("mine\n");
  });

  test("further folders are mounted as they are asked for, with the workspace's guards", async () => {
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
    for (const [mount, told] of [
      [".:/workspace/sub", "sandboxes have /workspace for themselves"],
      ["/:/mnt/all", "refusing to mount /: it is the whole machine"],
      ["../missing", "does not exist"],
    ]) {
      expect(await run(["exec", "--mount", mount as string, "--", "true"], { cwd: project })).toMatchObject({
        code: 125,
        stderr: expect.stringContaining(told as string),
      });
    }
  });

  test("git's hooks and settings stay as they are in a folder given read-write, while it can be committed to", async () => {
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

  test("a folder in which one stands by mistake is not the workspace, unless it is named", async () => {
    const env = { HOME: project };
    const refused = await run(["exec", "--", "true"], { cwd: project, env });
    expect(refused).toMatchObject({
      code: 125,
      stderr: expect.stringMatching(/it is your home folder\nhint: .*--workspace DIR names it on purpose/),
    });
    expect((await run(["sandbox", "create"], { cwd: "/etc" })).stderr).toContain("a folder of the system's");
    expect((await run(["run", "x", "--model", "scripted:none"], { cwd: "/" })).code).toBe(125);
    expect((await run(["exec", "-w", ".", "--", "cat", "data.txt"], { cwd: project, env })).text).toBe("from outside\n");
  });

  test("programs are found where their installers put them, and can be installed inside", async () => {
    await using home = await mkdtempDisposable(join(homedir(), ".caisson-test-"));
    const versions = join(home.path, ".local/share/claude/versions");
    await mkdir(versions, { recursive: true });
    await copyFile("/bin/echo", join(versions, "1.2"));
    await mkdir(join(home.path, ".local/bin"));
    await symlink(join(versions, "1.2"), join(home.path, ".local/bin/claude"));
    await mkdir(join(home.path, "work"));
    await writeFile(join(home.path, "work/package.json"), JSON.stringify({ name: "tool", version: "1.0.0", bin: "tool.sh" }));
    await writeFile(join(home.path, "work/tool.sh"), "#!/bin/sh\necho from tool\n");
    const env = { HOME: home.path, PATH: `${home.path}/.local/bin:/usr/bin:/bin` };
    const script = "claude from claude && npm install -g --offline --silent ./ && tool && command -v tool";
    const done = await run(["exec", "--", "sh", "-c", script], { cwd: join(home.path, "work"), env });
    expect(done).toMatchObject({ text: "from claude\nfrom tool\n/home/user/.local/bin/tool\n", code: 0 });
  });

  test("no workspace is an empty one", async () => {
    expect((await inProject("--no-workspace", "--", "ls", "-A", "/workspace")).text).toBe("");
  });

  test("a command that runs too long is ended: 124 and the reason", async () => {
    const result = await inProject("--timeout", "300ms", "--", "sleep", "60");
    expect(result.code).toBe(124);
    expect(result.stderr).toContain("longer than 300 ms");
  });

  test("a command that takes too much memory is ended: 137 and the reason", async () => {
    const result = await inProject("--memory", "64m", "--", "tail", "/dev/zero");
    expect(result.code).toBe(137);
    expect(result.stderr).toMatch(/memory/);
  });

  test("a command that writes too much is ended: 153, and exactly as much was let through", async () => {
    const result = await inProject("--output-max", "10k", "--", "yes");
    expect(result.code).toBe(153);
    expect(result.stdout.length).toBe(10_240);
  });

  test("the process limit holds", async () => {
    // Counted by the shell itself: a program that counts would not start any more.
    const count = "for i in $(seq 60); do sleep 60 & set -- /proc/[0-9]*; echo $#; done";
    const { code, text, stderr } = await inProject("--pids", "20", "--", "sh", "-c", count);
    expect(code).not.toBe(0);
    expect(stderr).toMatch(/fork|[Rr]esource/);
    const most = Math.max(...text.split("\n").filter(Boolean).map(Number));
    // Besides those of the command there are the guest's own, which do not count.
    expect(most).toBeGreaterThan(15);
    expect(most).toBeLessThanOrEqual(20 + 4);
  });

  test("root inside is only for those who allow it", async () => {
    const refused = await inProject("--user", "root", "--", "id", "-u");
    expect(refused.code).toBe(125);
    expect(refused.stderr).toMatch(/hint: /);
    expect((await inProject("--allow-root", "--user", "root", "--", "id", "-u")).text).toBe("0\n");
  });

  test.skipIf(!existsSync("/var/lib/dpkg/status"))("root inside installs a package with apt, and nothing of it is outside", async () => {
    const tree = join(project, "package");
    await mkdir(join(tree, "DEBIAN"), { recursive: true });
    await mkdir(join(tree, "usr/bin"), { recursive: true });
    const fields = [
      "Package: caisson-greeting",
      "Version: 1.0",
      "Architecture: all",
      "Maintainer: Ada <ada@example.com>",
      "Description: a test",
    ];
    await writeFile(join(tree, "DEBIAN/control"), `${fields.join("\n")}\n`);
    // What packages do when they are configured: make a user of their own.
    await writeFile(join(tree, "DEBIAN/postinst"), "#!/bin/sh\nset -e\nadduser --system --quiet --gecos Greeting caisson-greeting\n", {
      mode: 0o755,
    });
    await writeFile(join(tree, "usr/bin/caisson-greeting"), "#!/bin/sh\necho hello\n", { mode: 0o755 });
    execFileSync("dpkg-deb", ["--build", "--root-owner-group", tree, join(project, "greeting.deb")], { stdio: "ignore" });
    const script = "apt-get install -y ./greeting.deb && caisson-greeting && id -un caisson-greeting && dpkg-query -W caisson-greeting";
    const result = await inProject("--allow-root", "--user", "root", "--", "sh", "-c", script);
    expect(result, result.stderr).toMatchObject({ code: 0 });
    expect(result.text).toMatch(/\nhello\ncaisson-greeting\ncaisson-greeting\t1\.0\n$/);
    expect(existsSync("/usr/bin/caisson-greeting")).toBe(false);
    expect(existsSync("/var/lib/dpkg/info/caisson-greeting.list")).toBe(false);
  });

  test("files that changed inside and went with the sandbox are told of in one line, unless nobody wants to hear", async () => {
    const change = ["--", "sh", "-c", "mkdir made; touch made/a made/b; rm data.txt; mkdir __pycache__; touch __pycache__/x"];
    expect((await inProject(...change)).stderr).toBe("caisson: 3 files changed inside and dropped; -w .:rw keeps them\n");
    expect((await inProject("--quiet", ...change)).stderr).toBe("");
    expect((await inProject("--json", ...change)).stderr).toBe("");
    expect((await inProject("--", "true")).stderr).toBe("");
    expect((await inProject("--", "touch", "data.txt/x")).stderr).not.toContain("dropped");
  });

  test("--json prints events, output included, each of the contract, and only its own sandbox's", async () => {
    // Then a sandbox is made to see whether that works, before the one that was asked for.
    await rm(join(home(), "probes.json"));
    const result = await inProject("--json", "--", "sh", "-c", "echo hi; printf '\\377' >&2; exit 4");
    expect(result.code).toBe(4);
    const events = result.text
      .trimEnd()
      .split("\n")
      .map((line) => SandboxEvent.parse(JSON.parse(line)));
    expect(events.map((event) => event.type)).toEqual([
      "sandbox.created",
      "command.started",
      ...events.filter((event) => event.type === "command.output").map((event) => event.type),
      "command.ended",
      "sandbox.ended",
    ]);
    expect(new Set(events.map((event) => event.data.sandbox)).size).toBe(1);
    const bytes = events.flatMap((event) =>
      event.type === "command.output" ? [[event.data.stream, event.data.encoding, event.data.text]] : [],
    );
    expect(bytes).toContainEqual(["stdout", "utf8", "hi\n"]);
    expect(bytes).toContainEqual(["stderr", "base64", "/w=="]);
  });
});
