import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { copyFile, mkdir, mkdtempDisposable, rm, symlink, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { SandboxEvent } from "../../src/contract/event.ts";
import { expectNothingLeftAfterEach, useCaisson } from "./caisson-process.ts";
import { execIn, makeProject } from "./exec-project.ts";

const { run, start, sandboxes, base, home } = useCaisson();
expectNothingLeftAfterEach(sandboxes);

describe("caisson exec", () => {
  let project = "";
  beforeAll(async () => {
    project = await makeProject(base());
  });
  const inProject = execIn(run, () => project);

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
