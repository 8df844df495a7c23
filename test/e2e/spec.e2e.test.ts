import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { cp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type Client, connect } from "../../src/client/connect.ts";
import { socketFetch } from "../../src/client/socket-fetch.ts";
import { createSqliteLog } from "../../src/log/sqlite/log.ts";
import { startForgeServer } from "../support/forge-server.ts";
import { type Going, useRunsCli } from "../support/runs-cli.ts";

const cli = useRunsCli();
const example = join(import.meta.dirname, "..", "..", "examples", "spec");
const TOKEN = "canary-token-Hq72mWxK9pLd4sVb";

interface Served {
  going: Going;
  client: Client;
}

async function serve(home: string): Promise<Served> {
  const going = cli.start(["up", "--port", "0", "--json", "--no-token"], { home });
  await Promise.race([going.output(/"pid"/), once(going.child, "exit")]);
  return { going, client: connect({ url: "http://station", fetch: socketFetch(join(home, "station", "socket")) }) };
}

/** Numbers from a seed (mulberry32), so that a run that failed can be had again. */
function numbersFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let value = Math.imul(state ^ (state >>> 15), 1 | state);
    value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value;
    return ((value ^ (value >>> 14)) >>> 0) / 4294967296;
  };
}

async function eventsOf(home: string, spec: string): Promise<{ type: string; data: Record<string, unknown> }[]> {
  await using log = createSqliteLog({ path: join(home, "log.db") });
  return (await log.read(`spec/${spec}`)) as never;
}

/** Kills the station with SIGKILL once the spec has so many events, and starts another. */
async function killedAt(seq: number, { served, home, spec }: { served: Served; home: string; spec: string }): Promise<Served> {
  const found = new AbortController();
  const signal = AbortSignal.any([found.signal, AbortSignal.timeout(240_000)]);
  for await (const event of served.client.specs.events(spec, { follow: true, signal })) {
    if (event.seq >= seq || event.type === "driven.ended") break;
  }
  found.abort();
  served.going.child.kill("SIGKILL");
  await served.going.ended;
  return await serve(home);
}

/** Until it has ended or waits for a person, as a station says that is there. */
async function settled(served: Served, spec: string) {
  return await served.client.specs.wait(spec, { signal: AbortSignal.timeout(240_000) });
}

const long = { timeout: 600_000 };

test(
  "from an idea to a merged change: two of three tasks at the same time conflict, are merged by an agent, and go to a forge and to a bare repository",
  long,
  async () => {
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
      // With the file that would have git run a filter, too: even that is only carried.
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
      // By the spec's name: the branch, the title and the request are the spec's, and the commit quotes no agent.
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
  },
);

test(
  "from an idea to work that can be applied, with a gate that fails once, approvals by another process, and a station that is killed on the way",
  long,
  async () => {
    const project = join(cli.base(), "project");
    await cp(join(example, "project"), project, { recursive: true });
    await walk({ parallel: 1, project });
  },
);

