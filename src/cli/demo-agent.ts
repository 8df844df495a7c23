import { cp, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { builtInAgents } from "../agent/file/find-agents.ts";
import { AgentDefinition } from "../contract/agent.ts";
import { removeSession } from "../station/sessions/remove-session.ts";
import { applyChanges } from "../workspace/apply.ts";
import { renderDiff } from "../workspace/render-diff.ts";
import type { CliContext } from "./context.ts";
import { followRun } from "./follow-run.ts";
import { bad, dim, good, joined, line, type Piece, quotedName } from "./line.ts";
import { printDiff } from "./print-diff.ts";
import { openStation } from "./station.ts";
import { viewChanges } from "./workspace-view.ts";

const TASK = "Make the tests pass.";
const CHANGED = "price.js";

/** An agent fixes a sample project, live; the project is untouched until the change is applied. Returns how many claims did not hold. */
export async function demoAgent(
  context: CliContext,
  options: { examples: string; model: string | undefined; runtime: string; print: (line?: Piece) => Promise<void> },
): Promise<number> {
  const { print } = options;
  const root = await mkdtemp(join(tmpdir(), "caisson-demo-"));
  const project = join(root, "project");
  await using station = openStation(context);
  try {
    await cp(join(options.examples, "project"), project, { recursive: true });
    const before = await readFile(join(project, CHANGED), "utf8");
    const scripted = options.model === undefined;
    await print(
      scripted
        ? dim("   The model is a script here, and every step it asks for is really done. With a key: caisson demo --model PROVIDER/MODEL")
        : `   ${options.model}`,
    );
    const model = options.model ?? `scripted:${join(options.examples, "script.yaml")}`;
    const coder = await station.agents.load(join(builtInAgents, "coder.prompt"));
    const definition = AgentDefinition.parse({
      ...coder,
      sandbox: { ...coder.sandbox, runtime: options.runtime },
      harness: { ...coder.harness, onAsk: "deny", onBudget: "stop" },
    });
    const session = await station.sessions.create({
      id: `demo-${Date.now()}`,
      source: { kind: "folder", path: project },
      scope: "run",
      cleanup: "never",
    });
    try {
      const run = await station.runs.create({ definition, task: TASK, model, session: session.id });
      const following = followRun(context, station, run, { json: false, live: true, signal: context.interruption.signal });
      const state = await station.runs.drive(run, { signal: context.interruption.signal });
      await following;
      const { changes } = await viewChanges(context, station, await station.sessions.get(session.id));
      await print();
      await printDiff(context.stdout, renderDiff(changes));
      await print();
      const claims: [Piece, boolean][] = [["the agent says it is done", state.ended?.reason === "done"]];
      claims.push(["the project outside is as it was", (await readFile(join(project, CHANGED), "utf8")) === before]);
      const { applied } = await applyChanges(changes, { folder: project, stateDir: context.stateDir });
      claims.push([
        line`applied: ${joined(applied.map(quotedName), ", ")}`,
        applied.includes(CHANGED) && (await readFile(join(project, CHANGED), "utf8")) !== before,
      ]);
      for (const [claim, held] of claims) await print(line`   ${held ? good("✓") : bad("✗")} ${claim}`);
      return claims.filter(([, held]) => !held).length;
    } finally {
      const runtime = await context.resolver.resolve(options.runtime);
      await removeSession(session, { sessions: station.sessions, runtimes: [runtime], force: true });
    }
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}
