// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the variables of a Dockerfile.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { beforeAll, describe, expect, test } from "vitest";
import type { BuildEvent } from "../../src/contract/template/template-verbs.ts";
import { createCaisson, runCommand } from "../../src/index.ts";
import { debianHost } from "../../src/network/mirror/registries/debian.ts";
import { tarOf } from "../../src/sandbox/tar/testing-tar.ts";
import { writeDebianArchive } from "../support/debian-archive.ts";
import { startRegistryServer } from "../support/network/registries/registry-server.ts";
import { isThroughStation } from "../support/station-modes.ts";
import { useTemplateProjects } from "../support/template-projects.ts";
import { expectNothingLeftAfterEach, tracesOf, until, useCaisson } from "./caisson-process.ts";

const caisson = useCaisson();
const { run, start, home, sandboxes } = caisson;
const { project, build, inside } = useTemplateProjects(caisson);
expectNothingLeftAfterEach(sandboxes);

/** Returns every file below a folder, with its kind. */
function filesBelow(folder: string): { path: string; isSocket: boolean; isFile: boolean }[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true }).map((entry) => ({
    path: join(entry.parentPath, entry.name),
    isSocket: entry.isSocket(),
    isFile: entry.isFile(),
  }));
}
const snapshots = () => readdirSync(join(home(), "snapshots")).filter((name) => name.startsWith("sn_"));

