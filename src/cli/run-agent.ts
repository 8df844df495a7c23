import { resolve } from "node:path";
import { createInterface } from "node:readline/promises";
import { absoluteSecrets } from "../contract/absolute-secrets.ts";
import { AgentDefinition } from "../contract/agent.ts";
import { CaissonError } from "../contract/error.ts";
import type { FinishReason } from "../contract/run.ts";
import type { RunEvent } from "../contract/run-event.ts";
import { waitsForResume } from "../contract/run-facts.ts";
import type { Session } from "../contract/session.ts";
import { newId } from "../lib/new-id.ts";
import { createRunInNewSession } from "../station/runs/new-run.ts";
import type { ParsedArguments } from "./command.ts";
import type { CliContext } from "./context.ts";
import { followRun } from "./follow-run.ts";
import { line } from "./line.ts";
import { type NetworkAsked, networkFrom } from "./network-asked.ts";
import { inputsFrom, parseBytes, parseCount, parseDuration, parseNumber } from "./option-values.ts";
import { printOutcome } from "./run-outcome.ts";
import { imageFrom } from "./spec-options.ts";
import { type LocalStation, openStation } from "./station.ts";
import { sourceFrom } from "./workspace-source.ts";

const SHOW_GRACE_MS = 1_000;

/** Exit codes of `run` by how it ended; 125 is the platform's failure. */
export const exitCodes: Record<FinishReason, number> = {
  done: 0,
  error: 1,
  stuck: 1,
  max_steps: 1,
  budget: 1,
  timeout: 124,
  cancelled: 130,
};

export async function run(context: CliContext, given: ParsedArguments): Promise<number> {
  const record = given.option("record");
  const replay = given.option("replay");
  await using station = openStation(context, {
    ...(record ? { record: resolve(context.cwd, record) } : {}),
    ...(replay ? { replay: resolve(context.cwd, replay) } : {}),
  });
  const id = await createRun(context, station, given);
  if (given.flag("detach")) {
    await context.startDetached(["resume", id]);
    await (given.flag("json") ? context.stdout.printJson({ run: id }) : context.stdout.print(line`${id}`));
    return 0;
  }
  return await driveAndShow(context, station, id, { json: given.flag("json") });
}

async function createRun(context: CliContext, station: LocalStation, given: ParsedArguments): Promise<string> {
  const [first = "", second] = given.positionals;
  const agentName = second === undefined ? "coder" : first;
  const task = (second === undefined ? first : given.positionals.slice(1).join(" ")).trim();
  if (task === "")
    throw new CaissonError("invalid", "there is no task", { hint: 'Say what is to be done: caisson run "fix the failing test"' });
  const asked = networkFrom(given, { folder: context.cwd, secrets: context.config.secrets });
  const file = await station.agents.load(agentName, { input: inputsFrom(given), given: settingsGiven(context, given, asked) });
  const definition = withFlags(file, { context, given, asked });
  const model = given.option("model") ?? context.config.models.default ?? definition.model;
  if (model === undefined) {
    throw new CaissonError("invalid", "no model was chosen", {
      hint: "Give --model PROVIDER/MODEL, set CAISSON_MODEL, or name one in the agent's file.",
    });
  }
  // Fails here, before anything is made, when the model cannot be used.
  const { resolveModel } = await import("../agent/model/resolve-model.ts");
  const { modelOptions } = await import("./station.ts");
  const replay = given.option("replay");
  await resolveModel(model, { ...modelOptions(context), ...(replay ? { replay } : {}) });
  const run = { id: newId("run"), definition, task, model, budgets: budgetsFrom(given) };
  const named = sessionNameFrom(given);
  const known = await knownSession(station, named?.id, given);
  if (known) return await station.runs.create({ ...run, session: known.id });
  const source = await sourceFrom(context, given);
  const { cleanup } = definition.workspace;
  return await createRunInNewSession(station, { run, session: { source, cleanup, ...(named ?? { id: run.id, scope: "run" }) } });
}

/** The name under which a workspace is found again, and whose it is. Null: the run's own. */
function sessionNameFrom(given: ParsedArguments): Pick<Session, "id" | "scope"> | null {
  const session = given.option("session");
  const workflow = given.option("workflow");
  if (session !== undefined && workflow !== undefined)
    throw new CaissonError("invalid", "a run works in a session or in a workflow, not in both");
  if (session !== undefined) return { id: session, scope: "session" };
  return workflow === undefined ? null : { id: `workflow-${workflow}`, scope: "workflow" };
}

