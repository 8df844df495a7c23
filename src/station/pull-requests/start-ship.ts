import type { z } from "zod";
import { CaissonError } from "../../contract/error/error.ts";
import { foundOrNull } from "../../contract/error/found-or-null.ts";
import type { SecretConfig } from "../../contract/network/network.ts";
import type { RunView } from "../../contract/run/run-verbs.ts";
import type { SessionDetails } from "../../contract/session/session-verbs.ts";
import type { ShipTarget, TestEvidence } from "../../contract/ship/ship.ts";
import type { NewShipEvent } from "../../contract/ship/ship-event.ts";
import type { StartShip } from "../../contract/ship/ship-verbs.ts";
import type { RunVerbs } from "../../verbs/runs.ts";
import type { SessionVerbs } from "../../verbs/sessions.ts";
import type { SpecVerbs } from "../../verbs/specs.ts";
import { isIdPrefix } from "../names/one-of.ts";
import { slugOf } from "./branch-name.ts";
import { shipTarget } from "./ship-target.ts";
import { type ShippedSpec, specBody, specToShip } from "./spec-request.ts";
import {
  type FoundTests,
  findHiddenTests,
  findTests,
  type HiddenTests,
  type PlacedRunEvent,
  passedTests,
  testsText,
} from "./test-evidence.ts";

const TITLE_CHARACTERS_MAX = 72;
const TASK_CHARACTERS_MAX = 4000;

export interface StartShipParts {
  runs: Pick<RunVerbs, "get" | "events">;
  sessions: Pick<SessionVerbs, "get">;
  specs: Pick<SpecVerbs, "get">;
  secretsOf(owner: string): Promise<Readonly<Record<string, SecretConfig>>>;
  author: { name: string; email: string };
}

type ShipRequest = z.output<typeof StartShip>;

/** The work to ship and its target. */
export interface NamedWork {
  session: SessionDetails;
  spec: ShippedSpec | null;
  /** All runs that worked in the session. */
  runs: readonly RunView[];
  run: RunView | null;
  target: ShipTarget;
}

/** Looks up the work and checks that it can be shipped. Throws as `start`. */
export async function findWork(request: ShipRequest, parts: StartShipParts): Promise<NamedWork> {
  const { session, spec } = await workNamed(request.of, parts);
  const runs = await runsOf(session, parts);
  const run = runs.find(({ run: id, name }) => id === request.of || name === request.of) ?? runs.at(-1) ?? null;
  if (session.lock !== null && !session.lock.stale)
    throw new CaissonError("conflict", `a run is at work in the session ${session.id}`, { hint: "Wait for it to end: caisson logs -f." });
  if (session.source.kind === "upload")
    throw new CaissonError("unsupported", `the files of ${session.id} were uploaded from another machine, without their repository`, {
      hint: `On the machine that they came from, apply the changes with \`caisson apply ${session.id}\` and push them. Or start from a repository with \`caisson run --repo https://HOST/OWNER/NAME\`.`,
    });
  return { session, spec, runs, run, target: shipTarget(request, session.source) };
}

