import { cp, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Script } from "../../src/agent/model/scripted-model.ts";
import type { Client } from "../../src/client/connect.ts";

const usage = { inputTokens: 18_400, outputTokens: 620, cachedInputTokens: 16_000 };
const wait = { calls: [{ tool: "bash", arguments: { command: "npm run build:watch 2>/dev/null || sleep 3600" } }], usage };

const mended: Script = {
  about: "a scripted model",
  costUsdPerCall: 0.031,
  turns: [
    {
      think: "The task is about failing tests. I should run them before I change anything, and read what they say about the discount.",
      say: "Let me see what fails.",
      calls: [
        { tool: "bash", arguments: { command: "node --test --test-reporter=spec 2>&1 | head -40" } },
        { tool: "read", arguments: { path: "price.js" } },
      ],
      usage,
    },
    {
      say: "The discount is a **percentage**, but `price.js` does not divide it by 100 and does not round to whole cents.",
      calls: [
        {
          tool: "edit",
          arguments: {
            path: "price.js",
            old: "return sum - sum * discountPercent;",
            new: "return Math.round(sum - (sum * discountPercent) / 100);",
          },
        },
        {
          tool: "write",
          arguments: { path: "docs/prices.md", content: "# Prices\n\nDiscounts are percentages; totals are whole cents.\n" },
        },
      ],
      usage,
    },
    { calls: [{ tool: "bash", arguments: { command: "node --test" } }], usage },
    {
      say: "The discount was subtracted as a factor instead of a percentage, and the result was not rounded. Now:\n\n- `price.js` divides by 100 and rounds to whole cents\n- `docs/prices.md` says so\n\nAll three tests pass.",
      usage,
    },
  ],
};

/** Continues from the second step, whose calls it does not make again. */
const mendedOtherwise: Script = {
  costUsdPerCall: 0.024,
  turns: [
    ...mended.turns.slice(0, 2),
    {
      calls: [
        { tool: "write", arguments: { path: "rounding.js", content: "export const toCents = (value) => Math.round(value);\n" } },
        { tool: "edit", arguments: { path: "price.js", old: "Math.round(", new: "toCents(" } },
      ],
      usage,
    },
    { say: "A separate function rounds the prices now.", usage },
  ],
};

const asks: Script = {
  costUsdPerCall: 0.018,
  turns: [
    {
      say: "The release needs a tag. I'll ask before I create it.",
      calls: [{ tool: "bash", arguments: { command: "git tag v2.4.0" } }],
      usage,
    },
    { say: "Tagged." },
  ],
};

const steered: Script = {
  costUsdPerCall: 0.022,
  turns: [
    {
      say: "Let me check what the importer fetches.",
      calls: [{ tool: "bash", arguments: { command: "curl -sS -m 3 http://feeds.example.com/prices.csv; ls -la" } }],
      usage,
    },
    ...Array.from({ length: 12 }, () => wait),
  ],
};

const short = (say: string): Script => ({ costUsdPerCall: 0.012, turns: [{ say, usage }] });

const costly: Script = {
  costUsdPerCall: 0.27,
  turns: Array.from({ length: 6 }, (_, at) => ({ calls: [{ tool: "bash", arguments: { command: `echo attempt ${at}` } }], usage })),
};

export interface Shown {
  run: string;
  /** A fork of the run. */
  fork: string;
  sandbox: string;
}