test("the demo of a spec holds what it claims, and leaves nothing", long, async () => {
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

/** A token for the forge, as somebody keeps it who pipes it in. */
async function keepToken(home: string, { url }: { url: string }): Promise<void> {
  const value = join(await cli.folder({ token: TOKEN }), "token");
  execFileSync("sh", ["-c", `${cli.commandLine()} secret set 'GITEA_TOKEN@127.0.0.1;ports=${new URL(url).port}' < ${value}`], {
    cwd: cli.work(),
    env: cli.environment({ home }),
    stdio: "pipe",
  });
}

const ATTRIBUTES = "* filter=trap";

/**
 * What a git of the host's would run in the folder it is left in: hooks, a monitor, a filter. Each makes the file `mark`,
 * in a folder that no sandbox has.
 */
function trapsFor(mark: string): string {
  const hooks = "pre-commit commit-msg post-commit post-checkout pre-merge-commit post-merge post-rewrite pre-push reference-transaction";
  return [
    `printf '#!/bin/sh\\ntouch ${mark}\\nexit 0\\n' > /tmp/hook`,
    `for hook in ${hooks}; do install -D -m 755 /tmp/hook .git/hooks/$hook; done`,
    ...["core.fsmonitor", "core.sshCommand", "core.pager", "diff.external"].map((name) => `git config ${name} 'touch ${mark}; true'`),
    ...["clean", "smudge"].map((name) => `git config filter.trap.${name} 'touch ${mark}; cat'`),
    `echo '${ATTRIBUTES}' >> .gitattributes`,
  ].join("; ");
}

/** The example's script, whose first task leaves traps beside its work. */
async function scriptWithTraps(mark: string): Promise<string> {
  const script = await readFile(join(example, "script.yaml"), "utf8");
  const command = "echo words >> commands.txt";
  expect(script).toContain(command);
  const trapped = script.replace(command, () => `(${JSON.stringify(trapsFor(mark)).slice(1, -1)}) > /dev/null 2>&1; ${command}`);
  return join(await cli.folder({ "script.yaml": trapped }), "script.yaml");
}

/** That the traps are none for show: a git that knows nothing of them falls into them. */
async function expectTrapsToWork(mark: string): Promise<void> {
  const folder = await cli.folder({ "README.md": "one\n" });
  const git = "git -c user.name=one -c user.email=one@example.com";
  execFileSync("sh", ["-c", `git init --quiet && { ${trapsFor(mark)}; } && git add . && ${git} commit --quiet --message one`], {
    cwd: folder,
    stdio: "pipe",
  });
  expect(existsSync(mark)).toBe(true);
  await rm(mark);
}

interface Walked {
  home: string;
  served: Served;
  session: string;
}

/** A spec from its idea to its end; `after` gives the station that is there then. */
async function walk(
  { parallel, project }: { parallel: number; project: string },
  after: (walked: Walked) => Promise<Served> = async ({ served }) => served,
): Promise<void> {
  // The same moments each time, unless somebody asks for others: SPEC_SEED=$RANDOM.
  const seed = Number(process.env.SPEC_SEED ?? 1);
  console.info(`seed: SPEC_SEED=${seed}`);
  const chance = numbersFrom(seed);
  const home = join(cli.base(), `home-spec-${parallel}`);
  await mkdir(home, { recursive: true, mode: 0o700 });
  await writeFile(join(home, "config.json"), JSON.stringify({ runtime: "oci" }));
  const commands = await readFile(join(project, "commands.txt"), "utf8");
  let served = await serve(home);
  try {
    const mark = join(await cli.folder(), "executed");
    await expectTrapsToWork(mark);
    const model = `scripted:${await scriptWithTraps(mark)}`;
    const proposed = await cli.run(
      [
        "spec",
        "new",
        "Count words and lines, too",
        "--name",
        "words",
        "--parallel",
        String(parallel),
        "--model",
        model,
        "--phase-agent",
        "explore=reviewer",
      ],
      {
        home,
        cwd: project,
      },
    );
    expect([proposed.code, proposed.text]).toEqual([0, expect.stringMatching(/^spec_[a-z2-7]{12}\n$/)]);
    const spec = proposed.text.trim();
    const begun = await served.client.specs.execute(spec);
    expect(begun).toMatchObject({ spec, run: expect.stringMatching(/^run_/) });
    // Somewhere before the first gate, between the gates, and twice while tasks are done or merged.
    const kills = [
      5 + Math.floor(chance() * 20),
      27 + Math.floor(chance() * 5),
      35 + Math.floor(chance() * 15),
      50 + Math.floor(chance() * 15),
    ];
    served = await killedAt(kills[0] ?? 0, { served, home, spec });
    expect(await settled(served, spec)).toMatchObject({ asked: { phase: "requirements", version: 3 } });
    const approved = await cli.run(["spec", "approve", "words", "--version", "3", "--json"], { home });
    expect([approved.code, approved.stderr]).toEqual([0, ""]);
    served = await killedAt(kills[1] ?? 0, { served, home, spec });
    expect(await settled(served, spec)).toMatchObject({ asked: { phase: "design", version: 4 } });
    expect((await cli.run(["spec", "approve", "words", "--json"], { home })).code).toBe(0);
    for (const seq of kills.slice(2)) served = await killedAt(seq, { served, home, spec });
    const view = await settled(served, spec);
    expect(view, JSON.stringify(view.ended)).toMatchObject({ status: "done", version: 6, session: expect.any(String) });
    expect(view.attempts.map(({ phase, judgement }) => [phase, judgement?.passed])).toEqual([
      ["explore", true],
      ["prd", true],
      ["requirements", false],
      ["requirements", true],
      ["design", true],
      ["tasks", true],
      ["sync", true],
    ]);
    expect(view.coverage.map(({ requirement, state }) => [requirement, state])).toEqual([
      ["REQ-001", "done"],
      ["REQ-002", "done"],
    ]);
    // No phase and no task has two runs, whatever died: a run for each intent.
    const events = await eventsOf(home, spec);
    const intents = events.filter(({ type }) => type === "spec.phase_started" || type === "spec.task_started");
    const { runs } = await served.client.runs.list({ label: [`spec=${spec}`] });
    expect(runs.map(({ labels }) => labels["spec-key"]).sort()).toEqual(intents.map(({ data }) => data.key as string).sort());
    expect(new Set(view.attempts.map(({ run }) => run)).size).toBe(7);
    // Who reads does not write: phases are the planner's, or that of whom they were given to; tasks are the coder's.
    const agents = new Map(runs.map(({ labels, agent }) => [labels["spec-key"]?.split("/")[1]?.replace(/-.*/, ""), agent]));
    const thinking = ["prd", "requirements", "design", "tasks", "sync"].map((phase): [string, string] => [phase, "planner"]);
    expect(agents).toEqual(new Map([["explore", "reviewer"], ...thinking, ["TASK", "coder"]]));
    // Nothing outside has changed until it is applied.
    expect(await readFile(join(project, "commands.txt"), "utf8")).toBe(commands);
    served = await after({ home, served, session: view.session ?? "" });
    const applied = await cli.run(["apply", view.session ?? "", "--json"], { home, cwd: project });
    expect([applied.code, applied.stderr]).toEqual([0, ""]);
    expect((await readFile(join(project, "commands.txt"), "utf8")).trim().split("\n").sort()).toEqual(["letters", "lines", "words"]);
    expect(await readFile(join(project, "README.md"), "utf8")).toContain("letters|words|lines");
    // What git would act on stays inside until it is asked for; and whatever was merged, shipped or applied, nothing of it ran here.
    expect(existsSync(join(project, ".gitattributes"))).toBe(false);
    expect((await cli.run(["apply", view.session ?? "", "--include-config", "--json"], { home, cwd: project })).code).toBe(0);
    expect(await readFile(join(project, ".gitattributes"), "utf8")).toBe(`${ATTRIBUTES}\n`);
    expect(existsSync(mark), "the host executed what an agent wrote").toBe(false);
    const shown = await cli.run(["spec", "show", "words"], { home });
    expect(shown.text).toContain(`caisson diff ${view.session}`);
  } finally {
    await cli.run(["down"], { home });
    await served.going.ended;
  }
  expect(cli.sandboxes(home)).toEqual([]);
}
