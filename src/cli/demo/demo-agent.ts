import { cp, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { CliContext } from "../context.ts";
import { followRun } from "../runs/follow-run.ts";
import { bad, dim, good, joinLines, line, type Piece, quotedName } from "../terminal/line.ts";
import { printDiff } from "../terminal/print-diff.ts";

const TASK = "Make the tests pass.";
const CHANGED = "price.js";

/**
 * Lets an agent fix a sample project. The project remains untouched until the change is applied. Resolves with the
 * number of claims that did not hold.
 */
export async function demoAgent(
  context: CliContext,
  options: { examples: string; model: string | undefined; runtime: string; print: (line?: Piece) => Promise<void> },
): Promise<number> {
  const { print } = options;
  const root = await mkdtemp(join(tmpdir(), "caisson-demo-"));
  const project = join(root, "project");
  const { agents, runs, sessions } = context.station;
  try {
    await cp(join(options.examples, "project"), project, { recursive: true });
    const before = await readFile(join(project, CHANGED), "utf8");
    const scripted = options.model === undefined;
    await print(
      scripted
        ? dim("   The model is a script here, but every step it requests really runs. With a key: caisson demo --model PROVIDER/MODEL")
        : `   ${options.model}`,
    );
    const model = options.model ?? `scripted:${join(options.examples, "script.yaml")}`;
    const { signal } = context.interruption;
    const { run } = await runs.start(
      {
        task: TASK,
        agent: await builtInCoder(agents),
        model,
        source: { kind: "folder", path: project },
        settings: { runtime: options.runtime },
      },
      { signal },
    );
    try {
      const following = followRun(context, runs, run, { json: false, live: true, signal });
      const { finish } = await runs.wait(run);
      await following;
      await print();
      for await (const piece of sessions.patch(run)) if (piece.kind === "patch") await printDiff(context.stdout, piece.bytes);
      await print();
      const claims: [Piece, boolean][] = [["the agent reports that it is done", finish === "done"]];
      claims.push(["the project outside is unchanged", (await readFile(join(project, CHANGED), "utf8")) === before]);
      const { applied } = await sessions.apply(run);
      claims.push([
        line`applied: ${joinLines(applied.map(quotedName), ", ")}`,
        applied.includes(CHANGED) && (await readFile(join(project, CHANGED), "utf8")) !== before,
      ]);
      for (const [claim, held] of claims) await print(line`   ${held ? good("✓") : bad("✗")} ${claim}`);
      return claims.filter(([, held]) => !held).length;
    } finally {
      await sessions.discard(run, { force: true });
    }
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}

/** Returns the built-in agent's path, because the user may have an agent with the same name. */
async function builtInCoder(agents: CliContext["station"]["agents"]): Promise<string> {
  const coder = (await agents.list()).find(({ name, origin }) => name === "coder" && origin === "built-in");
  return coder?.path ?? "coder";
}