/** Builds the creation event of a ship, after every check that is possible in advance. Throws as `start`. */
export async function newShip(
  request: ShipRequest,
  { session, spec, runs, run, target }: NamedWork,
  { owner, ...parts }: StartShipParts & { owner: string },
): Promise<Extract<NewShipEvent, { type: "ship.created" }>> {
  await checkToken(target, owner, parts);
  const tests = await evidenceFor(request, { session: session.id, runs }, parts);
  const task = run === null ? null : await taskOf(run.run, parts);
  const title = request.title ?? titleOf(spec?.title ?? task ?? `Changes of ${session.id}`);
  const ticket = request.ticket?.replace(/^#/, "") ?? null;
  return {
    type: "ship.created",
    data: {
      session: session.id,
      run: run?.run ?? null,
      ...(spec !== null && { spec: spec.spec }),
      target,
      branch: { kind: request.kind ?? "feature", ticket, slug: slugOf(title) },
      title,
      body: request.body ?? (spec === null ? bodyOf({ task, tests, run: run?.run ?? null, ticket }) : specBody(spec, { tests, ticket })),
      author: parts.author,
      tests,
      merge: request.merge ?? false,
      includeConfiguration: request.includeConfiguration ?? false,
      leaveOut: request.leaveOut ?? false,
    },
  };
}

/** Returns the evidence that the tests passed, or the reason to ship without. Throws `conflict`. */
export async function evidenceFor(
  request: Pick<ShipRequest, "tests" | "withoutTests">,
  { session, runs }: { session: string; runs: readonly Pick<RunView, "run">[] },
  parts: Pick<StartShipParts, "runs">,
): Promise<TestEvidence> {
  if (request.withoutTests !== undefined) return { kind: "waived", reason: request.withoutTests };
  const { found, hidden } = await testsOf(runs, { ...parts, named: request.tests });
  return passedTests(found, { session, hidden });
}

/** Looks up the session to ship, given a session, a run or a spec. Throws `not_found`, `conflict`. */
async function workNamed(word: string, parts: StartShipParts): Promise<{ session: SessionDetails; spec: ShippedSpec | null }> {
  const ofSpec = async () => {
    const spec = await specToShip(word, parts.specs);
    return spec === null ? null : { session: await parts.sessions.get(spec.session), spec };
  };
  if (isIdPrefix("spec", word)) return (await ofSpec()) as { session: SessionDetails; spec: ShippedSpec };
  try {
    return { session: await parts.sessions.get(word), spec: null };
  } catch (error) {
    const found = error instanceof CaissonError && error.code === "not_found" ? await ofSpec() : null;
    if (found === null) throw error;
    return found;
  }
}

/** Returns the run's original task. */
async function taskOf(run: string, { runs }: Pick<StartShipParts, "runs">): Promise<string | null> {
  for await (const event of runs.events(run)) return event.type === "run.created" ? event.data.task : null;
  return null;
}

/**
 * Returns all runs that worked in the session, in order: the ship contains their combined result. Throws `conflict`.
 */
export async function runsOf(session: SessionDetails, { runs }: Pick<StartShipParts, "runs">): Promise<RunView[]> {
  const ids = new Set(session.history.flatMap((event) => (event.type === "session.run_started" ? [event.data.run] : [])));
  const found: RunView[] = [];
  for (const id of ids) {
    const run = await foundOrNull(runs.get(id));
    if (run === null) continue;
    if (run.status !== "ended")
      throw new CaissonError("conflict", `the run ${id} has not ended`, { hint: `Wait for it, or stop it: caisson stop ${id}.` });
    found.push(run);
  }
  return found;
}

async function testsOf(
  runs: readonly Pick<RunView, "run">[],
  { runs: verbs, named }: Pick<StartShipParts, "runs"> & { named: string | undefined },
): Promise<{ found: FoundTests | null; hidden: HiddenTests | null }> {
  let found: FoundTests | null = null;
  let hidden: HiddenTests | null = null;
  for (const { run: id } of runs) {
    const events: PlacedRunEvent[] = [];
    for await (const event of verbs.events(id))
      if (event.type === "tool.requested" || event.type === "tool.ended" || event.type === "file.changed") events.push(event);
    const later = findTests(id, events, { named });
    hidden = findHiddenTests(events) ?? hidden;
    const changed = events.findLast((event) => event.type === "file.changed");
    if (later !== null) found = later;
    else if (found !== null && changed?.type === "file.changed") found = { evidence: found.evidence, changedAfter: changed.data.path };
  }
  return { found, hidden };
}

/** Checks that the secret exists. Each request checks whether the secret may go to its host. */
export async function checkToken(
  { token, remote }: ShipTarget,
  owner: string,
  { secretsOf }: Pick<StartShipParts, "secretsOf">,
): Promise<void> {
  if (token === null || Object.hasOwn(await secretsOf(owner), token)) return;
  const { hostname, port } = new URL(remote);
  const host = hostname === "github.com" ? "github.com,api.github.com" : hostname;
  throw new CaissonError("not_found", `the station has no secret ${token} to authenticate with`, {
    hint: `Store one: caisson secret set '${token}@${host}${port === "" ? "" : `;ports=${port}`}'. To use another secret, name it with --token.`,
  });
}

function titleOf(task: string): string {
  const line = task.trim().split("\n", 1)[0]?.trim() || "Changes";
  return line.length <= TITLE_CHARACTERS_MAX ? line : `${line.slice(0, TITLE_CHARACTERS_MAX - 1).trimEnd()}…`;
}

/** Returns the body of the pull request: the task and known facts, and no text from agents. */
function bodyOf({
  task,
  tests,
  run,
  ticket,
}: {
  task: string | null;
  tests: TestEvidence;
  run: string | null;
  ticket: string | null;
}): string {
  const parts = [
    task === null ? null : task.trim().slice(0, TASK_CHARACTERS_MAX),
    ticket === null ? null : `Ticket: ${ticket}`,
    testsText(tests),
    run === null ? null : `Run: ${run}`,
  ];
  return parts.filter((part) => part !== null && part !== "").join("\n\n");
}