/** Starts the runs of a typical working day, with scripted models, and a sandbox with a server in it. */
export async function makeThings(client: Client, { root, folder }: { root: string; folder: string }): Promise<Shown> {
  const project = join(folder, "price-list");
  await cp(join(root, "examples", "demo", "project"), project, { recursive: true });
  let scripts = 0;
  const start = async (script: Script, request: Omit<Parameters<Client["runs"]["start"]>[0], "model">) => {
    scripts += 1;
    const path = join(folder, `script-${scripts}.json`);
    await writeFile(path, JSON.stringify(script));
    return (await client.runs.start({ ...request, model: `scripted:${path}` })).run;
  };
  const source = { kind: "folder", path: project } as const;
  const finished = [
    await start(short("Both links pointed to a page that was renamed; they now point to the new one."), {
      ...{ task: "Fix the dead links in the guide", labels: { team: "docs" } },
    }),
    await start(short("Nothing uses the old name anymore."), {
      ...{ task: "Rename the module `cart` to `basket` everywhere", name: "rename-basket", labels: { team: "shop" } },
    }),
    await start(costly, { task: "Find out why the nightly import takes three hours", budgets: { costUsd: 0.5 }, labels: { team: "data" } }),
    await start(short("The three with known problems are up to date."), {
      task: "Update the dependencies",
      labels: { team: "shop" },
    }),
  ];
  const run = await start(mended, {
    task: "Make the price list tests pass",
    name: "price-list",
    source,
    labels: { team: "shop", ticket: "SHOP-412" },
  });
  for (const each of [...finished, run]) await client.runs.wait(each);
  const fork = await makeFork(client, { run, folder });
  const waits = await start(asks, {
    task: "Prepare release 2.4.0",
    source,
    attended: true,
    settings: { permissions: { "bash:git tag*": "ask" } },
    labels: { team: "release" },
  });
  const network = { mode: "allow" as const, rules: [{ host: "packages.example.com" }] };
  const busy = await start(steered, {
    task: "Speed up the price importer without a new dependency",
    source,
    settings: { network },
    labels: { team: "data" },
  });
  await start(short("Done."), {
    task: "Write the release notes once the release is out",
    startAt: new Date(Date.now() + 3_600_000).toISOString(),
  });
  await untilAtWork(client, { waits, busy });
  await client.runs.send(busy, { text: "Leave the parser alone, please: the other branch changes it.", mode: "steer" });
  return { run, fork, sandbox: await makeSandbox(client) };
}

/** Forks a run after its second step, twice; the first fork is rewound. */
async function makeFork(client: Client, { run, folder }: { run: string; folder: string }): Promise<string> {
  const path = join(folder, "script-otherwise.json");
  await writeFile(path, JSON.stringify(mendedOtherwise));
  const fork = async (name: string) => {
    const request = { at: 2, name, text: "Put the rounding into a separate function.", model: `scripted:${path}` };
    const [created] = await client.runs.fork(run, request);
    return (await client.runs.wait(created?.run ?? "")).run;
  };
  await client.runs.rewind(await fork("first-try"), { to: 3 });
  return await fork("rounding-function");
}

/** Waits until one run asks and the other is at its second step. */
async function untilAtWork(client: Client, { waits, busy }: { waits: string; busy: string }): Promise<void> {
  const reached = async (run: string, type: string, count: number) => {
    let seen = 0;
    for await (const event of client.runs.events(run, { follow: true })) {
      if (event.type === type) seen += 1;
      if (seen === count) return;
    }
  };
  await Promise.all([reached(waits, "permission.asked", 1), reached(busy, "tool.started", 2)]);
}

const server = `require("node:http").createServer((_, answer) => answer.setHeader("content-type", "text/html").end("<!doctype html><title>Shop</title><h1>Shop</h1><p>Three things in your basket.</p>")).listen(8080)`;

async function makeSandbox(client: Client): Promise<string> {
  const { id } = await client.sandboxes.create({
    spec: { name: "shop-preview", labels: { team: "shop" }, network: { mode: "allow", rules: [{ host: "packages.example.com" }] } },
  });
  const run = async (command: string) => await client.sandboxes.exec(id, { argv: ["sh", "-c", command] });
  await run(
    "mkdir -p src docs && printf '# Shop\\n\\nRun `node src/server.js`.\\n' > README.md && printf '{ \"name\": \"shop\" }\\n' > package.json",
  );
  await client.files.write(id, { path: "/workspace/src/server.js" }, new TextEncoder().encode(`${server}\n`));
  await run("curl -sS -m 3 http://tracker.example.com/ || true");
  await run("setsid node src/server.js >/dev/null 2>&1 & sleep 1");
  return id;
}
