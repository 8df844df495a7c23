import { execFileSync } from "node:child_process";
import { cp, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { startForgeServer } from "../support/forge-server.ts";
import { ATTRIBUTES } from "../support/git-traps.ts";
import { useRunsCli } from "../support/runs-cli.ts";
import { example, specWalks } from "../support/spec-walk.ts";

const cli = useRunsCli();
const { serve, walk } = specWalks(cli);
const TOKEN = "canary-token-Hq72mWxK9pLd4sVb";
const long = { timeout: 600_000 };

test("parallel tasks that conflict are merged by an agent and shipped to two forges", long, async () => {
  const folder = await cli.folder();
  const files = Object.fromEntries(
    await Promise.all(
      ["README.md", "commands.txt", "count.sh", "letters.sh"].map(async (name) => [
        name,
        await readFile(join(example, "project", name), "utf8"),
      ]),
    ),
  );
  await using forge = await startForgeServer({ kind: "gitea", folder, token: TOKEN, files });
  const project = join(folder, "project");
  const bare = join(folder, "bare.git");
  for (const argv of [
    ["--quiet", forge.repository.path, project],
    ["--quiet", "--bare", forge.repository.path, bare],
  ])
    execFileSync("git", ["clone", ...argv], { stdio: "pipe" });
  await walk({ parallel: 3, project }, async ({ home, served, session }) => {
    await keepToken(home, forge);
    // Includes the file that would make git run a filter; even that is only passed on.
    const tests = ["--without-tests", "each task tried what it wrote", "--include-config"];
    const to = [
      "--to",
      forge.remote,
      "--forge",
      "gitea",
      "--allow-private",
      "--ticket",
      "WORDS-1",
      "--title",
      "Count words",
      ...tests,
      "--merge",
      "--json",
    ];
    const shipping = cli.start(["ship", session, ...to], { home, cwd: project });
    await expect.poll(async () => (await served.client.ships.list({})).items.length, { timeout: 120_000 }).toBe(1);
    served.going.child.kill("SIGKILL");
    await Promise.all([served.going.ended, shipping.ended]);
    const again = await serve(home);
    const [ship] = (await again.client.ships.list({})).items;
    const status = async () => (await again.client.ships.get(ship?.id ?? "")).status;
    await expect.poll(status, { timeout: 240_000 }).toBe("merged");
    expect(forge.pulls.all()).toMatchObject([{ state: "closed", mergedAt: expect.any(String), branch: "feature/WORDS-1-count-words" }]);
    expect(forge.repository.branches()).toEqual(["main"]);
    expect(forge.repository.file("main", "commands.txt").split("\n").sort()).toEqual(["letters", "lines", "words"]);
    expect(forge.repository.file("main", "README.md")).toContain("letters|words|lines");
    expect(forge.repository.file("main", ".gitattributes")).toContain(ATTRIBUTES);
    // Shipped by the spec's name: branch, title and request come from the spec, and the commit quotes no agent.
    const shipped = await cli.run(["ship", "words", "--to", bare, ...tests, "--merge", "--json"], { home, cwd: project });
    expect([shipped.code, shipped.stderr]).toEqual([0, expect.any(String)]);
    expect(JSON.parse(shipped.text)).toMatchObject({
      spec: expect.stringMatching(/^spec_/),
      session,
      title: "Count words and lines, too",
      branch: "feature/count-words-and-lines-too",
      status: "merged",
    });
    const { history } = await again.client.ships.get(JSON.parse(shipped.text).id);
    const [created] = history;
    expect(created?.type === "ship.created" && created.data.body).toMatch(
      /```text\nREQ-001 \(done\): .+\n {2}by: TASK-[^`]+REQ-002[^`]+```/,
    );
    const log = execFileSync("git", [`--git-dir=${bare}`, "log", "--format=%B", "main"], { encoding: "utf8" });
    expect(log).toMatch(/^Count words and lines, too\n\nSpec: spec_[a-z2-7]+\n\nCaisson-Ship: /m);
    expect(log).not.toContain("REQ-001");
    const inBare = (path: string) => execFileSync("git", [`--git-dir=${bare}`, "show", `main:${path}`], { encoding: "utf8" });
    expect(inBare(".gitattributes")).toContain(ATTRIBUTES);
    expect(inBare("commands.txt").trim().split("\n").sort()).toEqual(["letters", "lines", "words"]);
    return again;
  });
});

test("an idea becomes a change, despite a failed gate and a killed station", long, async () => {
  const project = join(cli.base(), "project");
  await cp(join(example, "project"), project, { recursive: true });
  await walk({ parallel: 1, project });
});

test("the spec demo holds what it claims, and leaves nothing behind", long, async () => {
  const home = join(cli.base(), "home-demo");
  await mkdir(home, { recursive: true, mode: 0o700 });
  await writeFile(join(home, "config.json"), JSON.stringify({ runtime: "oci" }));
  const { code, text, stderr } = await cli.run(["demo", "--spec", "--no-station"], { home });
  expect([code, stderr]).toEqual([0, expect.not.stringContaining("✗")]);
  expect(text).toContain("The model is a script here and says so");
  expect(text).toContain("✓ every requirement is covered by changes");
  expect(cli.sandboxes(home)).toEqual([]);
  const left = await Promise.all(
    ["spec", "session"].map(async (group) => JSON.parse((await cli.run([group, "ls", "--json"], { home })).text)),
  );
  expect(left).toEqual([[], []]);
});

/** Stores a token for the forge, as a user does who pipes it in. */
async function keepToken(home: string, { url }: { url: string }): Promise<void> {
  const value = join(await cli.folder({ token: TOKEN }), "token");
  execFileSync("sh", ["-c", `${cli.commandLine()} secret set 'GITEA_TOKEN@127.0.0.1;ports=${new URL(url).port}' < ${value}`], {
    cwd: cli.work(),
    env: cli.environment({ home }),
    stdio: "pipe",
  });
}