describe("a project with several stages", () => {
  const dockerfile = `FROM host AS deps
RUN rm -rf /etc/apt/sources.list.d/* && echo 'deb [trusted=yes] http://${debianHost}/debian stable main' > /etc/apt/sources.list
RUN apt-get update && apt-get install -y caisson-tool
WORKDIR /app
COPY package.json ./
RUN npm install --no-audit --no-fund
FROM deps AS unused
RUN exit 1
FROM deps
ENV GREETING="hello world"
COPY --chmod=755 src/ bin/
RUN echo "$GREETING" > greeting
`;
  let folder: string;
  beforeAll(() => {
    folder = project({
      Dockerfile: dockerfile,
      "package.json": JSON.stringify({ name: "x", version: "1.0.0", dependencies: { "@caisson/scoped": "^2.0.0" } }),
      "src/tool.sh": "#!/bin/sh\ncat /app/greeting\n",
    });
  });

  test("installs from apt and npm through the mirrors, and is used by a run offline", async () => {
    await using registry = await startRegistryServer();
    mkdirSync(home(), { recursive: true });
    writeFileSync(join(home(), "config.json"), JSON.stringify({ network: { registries: registry.upstreams } }));
    const first = await build(folder, "--name", "app", "--network", "registries");
    expect(first.code, first.stderr + first.output).toBe(0);
    expect(first.steps).toHaveLength(6);
    expect(registry.requests().length).toBeGreaterThan(0);
    await registry.stop();

    // Unchanged: nothing runs, and no registry is needed.
    const again = await build(folder, "--name", "app", "--network", "registries");
    expect(again.steps).toEqual(first.steps.map((step) => step.replace("started", "cached")));
    expect(again.events.at(-1)).toEqual(first.events.at(-1));
    expect(await inside("app", "caisson-tool; cat /app/node_modules/caisson-left/index.js; /app/bin/tool.sh; echo $GREETING")).toBe(
      'caisson-tool 1.0\nmodule.exports = "caisson-left 1.1.0";\nhello world\nhello world\n',
    );
    // A run uses it, and the same run works again without the registry and without a network.
    for (const network of [["--network", "registries"], []]) {
      const script = join(caisson.base(), `script-${network.length}.json`);
      const call = {
        tool: "bash",
        arguments: { command: "caisson-tool; /app/bin/tool.sh; node -p 'require(\"/app/node_modules/caisson-left\")'" },
      };
      writeFileSync(script, JSON.stringify({ turns: [{ calls: [call] }, { say: "Done.", expect: { news: ["caisson-left 1.1.0"] } }] }));
      const ran = await run(["run", "Use the tool.", "--model", `scripted:${script}`, "--template", "app", "--no-workspace", ...network]);
      expect(ran.code, ran.stderr).toBe(0);
      expect(ran.text).toContain("caisson-tool 1.0");
    }
  });

  test("runs only what follows a changed line", async () => {
    writeFileSync(join(folder, "Dockerfile"), dockerfile.replace('"$GREETING"', '"changed"'));
    const { steps, code } = await build(folder, "--name", "app", "--network", "registries");
    expect(code).toBe(0);
    expect(steps.map((step) => step.split(" ")[0])).toEqual([...Array(5).fill("cached"), "started"]);
    writeFileSync(join(folder, "src/tool.sh"), "#!/bin/sh\necho other\n");
    const changed = await build(folder, "--name", "app", "--network", "registries");
    expect(changed.steps.map((step) => step.split(" ")[0])).toEqual([...Array(4).fill("cached"), "started", "started"]);
  });

  test("contains no certificate, key, token or socket of its sandboxes", () => {
    const files = [...filesBelow(join(home(), "snapshots")), ...filesBelow(join(home(), "layers"))];
    expect(files.filter(({ isSocket }) => isSocket)).toEqual([]);
    const texts = files.filter(({ isFile, path }) => isFile && !/(?:snapshot|layer)\.json$|\/references\//.test(path));
    expect(texts.length).toBeGreaterThan(10);
    for (const { path } of texts) {
      const text = readFileSync(path, "latin1");
      expect(text.includes("BEGIN CERTIFICATE") || text.includes("PRIVATE KEY") || /\bsbt_[a-z2-7]{12}/.test(text), path).toBe(false);
      expect(/127\.0\.0\.1:1908\d/.test(text), path).toBe(false);
    }
  });
});

describe("the commands", () => {
  test("list, show, tag and remove templates, and protect their files", async () => {
    const folder = project({ Dockerfile: 'FROM scratch\nCOPY a /a\nLABEL x=y\nCMD ["/a"]\nHEALTHCHECK NONE', a: "a" });
    expect((await build(folder, "--name", "small")).code).toBe(0);
    const [template] = JSON.parse((await run(["template", "ls", "--json"])).text).filter(({ names }: { names: string[] }) =>
      names.includes("small"),
    );
    expect(template).toMatchObject({ kind: "dockerfile", config: { command: ["/a"], labels: { x: "y" } } });
    expect((await run(["template", "show", "small"])).text).toMatch(/left out +line 5: HEALTHCHECK has no effect/);
    expect(await run(["template", "tag", "small", "small:v2"])).toMatchObject({ code: 0 });
    expect((await run(["snapshot", "ls"])).text).not.toContain(template.snapshot);
    expect(await run(["snapshot", "rm", template.snapshot])).toMatchObject({
      code: 125,
      stderr: expect.stringContaining("caisson template rm"),
    });
    expect(await run(["template", "rm", "small"])).toMatchObject({ code: 0, stderr: "" });
    await until("a second has passed since the build", () => Date.now() - Date.parse(template.createdAt) > 1_500);
    await run(["prune", "--older-than", "1s", "--yes"]);
    expect(snapshots()).toContain(template.snapshot);
    expect(await run(["template", "rm", template.id])).toMatchObject({ code: 0 });
    const pruned = JSON.parse((await run(["prune", "--older-than", "1s", "--yes", "--json"])).text);
    expect(pruned.things).toContainEqual(expect.objectContaining({ kind: "build", name: "COPY a /a" }));
    expect(snapshots()).not.toContain(template.snapshot);
    expect(await run(["exec", "--template", "small", "--", "/a"])).toMatchObject({
      code: 125,
      stderr: expect.stringContaining("no template small"),
    });
  });

  test("export an OCI layout that can be imported, with the owners of files", async () => {
    const folder = project({
      Dockerfile:
        "FROM host AS build\nRUN mkdir /data && echo x > /data/x && chown 33:33 /data/x && ln -s x /data/link\nFROM scratch\nCOPY --from=build /bin/busybox /bin/\nCOPY --from=build /bin/busybox /bin/sh\nCOPY --from=build --chown=33:33 /data /data\nENV A=b\nWORKDIR /data",
    });
    const made = await build(folder, "--name", "exported");
    expect(made.code, made.stderr).toBe(0);
    const archive = join(caisson.base(), "exported.tar");
    const layout = join(caisson.base(), "layout");
    expect(await run(["template", "export", "exported", archive])).toMatchObject({ code: 0 });
    expect(await run(["template", "export", "exported", layout])).toMatchObject({ code: 0 });
    expect(readdirSync(layout).sort()).toEqual(["blobs", "index.json", "oci-layout"]);
    for (const image of [`oci-archive:${archive}`, layout]) {
      const imported = await run(["template", "import", image, "--name", "imported", "--quiet"]);
      expect(imported.code, imported.stderr).toBe(0);
      const script = "busybox stat -c '%u %N' x link; echo $A";
      const { text } = await run(["exec", "--template", "imported", "--no-workspace", "--cwd", "/data", "--", "/bin/sh", "-c", script]);
      expect(text).toMatch(/^33 '?x'?\n33 '?link'? -> '?x'?\nb\n$/);
    }
    expect(JSON.parse((await run(["template", "show", "imported", "--json"])).text)).toMatchObject({
      kind: "image",
      config: { workdir: "/data" },
    });
  });
});

describe("instructions", () => {
  test("COPY and ADD place files, owners and modes as Docker does", async () => {
    const folder = project({
      Dockerfile: `FROM host
COPY a.txt /one/file
COPY a.txt b.txt /two/
COPY sub /three
COPY *.txt /four/
COPY --chown=www-data:33 --chmod=640 a.txt /five
COPY a.txt /two
ADD files.tar /six
ADD files.tar.gz /seven/
COPY files.tar /eight/
USER www-data
WORKDIR /home/user
RUN id -un > /tmp/who; echo $HOME >> /tmp/who
USER root
RUN cat /tmp/who > /who; rm /tmp/who
`,
      ...{ "a.txt": "a", "b.txt": "b", "sub/x": "x", "sub/deep/y": "y" },
      "files.tar": tarOf([
        { name: "d/", type: "5" },
        { name: "d/f", content: "f", uid: 7, gid: 8 },
      ]),
      "files.tar.gz": gzipSync(tarOf([{ name: "g", content: "g" }])),
    });
    const { code, stderr } = await build(folder, "--name", "copied");
    expect(code, stderr).toBe(0);
    const script = "cd /; find one two three four six seven eight -type f | sort; stat -c '%u:%g %a' five six/d/f; head -1 who; ls -A /tmp";
    expect(await inside("copied", script)).toBe(
      "eight/files.tar\nfour/a.txt\nfour/b.txt\none/file\nseven/g\nsix/d/f\nthree/deep/y\nthree/x\ntwo/a.txt\ntwo/b.txt\n33:33 640\n7:8 644\nwww-data\n",
    );
  });

  test("ADD fetches a URL only with a network that allows it", async () => {
    const folder = project({ Dockerfile: "FROM host\nADD http://example.com/x /x" });
    const { code, stderr } = await build(folder);
    expect(code).toBe(125);
    expect(stderr).toMatch(/line 2: http:\/\/example\.com\/x is not fetched: the build has no network\nhint: Allow its host/);
    const denied = await build(folder, "--network", "other.example");
    expect(denied.stderr).toMatch(/line 2: ADD http:\/\/example\.com\/x \/x failed with exit code/);
  });

  test("FROM takes a template, and a named image of the machine", async () => {
    const base = project({ Dockerfile: "FROM host\nENV A=1\nRUN echo base > /base" });
    expect((await build(base, "--name", "base:1")).code).toBe(0);
    const next = project({ Dockerfile: "ARG TAG\nFROM base:${TAG}\nRUN cat /base && echo $A" });
    const built = await build(next, "--build-arg", "TAG=1");
    expect(built.output, built.stderr).toBe("base\n1\n");
    const layout = join(caisson.base(), "base-layout");
    await build(project({ Dockerfile: "FROM scratch\nCOPY b /b", b: "b" }), "--name", "plain");
    await run(["template", "export", "plain", layout]);
    const named = project({ Dockerfile: "FROM mine\nCOPY a /a", a: "a" });
    expect((await build(named, "--base", `mine=${layout}`, "--name", "named")).code).toBe(0);
    expect(await build(named)).toMatchObject({ code: 125 });
  });
});

test.skipIf(!existsSync("/usr/bin/mmdebstrap"))("a Debian system becomes a template", async () => {
  const archive = join(caisson.base(), "archive");
  mkdirSync(archive);
  const { mirror, suite } = writeDebianArchive(archive);
  const options = ["--variant", "extract", "--suite", suite, "--mirror", mirror, "--include", "tiny"];
  const { code, stderr, events } = await build("debian", ...options, "--name", "lab");
  expect(code, stderr).toBe(0);
  expect(events.at(-1)).toMatchObject({ template: { kind: "image", names: ["lab"] } });
  expect((await run(["exec", "--template", "lab", "--no-workspace", "--", "/bin/sh", "-c", "ls /bin"])).text).toBe(
    "busybox\ncat\nid\nls\nsh\n",
  );
  expect(await build(project({ Dockerfile: "FROM host" }), "--suite", "x")).toMatchObject({ code: 125 });
});

test("a program builds a template and starts a sandbox from it", async () => {
  const folder = project({ Dockerfile: "FROM host\nENV A=1\nCOPY file /file", file: "content" });
  await using library = createCaisson({ stateDir: join(caisson.base(), "library") });
  const events: BuildEvent[] = [];
  const template = await library.buildTemplate({ context: folder, name: "lib" }, { onEvent: (event) => events.push(event) });
  expect(template.names).toEqual(["lib"]);
  expect(events).toContainEqual({ step: { stage: "0", line: 3, text: "COPY file /file", state: "ended" } });
  await using sandbox = await library.create({}, { template: "lib" });
  expect((await runCommand(sandbox, { argv: ["sh", "-c", "cat /file; echo $A"] })).stdout).toBe("content1\n");
  await expect(library.create({}, { template: "other" })).rejects.toMatchObject({ code: "not_found" });
});

describe("a devcontainer.json", () => {
  test("builds its image, local features and commands, and names what it leaves out", async () => {
    const folder = project({
      ".devcontainer/devcontainer.json": `{
        // The project's own container.
        "name": "x", "build": { "dockerfile": "Dockerfile", "context": "..", "args": { "WORD": "given" } },
        "features": { "./tool": { "version": "3" } },
        "containerEnv": { "ONE": "1" }, "remoteEnv": { "BOTH": "\${containerEnv:ONE} \${containerEnv:WORD_ENV}" },
        "remoteUser": "www-data",
        "postCreateCommand": "cp project.txt /tmp/; id -un > /opt/by",
        "forwardPorts": [80],
      }`,
      ".devcontainer/Dockerfile":
        "FROM host\nARG WORD=none\nENV WORD_ENV=$WORD\nCOPY project.txt /from-context\nRUN mkdir -p /opt && chmod 777 /opt",
      ".devcontainer/tool/devcontainer-feature.json":
        '{ "id": "tool", "options": { "version": { "default": "1" }, "color": { "default": "red" } } }',
      ".devcontainer/tool/install.sh": '#!/bin/sh\necho "$VERSION $COLOR $_REMOTE_USER $(id -u)" > /opt/tool\n',
      "project.txt": "project",
    });
    const { code, stderr, events } = await build(folder, "--name", "dev");
    expect(code, stderr).toBe(0);
    expect(events).toContainEqual({ notice: '"forwardPorts" in .devcontainer/devcontainer.json has no effect' });
    expect(await inside("dev", "cat /opt/tool /opt/by /from-context; echo; cat /workspace/project.txt; echo; echo $BOTH")).toBe(
      "3 red www-data 0\nwww-data\nproject\nproject\n1 given\n",
    );
  });

  test("refuses features from elsewhere by name", async () => {
    const folder = project({ ".devcontainer.json": '{ "image": "host", "features": { "ghcr.io/devcontainers/features/node:1": {} } }' });
    const { code, stderr } = await build(folder);
    expect(code).toBe(125);
    expect(stderr).toContain('the feature "ghcr.io/devcontainers/features/node:1" is not a folder of the project');
  });
});

describe("a hostile project", () => {
  test.each<[what: string, files: Record<string, string | Buffer>, message: RegExp]>([
    ["a path out of the context", { Dockerfile: "FROM host\nCOPY ../../etc/passwd /x" }, /leaves the context/],
    ["an image by a path of the machine", { Dockerfile: "FROM oci:/var" }, /is a path of the machine/],
    ["a stage of itself", { Dockerfile: "FROM host AS a\nCOPY --from=a /x /y" }, /not an image|no skopeo|cannot|not fetch|registry|a:/],
    ["an unknown stage number", { Dockerfile: "FROM host\nCOPY --from=7 /x /y" }, /there is no stage 7/],
    ["a secret mount", { Dockerfile: "FROM host\nRUN --mount=type=secret,id=x cat /run/secrets/x" }, /type=secret is not supported/],
    ["the host's network", { Dockerfile: "FROM host\nRUN --network=host true" }, /--network=host is not supported/],
    ["an archive with a device", { Dockerfile: "FROM host\nADD a.tar /x", "a.tar": tarOf([{ name: "null", type: "3" }]) }, /is a device/],
    [
      "an archive that climbs",
      { Dockerfile: "FROM host\nADD a.tar /x", "a.tar": tarOf([{ name: "../up", content: "x" }]) },
      /contains \.\./,
    ],
    [
      "an archive that writes through a link",
      {
        Dockerfile: "FROM host\nADD a.tar /x",
        "a.tar": tarOf([
          { name: "l", type: "2", link: "/etc" },
          { name: "l/y", content: "x" },
        ]),
      },
      /l/,
    ],
    [
      "an archive that promises more than it has",
      { Dockerfile: "FROM host\nADD a.tar /x", "a.tar": tarOf([{ name: "big", content: "x", size: 2 ** 32 }], { end: false }) },
      /truncated|ended|incomplete|end/,
    ],
    ["a command that fails", { Dockerfile: "FROM host\nRUN exit 3" }, /line 2: RUN exit 3 failed with exit code 3/],
    ["a shell that does not exist", { Dockerfile: "FROM scratch\nRUN x" }, /line 2: RUN x: /],
    ["a user that does not exist", { Dockerfile: "FROM host\nUSER nobody-here\nRUN x" }, /there is no user "nobody-here" inside/],
  ])("is refused for %s, and leaves nothing behind", async (_what, files, message) => {
    const before = snapshots();
    const { code, stderr, events } = await build(project(files), "--name", "hostile");
    expect(code).toBe(125);
    expect(stderr).toMatch(message);
    expect(events.filter((event) => "template" in event)).toEqual([]);
    expect(snapshots()).toEqual(before);
    expect((await run(["template", "ls"])).text).not.toContain("hostile");
  });

  test("cannot reach the machine's files through links of the context", async () => {
    const folder = project({ Dockerfile: "FROM host\nCOPY . /context\nRUN cat /context/link || true", a: "a" });
    const outside = join(caisson.base(), "outside-secret");
    writeFileSync(outside, "outside");
    symlinkSync(outside, join(folder, "link"));
    const { output, code, stderr } = await build(folder);
    expect(code, stderr).toBe(0);
    expect(output).not.toContain("outside\n");
    expect(output).toMatch(/No such file/);
  });
});

describe("a build that is killed", () => {
  test("leaves finished steps in the cache, and nothing else", async ({ skip }) => {
    skip(isThroughStation, "the station builds, so killing the command only ends the stream");
    const folder = project({ Dockerfile: "FROM host\nRUN echo first > /first\nRUN echo begun; sleep 1000" });
    const before = snapshots();
    const { child, finished } = start(["template", "build", folder, "--name", "killed", "--json"]);
    let text = "";
    child.stdout?.on("data", (piece: Buffer) => {
      text += piece.toString();
    });
    await until("the second step runs", () => text.includes('"output":"begun'));
    const [id = ""] = sandboxes();
    child.kill("SIGKILL");
    await finished;
    expect((await run(["template", "ls"])).text).not.toContain("killed");
    await run(["sandbox", "ls"]);
    expect(sandboxes()).toEqual([]);
    expect(tracesOf(id)).toEqual([]);
    writeFileSync(join(folder, "Dockerfile"), "FROM host\nRUN echo first > /first\nRUN echo second > /second");
    const again = await build(folder);
    expect(again.steps).toEqual(["cached RUN echo first > /first", "started RUN echo second > /second"]);
    expect(snapshots()).toHaveLength(before.length + 2);
    expect(readdirSync(join(home(), "builds", "active"))).toEqual([]);
    rmSync(folder, { recursive: true });
  });

  test("is stopped by Ctrl-C, which removes its sandbox", async ({ skip }) => {
    skip(isThroughStation, "the station removes it when the stream ends (tested beside it)");
    const folder = project({ Dockerfile: "FROM host\nRUN echo begun; sleep 1000" });
    const { child, finished } = start(["template", "build", folder, "--json"]);
    child.stdout?.on("data", (piece: Buffer) => {
      if (piece.includes('"output":"begun')) child.kill("SIGINT");
    });
    expect(await finished).toMatchObject({ code: 130 });
    expect(sandboxes()).toEqual([]);
  });
});
