// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the variables of a Dockerfile.
import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { type FixtureImage, writeLayout } from "../../src/runtimes/oci/template/image-fixture.ts";
import { type FixtureEntry, tarOf } from "../../src/sandbox/tar/testing-tar.ts";
import { useTemplateProjects } from "../support/template-projects.ts";
import { expectNothingLeftAfterEach, useCaisson } from "./caisson-process.ts";

const caisson = useCaisson();
const { run, home, base, sandboxes } = caisson;
const { project, build, inside } = useTemplateProjects(caisson);
expectNothingLeftAfterEach(sandboxes);

const snapshots = () => readdirSync(join(home(), "snapshots"), { withFileTypes: true }).filter(({ name }) => name.startsWith("sn_")).length;
const archive = (...entries: FixtureEntry[]) => ({ Dockerfile: "FROM host\nADD a.tar /x", "a.tar": tarOf(entries) });
const big = "v".repeat(100_000);

describe("a hostile project is refused, and leaves nothing behind", () => {
  test.each<[what: string, files: Record<string, string | Buffer>, message: RegExp]>([
    ["labels that expand", { Dockerfile: `FROM host\nENV A=${big}\nLABEL ${"x=$A ".repeat(5_000)}` }, /Dockerfile line 3: .* too long/],
    [
      "ports that expand",
      { Dockerfile: `FROM host\nENV A="${"1 ".repeat(50_000)}"\nEXPOSE ${"$A ".repeat(5_000)}` },
      /line 3: .* too long/,
    ],
    ["quotes that expand", { Dockerfile: `FROM host\nENV A=${big}\nENV B="${"$A".repeat(100_000)}"` }, /line 3: .* too long/],
    [
      "a million lines",
      { Dockerfile: `FROM host\n${"\n".repeat(1_000_000)}RUN true` },
      /Dockerfile line 1: the file has more than 20000 lines/,
    ],
    ["a million instructions", { Dockerfile: `FROM host\n${"ENV A=1\n".repeat(19_000)}` }, /more than 1000 instructions/],
    ["NUL in the file", { Dockerfile: "FROM host\nRUN echo \0" }, /the file contains NUL/],
    [
      "many sources",
      { Dockerfile: `FROM host\nCOPY ${"a ".repeat(20_000)} /x/`, a: "a" },
      /line 2: the instruction has more than 10000 sources/,
    ],
    ["a hard link out of its folder", archive({ name: "l", type: "1", link: "../../etc/passwd" }), /line 2: .*the name contains \.\./],
    ["an absolute hard link", archive({ name: "l", type: "1", link: "/etc/passwd" }), /line 2: .*l/],
    ["an archive with a FIFO", archive({ name: "p", type: "6" }), /line 2: .*"p", which is a fifo/],
    ["a sparse file", archive({ name: "s", type: "S" }), /line 2: .*sparse/],
    ["a huge name", archive({ name: "n", content: "x", pax: { path: "n/".repeat(5_000) } }), /line 2: .*longer than 4095 bytes/],
    [
      "an entry of many GiB",
      archive({ name: "b", size: 2 ** 33 - 1 }, { name: "c", size: 2 ** 33 - 1 }),
      /line 2: .*(?:ends too early|more than)/,
    ],
    [
      "an archive in an archive that ends too early",
      { Dockerfile: "FROM host\nADD a.tgz /x", "a.tgz": gzipSync(tarOf([{ name: "f", content: "x".repeat(5_000) }])).subarray(0, 60) },
      /line 2: .*(?:gzip|archive)/,
    ],
    [
      "a device of a stage",
      { Dockerfile: "FROM host AS a\nFROM host\nCOPY --from=a /dev/zero /z" },
      /line 3: \/dev\/zero is neither a file nor a folder/,
    ],
    [
      "a link in a circle",
      { Dockerfile: "FROM host AS a\nRUN ln -s l /l\nFROM host\nCOPY --from=a /l /z" },
      /line 4: \/l is a link in a circle/,
    ],
    [
      "a rule that is no pattern",
      { Dockerfile: "FROM host\nCOPY . /x", ".dockerignore": "[" },
      /\.dockerignore has a rule that is not a pattern/,
    ],
    [
      "a feature outside of the project",
      { ".devcontainer/devcontainer.json": '{ "image": "host", "features": { "../../tool": {} } }' },
      /"\.\.\/tool" leaves the context/,
    ],
    [
      "options that nest deeply",
      {
        ".devcontainer/devcontainer.json": `{ "image": "host", "features": { "./tool": { "a": ${"[".repeat(100_000)}${"]".repeat(100_000)} } } }`,
        ".devcontainer/tool/devcontainer-feature.json": "{}",
      },
      /the options of the feature "\.\/tool" are not texts or booleans/,
    ],
  ])("for %s", { timeout: 60_000 }, async (_what, files, message) => {
    await build(project({ Dockerfile: "FROM scratch\nCOPY a /a", a: "a" }));
    const before = snapshots();
    const { code, stderr, events } = await build(project(files), "--name", "hostile");
    expect(code).toBe(125);
    expect(stderr).toMatch(message);
    expect(events.filter((event) => "template" in event)).toEqual([]);
    expect(snapshots() - before).toBeLessThanOrEqual(1);
    expect((await run(["template", "ls"])).text).not.toContain("hostile");
  });
});

