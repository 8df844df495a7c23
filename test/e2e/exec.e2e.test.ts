import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { copyFile, mkdir, mkdtempDisposable, rm, symlink, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { SandboxEvent } from "../../src/contract/sandbox/sandbox-event.ts";
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

  test("runs in a sandbox, and does not change the folder outside", async () => {
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

  test("applies the size of /tmp and read-only and denied paths", async () => {
    const script = "head -c 8m /dev/zero >/tmp/x; echo x >>data.txt; ls -A /opt; df -k --output=size /tmp /dev/shm | tail -2";
    const options = ["--tmp", "4m", "--shm-size", "8m", "--read-only-path", "/workspace/data.txt", "--denied-path", "/opt"];
    const result = await inProject("--runtime", "oci", ...options, "--", "sh", "-c", script);
    expect(result.stderr).toMatch(/No space left on device/);
    expect(result.stderr).toMatch(/data\.txt: Read-only file system/);
    expect(result.text.split(/\s+/).filter((word) => word !== "")).toEqual(["4096", "8192"]);
  });

  test("separates stdout and stderr", async () => {
    const result = await inProject("--", "sh", "-c", "echo out; echo err >&2");
    expect(result.text).toBe("out\n");
    expect(result.stderr).toBe("err\n");
  });

  test.each([0, 1, 3, 255])("returns the command's exit code %d", async (code) => {
    expect((await inProject("--", "sh", "-c", `exit ${code}`)).code).toBe(code);
  });

  test("exits with 128 plus the signal's number", async () => {
    expect((await inProject("--", "sh", "-c", "kill -TERM $$")).code).toBe(143);
    expect((await inProject("--", "sh", "-c", "kill -KILL $$")).code).toBe(137);
  });

  test("passes 10 MB through stdin and stdout unchanged", async () => {
    const bytes = randomBytes(10_000_000);
    const result = await run(["exec", "--", "cat"], { cwd: project, input: bytes });
    expect(result.code).toBe(0);
    expect(result.stdout.equals(bytes)).toBe(true);
  });

  test("does not wait for an open, silent stdin", async () => {
    const { child, finished } = start(["exec", "--", "echo", "done"], { cwd: project });
    const result = await finished;
    child.stdin?.destroy();
    expect(result).toMatchObject({ code: 0, text: "done\n" });
  });

  test("closes the command's stdin if its own is closed", async () => {
    expect((await inProject("--", "cat")).code).toBe(0);
  });

  test("ends the command when its reader closes", async () => {
    const { child, finished } = start(["exec", "--", "yes"], { cwd: project });
    child.stdout?.once("data", () => child.stdout?.destroy());
    expect((await finished).code).toBe(141);
  });

  test("passes variables, the folder and arguments unchanged", async () => {
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

  test("finds programs where their installers put them, and can install more", async () => {
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

  test("ends a command that runs too long with 124 and the reason", async () => {
    const result = await inProject("--timeout", "300ms", "--", "sleep", "60");
    expect(result.code).toBe(124);
    expect(result.stderr).toContain("longer than 300 ms");
  });

  test("ends a command that uses too much memory with 137 and the reason", async () => {
    const result = await inProject("--memory", "64m", "--", "tail", "/dev/zero");
    expect(result.code).toBe(137);
    expect(result.stderr).toMatch(/memory/);
  });

  test("ends a command that writes too much with 153, after exactly the limit", async () => {
    const result = await inProject("--output-max", "10k", "--", "yes");
    expect(result.code).toBe(153);
    expect(result.stdout.length).toBe(10_240);
  });

  test("enforces the process limit", async () => {
    // The shell itself counts, because a separate program could not start.
    const count = "for i in $(seq 60); do sleep 60 & set -- /proc/[0-9]*; echo $#; done";
    const { code, text, stderr } = await inProject("--pids", "20", "--", "sh", "-c", count);
    expect(code).not.toBe(0);
    expect(stderr).toMatch(/fork|[Rr]esource/);
    const most = Math.max(...text.split("\n").filter(Boolean).map(Number));
    // The processes of the guest are visible too, but do not count.
    expect(most).toBeGreaterThan(15);
    expect(most).toBeLessThanOrEqual(20 + 4);
  });

  test("allows root inside only with --allow-root", async () => {
    const refused = await inProject("--user", "root", "--", "id", "-u");
    expect(refused.code).toBe(125);
    expect(refused.stderr).toMatch(/hint: /);
    expect((await inProject("--allow-root", "--user", "root", "--", "id", "-u")).text).toBe("0\n");
  });

  test.skipIf(!existsSync("/var/lib/dpkg/status"))("installs a package with apt as root inside, and nothing of it outside", async () => {
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
    // Packages often do this when they are configured: create a user.
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

  test("prints only the events of its sandbox, including output, with --json", async () => {
    // Without this file, a sandbox is first created to probe the runtime; its events must not appear.
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
