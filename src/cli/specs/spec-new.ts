import { CaissonError } from "../../contract/error.ts";
import { GatePhase, WrittenPhase } from "../../contract/spec.ts";
import { CreateSpec, type CreateSpecInput } from "../../contract/spec-verbs.ts";
import { defined } from "../../lib/defined.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { checkOptions } from "../options/option-names.ts";
import { parseChoice, parseCount } from "../options/option-values.ts";
import { sourceFrom } from "../options/workspace-source.ts";
import { textGiven } from "../runs/given-text.ts";
import { budgetsFrom, settingsFrom } from "../runs/run-agent.ts";
import { line } from "../terminal/line.ts";

/** `caisson spec new IDEA` */
export async function create(context: CliContext, given: ParsedArguments): Promise<number> {
  const { text: idea } = await textGiven(context, given, { what: "idea", wordsBefore: 0 });
  const request: CreateSpecInput = checkOptions(CreateSpec, {
    idea,
    gates: gatesFrom(given.options("gate")),
    source: sourceFrom(context, given),
    runs: {
      settings: settingsFrom(context, given),
      budgets: budgetsFrom(given),
      phaseAgents: phaseAgentsFrom(given.options("phase-agent")),
      // What the caller's configuration says holds wherever the station runs them.
      ...defined({
        model: given.option("model") ?? context.config.models.default,
        planner: given.option("planner"),
        coder: given.option("coder"),
      }),
    },
    ...defined({
      name: given.option("name"),
      parallel: given.option("parallel") === undefined ? undefined : parseCount("parallel", given.option("parallel") ?? ""),
    }),
  });
  const made = await context.station.specs.create(request);
  if (given.flag("json")) await context.stdout.printJson(made);
  else {
    await context.stdout.print(line`${made.spec}`);
    await context.stderr.print(line`caisson: nothing runs yet; next: caisson spec run ${made.name ?? made.spec}`);
  }
  return 0;
}

function phaseAgentsFrom(given: readonly string[]): Partial<Record<WrittenPhase, string>> {
  const agents: Partial<Record<WrittenPhase, string>> = {};
  for (const each of given) {
    const [, word = "", agent = ""] = /^([^=]*)=(.*)$/s.exec(each) ?? [];
    const phase = parseChoice(...WrittenPhase.options)("phase-agent", word);
    if (agent === "") throw new CaissonError("invalid", `--phase-agent ${each} names no agent`, { hint: `Say which: ${phase}=AGENT.` });
    if (agents[phase] !== undefined) throw new CaissonError("invalid", `--phase-agent says twice who writes ${phase}`);
    agents[phase] = agent;
  }
  return agents;
}

function gatesFrom(given: readonly string[]): GatePhase[] {
  if (given.length === 0) return [...GatePhase.options];
  if (!given.includes("none")) return given.map((each) => parseChoice(...GatePhase.options)("gate", each));
  if (given.length > 1) throw new CaissonError("invalid", "--gate none goes with no other --gate");
  return [];
}