test("sockets, FIFOs and devices of the context are left out by name", async () => {
  const folder = project({ Dockerfile: "FROM host\nCOPY . /context/\nRUN ls /context", a: "a" });
  execFileSync("mkfifo", [join(folder, "pipe")]);
  if (process.getuid?.() === 0) execFileSync("mknod", [join(folder, "disk"), "c", "1", "5"]);
  await using server = createServer().listen(join(folder, "socket"));
  await new Promise((resolve) => server.once("listening", resolve));
  const { code, stderr, output, events } = await build(folder);
  expect(code, stderr).toBe(0);
  expect(output).toBe("Dockerfile\na\n");
  const notices = events.flatMap((event) => ("notice" in event ? [event.notice] : []));
  expect(notices).toContain('line 2: "pipe" is a FIFO, which cannot be copied');
  expect(notices).toContain('line 2: "socket" is a socket, which cannot be copied');
});

test("rules with many wildcards are matched in bounded time", async () => {
  const rules = `${"**/*a*a*a*a*a*a*a*a*a*b\n".repeat(300)}${"**/".repeat(1_000)}x`;
  const folder = project({
    Dockerfile: "FROM scratch\nCOPY . /x",
    ".dockerignore": rules,
    ...Object.fromEntries(Array.from({ length: 50 }, (_, at) => [`d/${"a".repeat(200)}/${"a".repeat(200)}${at}`, "x"])),
  });
  const { code, stderr } = await build(folder);
  expect(code, stderr).toBe(0);
});

test("terminal codes in names, instructions and output are escaped", async () => {
  const folder = project({ Dockerfile: "FROM host\nRUN printf '\\033[31mred\\r'; echo '\x1b]0;title\x07'\nCOPY \x1b]0;gone /x" });
  const { code, stderr, text } = await run(["template", "build", folder]);
  expect(code).toBe(125);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they must not be printed.
  expect(stderr + text).not.toMatch(/[\x00-\x08\x0b-\x1f\x7f]/);
  expect(stderr).toContain("\\x1b[31mred");
  expect(stderr).toMatch(/Dockerfile line 3: the context has no "\\u001b\]0;gone"/);
});

test("files inside that are replaced by FIFOs do not stop a build", async () => {
  const folder = project({
    Dockerfile:
      "FROM host\nRUN rm /etc/passwd /etc/group && mkfifo /etc/passwd /etc/group /top\nUSER 7:8\nRUN id -u; id -g\nCOPY --chown=7 a /a",
    a: "a",
  });
  const { code, stderr, output } = await build(folder, "--name", "pipes");
  expect(code, stderr).toBe(0);
  expect(output).toBe("7\n8\n");
  const copied = await build(project({ Dockerfile: "FROM pipes AS a\nFROM host\nCOPY --from=a /etc /copied\nRUN ls -A /copied | wc -l" }));
  expect(copied.code, copied.stderr).toBe(0);
});

test("links of a stage resolve inside of it", async () => {
  const folder = project({
    Dockerfile:
      "FROM host AS a\nRUN mkdir -p /real && echo inside > /real/f && ln -s /real /link && ln -s ../../../../../real/f /up\nFROM host\nCOPY --from=a /link /one\nCOPY --from=a /up /two\nRUN cat /one/f /two; test ! -L /two",
  });
  const { code, stderr, output } = await build(folder);
  expect(code, stderr).toBe(0);
  expect(output).toBe("inside\ninside\n");
});

test("ADD does not unpack inner archives, and absolute names stay below its target", async () => {
  const inner = gzipSync(tarOf([{ name: "deep", content: "x" }]));
  const folder = project({
    Dockerfile: "FROM host\nADD a.tgz /x/\nRUN cd /x && find . -type f | sort",
    "a.tgz": gzipSync(
      tarOf([
        { name: "/etc/absolute", content: "x" },
        { name: "inner.tgz", content: inner },
      ]),
    ),
  });
  const { code, stderr, output } = await build(folder);
  expect(code, stderr).toBe(0);
  expect(output).toBe("./etc/absolute\n./inner.tgz\n");
});

test("errors name the file and the line, also for programs", async () => {
  const folder = project({ "docker/App.dockerfile": "FROM host\n\nCOPY missing /x" });
  const { code, text } = await run(["template", "build", folder, "-f", join(folder, "docker/App.dockerfile"), "--json"]);
  expect(code).toBe(125);
  expect(JSON.parse(text.trim().split("\n").at(-1) ?? "")).toMatchObject({
    error: { message: 'docker/App.dockerfile line 3: the context has no "missing"', details: { file: "docker/App.dockerfile", line: 3 } },
  });
  const container = project({ ".devcontainer.json": '{ "image": "host", "postCreateCommand": "exit 4" }' });
  expect((await build(container)).stderr).toContain(".devcontainer.json: postCreateCommand exit 4 failed with exit code 4");
});

