import { CaissonError } from "../../contract/error/error.ts";
import { GatePhase, WrittenPhase } from "../../contract/spec/spec.ts";
import { CreateSpec, type CreateSpecInput } from "../../contract/spec/spec-verbs.ts";
import { defined } from "../../lib/defined.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { checkOptions } from "../options/option-names.ts";
import { parseChoice, parseCount } from "../options/option-values.ts";
import { sourceFrom } from "../options/workspace-source.ts";
import { textGiven } from "../runs/read-task-text.ts";
import { budgetsFrom, settingsFrom } from "../runs/run-agent.ts";
import { line } from "../terminal/line.ts";

/** `caisson spec new IDEA` */
export async function create(context: CliContext, args: ParsedArguments): Promise<number> {
  const { text: idea } = await textGiven(context, args, { what: "idea", wordsBefore: 0 });
  const request: CreateSpecInput = checkOptions(CreateSpec, {
    idea,
    gates: gatesFrom(args.options("gate")),
    source: sourceFrom(context, args),
    runs: {
      settings: settingsFrom(context, args),
      budgets: budgetsFrom(args),
      phaseAgents: phaseAgentsFrom(args.options("phase-agent")),
      // The caller's configuration applies even if a station elsewhere drives the runs.
      ...defined({
        model: args.option("model") ?? context.config.models.default,
        planner: args.option("planner"),
        coder: args.option("coder"),
      }),
    },
    ...defined({
      name: args.option("name"),
      parallel: args.option("parallel") === undefined ? undefined : parseCount("parallel", args.option("parallel") ?? ""),
    }),
  });
  const view = await context.station.specs.create(request);
  if (args.flag("json")) await context.stdout.printJson(view);
  else {
    await context.stdout.print(line`${view.spec}`);
    await context.stderr.print(line`caisson: created; to start it: caisson spec run ${view.name ?? view.spec}`);
  }
  return 0;
}

function phaseAgentsFrom(assignments: readonly string[]): Partial<Record<WrittenPhase, string>> {
  const agents: Partial<Record<WrittenPhase, string>> = {};
  for (const each of assignments) {
    const [, word = "", agent = ""] = /^([^=]*)=(.*)$/s.exec(each) ?? [];
    const phase = parseChoice(...WrittenPhase.options)("phase-agent", word);
    if (agent === "") throw new CaissonError("invalid", `--phase-agent ${each} names no agent`, { hint: `Use ${phase}=AGENT.` });
    if (agents[phase] !== undefined) throw new CaissonError("invalid", `--phase-agent is given twice for ${phase}`);
    agents[phase] = agent;
  }
  return agents;
}

function gatesFrom(gateNames: readonly string[]): GatePhase[] {
  if (gateNames.length === 0) return [...GatePhase.options];
  if (!gateNames.includes("none")) return gateNames.map((each) => parseChoice(...GatePhase.options)("gate", each));
  if (gateNames.length > 1) throw new CaissonError("invalid", "--gate none cannot be combined with another --gate");
  return [];
}