/** The settings of an agent that the command line, or the user's configuration, has the say in: what a file has there is not used. */
function settingsGiven(context: CliContext, given: ParsedArguments, asked: NetworkAsked): Set<string> {
  const byOption: Record<string, string> = {
    image: "sandbox.image",
    runtime: "sandbox.runtime",
    memory: "sandbox.limits.memoryBytes",
    cpus: "sandbox.limits.cpus",
    timeout: "harness.timeoutMs",
    "max-steps": "harness.maxSteps",
    model: "model",
  };
  return new Set([
    ...Object.entries(byOption).flatMap(([option, setting]) => (given.option(option) === undefined ? [] : [setting])),
    ...(context.config.models.default === undefined ? [] : ["model"]),
    ...(asked.network === undefined ? [] : ["sandbox.network"]),
    ...(asked.gateway === undefined ? [] : ["sandbox.gateway"]),
    ...Object.keys(asked.secrets).flatMap((name) => [`sandbox.secrets.${name}`, `sandbox.secretNames.${name}`]),
  ]);
}

function withFlags(
  definition: AgentDefinition,
  { context, given, asked }: { context: CliContext; given: ParsedArguments; asked: NetworkAsked },
): AgentDefinition {
  const limits = { ...context.config.limits, ...definition.sandbox.limits };
  const memory = given.option("memory");
  const cpus = given.option("cpus");
  if (memory !== undefined) limits.memoryBytes = parseBytes("memory", memory);
  if (cpus !== undefined) limits.cpus = parseNumber("cpus", cpus);
  const image = given.option("image");
  const timeout = given.option("timeout");
  const steps = given.option("max-steps");
  const attended = context.stdout.isTerminal || given.flag("detach");
  const onAsk = given.option("on-ask") ?? (attended ? definition.harness.onAsk : "deny");
  return AgentDefinition.parse({
    ...definition,
    sandbox: {
      ...definition.sandbox,
      limits,
      ...(given.option("runtime") === undefined ? {} : { runtime: given.option("runtime") }),
      ...(image === undefined ? {} : { image: imageFrom(image, context.cwd) }),
      ...asked,
      secrets: { ...absoluteSecrets(definition.sandbox.secrets, context.cwd), ...asked.secrets },
    },
    harness: {
      ...definition.harness,
      onAsk,
      onBudget: given.option("on-budget") ?? (attended ? definition.harness.onBudget : "stop"),
      ...(timeout === undefined ? {} : { timeoutMs: parseDuration("timeout", timeout) }),
      ...(steps === undefined ? {} : { maxSteps: parseCount("max-steps", steps) }),
    },
  });
}

function budgetsFrom(given: ParsedArguments) {
  const cost = given.option("max-cost");
  const tokens = given.option("max-tokens");
  return {
    ...(cost === undefined ? {} : { costUsd: parseNumber("max-cost", cost) }),
    ...(tokens === undefined ? {} : { tokens: parseCount("max-tokens", tokens) }),
  };
}

/** The session that was named, if it is there. One that somebody works in is refused before a run is made for it. */
async function knownSession(station: LocalStation, name: string | undefined, given: ParsedArguments): Promise<Session | null> {
  if (name === undefined) return null;
  const known = (await station.sessions.list()).find((session) => session.id === name);
  if (!known) return null;
  if (given.option("repo") !== undefined) {
    throw new CaissonError("invalid", `the session ${name} has its workspace already; --repo cannot change it`, {
      hint: "Leave --repo out, or choose another session.",
    });
  }
  await station.sessions.checkFree(name);
  return known;
}

/** Drives a run here and shows it; Ctrl-C holds it and asks, a second one stops it. */
export async function driveAndShow(
  context: CliContext,
  station: LocalStation,
  id: string,
  options: { json: boolean; fromSeq?: number },
): Promise<number> {
  const letGo = new AbortController();
  const shown = new AbortController();
  const asking = createAsking(context, station, id, options.json);
  const following = followRun(context, station, id, {
    json: options.json,
    live: true,
    signal: shown.signal,
    onEvent: asking.onEvent,
    ...(options.fromSeq === undefined ? {} : { fromSeq: options.fromSeq }),
  });
  void watchInterruption(context, station, id, letGo);
  try {
    const state = await station.runs.drive(id, { signal: letGo.signal });
    const telling = following.then(() => printOutcome(context, station, state, options));
    // The run is over; only the reader of our output can still keep us, and whoever signals now is not willing to wait for that one.
    await Promise.race([telling, context.interruption.next()]);
    return exitCodes[state.ended?.reason ?? "error"];
  } finally {
    asking.close();
    shown.abort();
    await withinGrace(following.catch(() => undefined));
  }
}