const image = (content: string): FixtureImage => ({
  layers: [
    [
      { name: "bin/", type: "5" },
      { name: "content", content },
    ],
  ],
});

describe("an OCI layout", () => {
  const layoutAt = (name: string, fixture: FixtureImage) => {
    const folder = join(base(), name);
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    writeLayout(folder, [fixture]);
    return folder;
  };
  const contentOf = async (template: string) => {
    const folder = join(base(), `content-${template}`);
    expect(await run(["template", "export", template, folder])).toMatchObject({ code: 0 });
    const blobs = readdirSync(join(folder, "blobs/sha256")).map((name) =>
      execFileSync("cat", [join(folder, "blobs/sha256", name)]).toString("latin1"),
    );
    rmSync(folder, { recursive: true });
    return blobs.join("");
  };

  test("that changes at its path is read again", async () => {
    const folder = layoutAt("changing", image("first-content"));
    expect(await run(["template", "import", folder, "--name", "changing"])).toMatchObject({ code: 0 });
    const from = project({ Dockerfile: "FROM mine\nCOPY a /a", a: "a" });
    const first = await build(from, "--base", `mine=${folder}`, "--name", "from");
    layoutAt("changing", image("second-content"));
    expect(await run(["template", "import", folder, "--name", "changing"])).toMatchObject({ code: 0 });
    expect(await contentOf("changing")).toContain("second-content");
    const second = await build(from, "--base", `mine=${folder}`, "--name", "from");
    expect([first.steps, second.steps]).toEqual([["started COPY a /a"], ["started COPY a /a"]]);
    expect((await build(from, "--base", `mine=${folder}`)).steps).toEqual(["cached COPY a /a"]);
  });

  test.each<[what: string, spoil: (folder: string) => void, message: RegExp]>([
    [
      "with a FIFO as its index",
      (folder) => [rmSync(join(folder, "index.json")), execFileSync("mkfifo", [join(folder, "index.json")])],
      /./,
    ],
    [
      "with a link as its index",
      (folder) => [rmSync(join(folder, "index.json")), symlinkSync("/etc/passwd", join(folder, "index.json"))],
      /./,
    ],
    [
      "with an index that nests deeply",
      (folder) => writeFileSync(join(folder, "index.json"), `{"manifests":${"[".repeat(1_000_000)}`),
      /not JSON|unexpected format/,
    ],
    ["with a damaged part", (folder) => spoilBlobs(folder), /damaged|size|digest|not/],
    ["that climbs", (folder) => void writeLayout(folder, [{ layers: [[{ name: "../../up", content: "x" }]] }]), /\.\./],
  ])("%s is refused, from the command line and from a Dockerfile", async (_what, spoil, message) => {
    const context = project({ Dockerfile: "FROM oci:./layout\nCOPY Dockerfile /x" });
    const folder = join(context, "layout");
    writeLayout(folder, [image("x")]);
    rmSync(join(folder, "blobs"), { recursive: true });
    writeLayout(folder, [image("x")]);
    spoil(folder);
    const imported = await run(["template", "import", folder, "--name", "spoiled"]);
    expect(imported).toMatchObject({ code: 125, stderr: expect.stringMatching(message) });
    const built = await build(context, "--name", "spoiled");
    expect(built.code).toBe(125);
    expect(built.stderr).toMatch(/Dockerfile line 1: /);
    expect((await run(["template", "ls"])).text).not.toContain("spoiled");
  });
});

/** Gives every part of a layout other content. */
function spoilBlobs(folder: string): void {
  for (const name of readdirSync(join(folder, "blobs/sha256"))) writeFileSync(join(folder, "blobs/sha256", name), "{}");
}

test("a stage inherits the arguments and SHELL of the stage that it starts from", async () => {
  const folder = project({
    Dockerfile:
      'FROM host AS a\nARG WORD=one\nSHELL ["/bin/bash", "-c"]\nFROM a\nRUN [[ $WORD == one ]] && echo "$WORD ${BASH_VERSION:+bash}"',
  });
  expect((await build(folder)).output).toBe("one bash\n");
});

test("USER has the group that the tables or the instruction name", async () => {
  const dockerfile =
    "FROM host\nRUN useradd -u 1234 -g 100 app\nUSER app\nRUN id -u; id -g\nUSER 55:66\nRUN id -u; id -g; touch /tmp/f; stat -c %u:%g /tmp/f";
  const { code, stderr, output } = await build(project({ Dockerfile: dockerfile }), "--name", "users");
  expect(code, stderr).toBe(0);
  expect(output).toBe("1234\n100\n55\n66\n55:66\n");
  expect(await inside("users", "id -u")).toBe("1000\n");
});
