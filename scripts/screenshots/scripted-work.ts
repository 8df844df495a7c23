import { execFileSync } from "node:child_process";
import { cp, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Client } from "../../src/client/connect.ts";

export interface ShownWork {
  workflow: string;
  failed: string;
  spec: string;
  gate: string;
  merge: string;
  ship: string;
  best: string;
}

interface Place {
  root: string;
  folder: string;
}

const release = {
  name: "release-notes",
  description: "Writes release notes, checks them in every language, and sends them after approval",
  input: { type: "object", properties: { version: { type: "string" } } },
  steps: [
    {
      name: "write",
      kind: "agent",
      task: `Write the release notes for \${input.version} from its commits.`,
      timeout: "10m",
      result: "notes",
    },
    {
      name: "checks",
      kind: "parallel",
      branches: {
        links: [{ name: "links", kind: "command", argv: ["sh", "-c", "echo 42 links lead somewhere"] }],
        spelling: [{ name: "spelling", kind: "command", argv: ["sh", "-c", "echo no mistakes"], retry: { attempts: 3 } }],
      },
    },
    {
      name: "languages",
      kind: "foreach",
      in: '["de", "fr", "ja"]',
      as: "language",
      concurrency: 3,
      steps: [{ name: "words", kind: "command", argv: ["sh", "-c", "echo translated"] }],
    },
    {
      name: "audience",
      kind: "switch",
      cases: [
        {
          when: `input.version.endsWith(".0")`,
          steps: [
            {
              name: "everybody",
              kind: "approval",
              text: `May the release notes for \${input.version} be sent to all 1,240 subscribers? ${"$"}{steps.write.output.text}`,
            },
          ],
        },
      ],
      default: [{ name: "testers", kind: "set", data: { to: "testers" } }],
    },
    {
      name: "send",
      kind: "try",
      steps: [{ name: "mail", kind: "command", argv: ["sh", "-c", "echo sent"], timeout: "5m" }],
      catch: [{ name: "retract", kind: "command", argv: ["sh", "-c", "echo retracted"] }],
    },
  ],
};

const nightly = {
  name: "nightly-import",
  description: "Fetches, checks and loads prices",
  steps: [
    { name: "fetch", kind: "command", argv: ["sh", "-c", "echo 18,204 prices"] },
    { name: "check", kind: "command", argv: ["sh", "-c", "echo 'line 812: the price is negative' >&2; exit 3"] },
    { name: "load", kind: "command", argv: ["sh", "-c", "echo loaded"] },
  ],
};

/** Starts the workflows, specs, merge and ship of a typical working day, with scripted models. */
export async function makeWork(client: Client, { root, folder }: Place): Promise<ShownWork> {
  const script = async (name: string, turns: readonly object[]) => {
    const path = join(folder, `${name}.json`);
    await writeFile(path, JSON.stringify({ about: "a scripted model", turns }));
    return `scripted:${path}`;
  };
  const notes = await script("notes", [{ say: "Faster imports, a calmer basket, and three fixes." }]);
  const workflow = await client.workflows.start({ definition: release, input: { version: "2.4.0" }, model: notes } as never);
  const failed = await client.workflows.start({ definition: nightly } as never);
  const waiting = { name: "deploy", steps: [{ name: "gate", kind: "signal", signal: "deployed" }] };
  await client.workflows.start({ definition: waiting } as never);
  const specs = await makeSpecs(client, { root, folder });
  const repository = await makeRepository(folder);
  const change = async (command: string) => {
    const model = await script(`change-${command.length}`, [{ calls: [{ tool: "bash", arguments: { command } }] }, { say: "Done." }]);
    const { run } = await client.runs.start({
      task: "Round prices to whole cents",
      model,
      source: { kind: "folder", path: repository.clone },
    });
    return await client.runs.wait(run);
  };
  const [one, other] = [
    await change("sed -i 's/sum;/Math.round(sum);/' price.js"),
    await change("sed -i 's/sum;/Math.floor(sum);/' price.js"),
  ];
  const best = await client.bests.start({
    start: { task: "Round prices to whole cents", source: { kind: "folder", path: repository.clone } },
    attempts: 3,
    models: await Promise.all(
      ["Math.trunc", "Math.round", "Math.ceil"].map((name, index) =>
        script(`attempt-${index + 1}`, [
          { calls: [{ tool: "bash", arguments: { command: `sed -i 's/sum;/${name}(sum);/' price.js` } }] },
          { say: `Prices go through ${name} now.` },
        ]),
      ),
    ),
    grade: "grep -q Math.round price.js && echo 'score: 0.98'",
    budgets: { costUsd: 2 },
  });
  const merge = await client.merges.start({ sessions: [one.session, other.session] });
  const ship = await client.ships.start({
    ...{ of: one.run, to: repository.bare, kind: "fix", ticket: "SHOP-412", title: "Round prices to whole cents" },
    withoutTests: "the forge runs the tests of this branch",
  });
  await client.merges.wait(merge.id, { orPerson: true });
  await client.workflows.wait(workflow.id, { orPerson: true });
  await client.workflows.wait(failed.id);
  for (let { status, seq } = await client.ships.get(ship.id); status === "working"; )
    ({ status, seq } = await client.ships.watch(ship.id, { afterSeq: seq, seconds: 30 }));
  await client.bests.wait(best.id);
  return { workflow: workflow.id, failed: failed.id, ...specs, merge: merge.id, ship: ship.id, best: best.id };
}