/** What is still to be shown may be stuck in a pipe that nobody reads. */
async function withinGrace(showing: Promise<unknown>): Promise<void> {
  const over = Promise.withResolvers<void>();
  const timer = setTimeout(over.resolve, SHOW_GRACE_MS);
  await Promise.race([showing, over.promise]);
  clearTimeout(timer);
}

async function watchInterruption(context: CliContext, station: LocalStation, id: string, letGo: AbortController): Promise<void> {
  const first = await context.interruption.first;
  // Told to end by somebody who cannot be asked: the run stays as it is, and `caisson resume` goes on with it.
  if (first !== "SIGINT") {
    letGo.abort();
    return;
  }
  await station.runs.pause(id, { text: "interrupted" }).catch(() => undefined);
  await context.stderr.print(line`\nInterrupted. Type a message to steer it, Enter to go on, Ctrl-C again to stop.`);
  await context.interruption.second;
  await station.runs.stop(id, { by: "Ctrl-C" }).catch(() => letGo.abort());
}

/** On a terminal, questions are answered where they are asked, and lines typed after Ctrl-C steer the run. */
function createAsking(context: CliContext, station: LocalStation, id: string, json: boolean) {
  const interactive = !json && context.stdout.isTerminal && context.stdin.isTTY;
  if (!interactive) return { onEvent: (_: RunEvent) => undefined, close: () => undefined };
  const reader = createInterface({ input: context.stdin });
  const by = context.variable("USER") ?? "user";
  let question: Extract<RunEvent, { type: "permission.asked" }>["data"] | null = null;
  reader.on("SIGINT", () => process.emit("SIGINT"));
  reader.on("line", (typed) => {
    void answerLine(station, id, { line: typed, question, by }).catch(async (error: unknown) => {
      await context.stderr.print(line`caisson: ${error instanceof Error ? error.message : String(error)}`);
    });
  });
  return {
    close: () => reader.close(),
    onEvent(event: RunEvent) {
      if (event.type === "permission.answered") question = null;
      if (event.type !== "permission.asked") return;
      question = event.data;
      const choices =
        event.data.kind === "tool"
          ? "y yes, a always, n no"
          : event.data.kind === "budget"
            ? "y raise it, n end the run"
            : "y go on, n end the run";
      void context.stdout.prompt(line`  [${choices}] `);
    },
  };
}

async function answerLine(
  station: LocalStation,
  id: string,
  about: { line: string; question: Extract<RunEvent, { type: "permission.asked" }>["data"] | null; by: string },
): Promise<void> {
  const word = about.line.trim().toLowerCase();
  if (about.question && /^(y|yes|a|always|n|no)$/.test(word)) {
    const answer = word.startsWith("n") ? "deny" : word.startsWith("a") ? "always" : "allow";
    const raised = about.question.kind === "budget" && answer !== "deny" ? { budgets: await raisedBudgets(station, id) } : {};
    await station.runs.answer(id, { question: about.question.question, answer, by: about.by, ...raised });
    return;
  }
  if (word !== "") await station.runs.send(id, { text: about.line.trim(), mode: "steer", source: "user" });
  const facts = await station.runs.facts(id);
  if (waitsForResume(facts)) await station.runs.goOn(id, { by: about.by });
}

/** Half as much again of every bound that was reached. */
export async function raisedBudgets(station: LocalStation, id: string) {
  const { usage, budgets, bounds, step, workedMs, costUsd } = await station.runs.facts(id);
  const tokens = usage.inputTokens + usage.outputTokens;
  return {
    steps: Math.ceil(Math.max(step, budgets.steps ?? bounds.steps) * 1.5),
    timeMs: Math.ceil(Math.max(workedMs, budgets.timeMs ?? bounds.timeMs) * 1.5),
    ...(budgets.tokens === undefined ? {} : { tokens: Math.ceil(Math.max(tokens, budgets.tokens) * 1.5) }),
    ...(budgets.costUsd === undefined ? {} : { costUsd: Math.max(costUsd ?? 0, budgets.costUsd) * 1.5 }),
  };
}
