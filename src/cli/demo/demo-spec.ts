import { cp, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CaissonError } from "../../contract/error/error.ts";
import type { SpecView } from "../../contract/spec/spec-verbs.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { specLines } from "../specs/spec-lines.ts";
import { follow } from "../specs/spec-run.ts";
import { bad, bold, dim, good, line, type Piece } from "../terminal/line.ts";
import { printDiff } from "../terminal/print-diff.ts";

const IDEA = "Count words and lines, too";
const CHANGED = "commands.txt";

/** `caisson demo --spec`: takes an idea to changes that can be applied. The model is scripted, and the demo says so. */
export async function demoSpec(context: CliContext, args: ParsedArguments): Promise<number> {
  const { specs, sessions, runs } = context.station;
  const print = (piece: Piece = "") => context.stdout.print(line`${piece}`);
  const examples = join(context.packageDir, "examples", "spec");
  const root = await mkdtemp(join(tmpdir(), "caisson-demo-"));
  const project = join(root, "project");
  const model = args.option("model") ?? `scripted:${join(examples, "script.yaml")}`;
  const runtime = args.option("runtime") ?? context.config.runtime;
  let createdSpec: SpecView | null = null;
  try {
    await cp(join(examples, "project"), project, { recursive: true });
    const before = await readFile(join(project, CHANGED), "utf8");
    await print(bold(`An idea: ${IDEA}`));
    if (args.option("model") === undefined)
      await print(dim("The model is a script here and says so; every run, check and file is real. With a key: --model PROVIDER/MODEL"));
    createdSpec = await specs.create({ idea: IDEA, source: { kind: "folder", path: project }, runs: { model, settings: { runtime } } });
    const { spec } = createdSpec;
    let view = createdSpec;
    do {
      const { asked: approval } = view;
      if (approval !== null) {
        await print(
          good(
            `Here you would review ${approval.phase} (version ${approval.version}) and run caisson spec approve. The demo approves it for you.`,
          ),
        );
        await specs.decide(spec, { approved: true, version: approval.version, by: "the demo" });
      }
      await specs.execute(spec, { by: "the demo" });
      const settled = await follow(context, view, { json: false });
      if (settled === null) throw new CaissonError("cancelled", "interrupted");
      view = settled;
    } while (view.asked !== null);
    await print();
    await context.stdout.print(specLines(view));
    await print();
    return await showClaims(view, { context, project, before, print });
  } finally {
    if (createdSpec !== null) {
      const { spec } = createdSpec;
      const last = await specs.get(spec);
      if (last.ended === null) await specs.cancel(spec, { by: "the demo" });
      for (const { run } of (await runs.list({ label: [`spec=${spec}`] })).runs) await sessions.discard(run, { force: true });
      if (last.session !== null) await sessions.discard(last.session, { force: true }).catch(unlessGone);
      await specs.remove(spec);
    }
    await rm(root, { recursive: true, force: true });
  }
}

async function showClaims(
  view: SpecView,
  { context, project, before, print }: { context: CliContext; project: string; before: string; print: (piece?: Piece) => Promise<void> },
): Promise<number> {
  const { sessions } = context.station;
  const claims: [string, boolean][] = [
    [
      "the check rejected the first requirements and accepted the second",
      view.attempts.filter(({ phase }) => phase === "requirements").length === 2,
    ],
    ["all tasks are done", view.status === "done" && view.session !== null],
    ["every requirement is covered by changes", view.coverage.every(({ state }) => state === "done")],
    ["the project outside is unchanged", (await readFile(join(project, CHANGED), "utf8")) === before],
  ];
  if (view.session !== null) {
    for await (const piece of sessions.patch(view.session)) if (piece.kind === "patch") await printDiff(context.stdout, piece.bytes);
    await print();
    await sessions.apply(view.session);
    claims.push([
      "applied: the project has the lines of both tasks",
      (await readFile(join(project, CHANGED), "utf8")).split("\n").sort().join() === ",letters,lines,words",
    ]);
  }
  for (const [claim, held] of claims) await print(line`${held ? good("✓") : bad("✗")} ${claim}`);
  return claims.every(([, held]) => held) ? 0 : 1;
}

function unlessGone(error: unknown): void {
  if (!(error instanceof CaissonError) || error.code !== "not_found") throw error;
}