/** Creates one spec that is done, and one that waits for approval. */
async function makeSpecs(client: Client, { root, folder }: Place): Promise<Pick<ShownWork, "spec" | "gate">> {
  const project = join(folder, "counting");
  await cp(join(root, "examples", "spec", "project"), project, { recursive: true });
  const common = {
    source: { kind: "folder" as const, path: project },
    runs: { model: `scripted:${await linkedTasks(join(root, "examples", "spec", "script.yaml"), join(folder, "spec.yaml"))}` },
  };
  const gate = await client.specs.create({ idea: "Count words and lines as well", name: "count-words", ...common });
  await client.specs.execute(gate.spec);
  const done = await client.specs.create({
    idea: "The program counts the words and lines of a text",
    name: "words",
    gates: [],
    parallel: 3,
    ...common,
  });
  await client.specs.execute(done.spec);
  await Promise.all([client.specs.wait(gate.spec), client.specs.wait(done.spec)]);
  return { spec: done.spec, gate: gate.spec };
}

/** Returns the example's scripted model with a last task that depends on both others, so that the graph has edges. */
async function linkedTasks(from: string, to: string): Promise<string> {
  const free = `"dependsOn": [],`;
  const text = (await readFile(from, "utf8")).replace(/("criticalPath": \[\s*"TASK-001")/, `$1, "TASK-003"`);
  const last = text.lastIndexOf(free);
  await writeFile(to, `${text.slice(0, last)}"dependsOn": ["TASK-001", "TASK-002"],${text.slice(last + free.length)}`);
  return to;
}

async function makeRepository(folder: string): Promise<{ bare: string; clone: string }> {
  const [bare, clone] = [join(folder, "shop.git"), join(folder, "shop")];
  const git = (...argv: string[]) =>
    execFileSync("git", ["-c", "user.name=Ana", "-c", "user.email=ana@example.com", ...argv], { cwd: folder, stdio: "pipe" });
  git("init", "--quiet", "--bare", "--initial-branch=main", bare);
  git("clone", "--quiet", bare, clone);
  await mkdir(join(clone, "docs"));
  await writeFile(
    join(clone, "price.js"),
    "export function price(items) {\n  const sum = items.reduce((all, item) => all + item.cents, 0);\n  return sum;\n}\n",
  );
  await writeFile(join(clone, "docs", "prices.md"), "# Prices\n");
  git("-C", clone, "checkout", "--quiet", "-B", "main");
  git("-C", clone, "add", ".");
  git("-C", clone, "commit", "--quiet", "-m", "The shop");
  git("-C", clone, "push", "--quiet", "origin", "main");
  return { bare, clone };
}
