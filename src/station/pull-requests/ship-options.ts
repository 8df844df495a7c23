import type { z } from "zod";
import { CaissonError } from "../../contract/error/error.ts";
import type { TestEvidence } from "../../contract/ship/ship.ts";
import type { NewShipEvent } from "../../contract/ship/ship-event.ts";
import type { ShipFacts } from "../../contract/ship/ship-facts.ts";
import type { StartShip } from "../../contract/ship/ship-verbs.ts";
import { slugOf } from "./branch-name.ts";
import { testsText } from "./test-evidence.ts";

type Created = NonNullable<ShipFacts["created"]>;
type Changes = Omit<Extract<NewShipEvent, { type: "ship.options_changed" }>["data"], "by">;

/** Errors after which the remote may still have received the request. */
const UNCERTAIN: ReadonlySet<string> = new Set(["unavailable", "timeout", "busy", "protocol", "internal"]);

/**
 * Returns the events that apply the options of a repeated request to an open ship; none if it already has them. Options
 * that the request does not name stay. Throws `conflict`, naming the ship, for an option that can no longer change.
 */
export function takeUpOptions(
  ship: string,
  { facts, asked: request, tests, by }: { facts: ShipFacts; asked: z.output<typeof StartShip>; tests: TestEvidence | null; by: string },
): NewShipEvent[] {
  const { created } = facts;
  if (created === null) throw new CaissonError("internal", `the log of ${ship} has no creation event`);
  const changes = changesOf(created, request, tests);
  const names = Object.keys(changes) as (keyof Changes)[];
  const fixed = names.map((name) => [name, whyFixed(name, { facts, created, changes })] as const).find(([, why]) => why !== null);
  if (fixed !== undefined) throw cannotChange(ship, fixed[0], fixed[1] ?? "");
  if (request.merge === false && facts.isMergeAsked) throw cannotChange(ship, "merge", "its merge is already requested");
  return [
    ...(names.length === 0 ? [] : [{ type: "ship.options_changed" as const, data: { by, ...changes } }]),
    ...(request.merge === true && !facts.isMergeAsked ? [{ type: "ship.merge_asked" as const, data: { by } }] : []),
  ];
}

/** Returns the requested options that differ from the current ones. */
function changesOf(created: Created, request: z.output<typeof StartShip>, tests: TestEvidence | null): Changes {
  const target = {
    ...created.target,
    ...(request.into !== undefined && { into: request.into }),
    ...(request.forge !== undefined && { forge: request.forge }),
    ...(request.token !== undefined && { token: request.token }),
    ...(request.allowPrivate !== undefined && !created.target.remote.startsWith("/") && { allowPrivate: request.allowPrivate }),
  };
  const branch = {
    kind: request.kind ?? created.branch.kind,
    ticket: request.ticket?.replace(/^#/, "") ?? created.branch.ticket,
    slug: request.title === undefined ? created.branch.slug : slugOf(request.title),
  };
  const wanted: Required<Changes> = {
    target,
    branch,
    title: request.title ?? created.title,
    tests: tests ?? created.tests,
    // The text written by Caisson says how the work was tested.
    body: request.body ?? (tests === null ? created.body : created.body.replace(testsText(created.tests), () => testsText(tests))),
    includeConfiguration: request.includeConfiguration ?? created.includeConfiguration,
    leaveOut: request.leaveOut ?? created.leaveOut,
  };
  const isNew = ([name, value]: [string, unknown]) => JSON.stringify(value) !== JSON.stringify(created[name as keyof Changes]);
  return Object.fromEntries(Object.entries(wanted).filter(isNew));
}

/** Returns why an option can no longer change, or null if it can. */
function whyFixed(
  name: keyof Changes,
  { facts, created, changes }: { facts: ShipFacts; created: Created; changes: Changes },
): string | null {
  const isUncertain = facts.failure === null || UNCERTAIN.has(facts.failure.error.code);
  if (name !== "target") {
    if (facts.pushed !== null) return "its branch is pushed";
    return facts.step === "push" && isUncertain ? "its branch may be pushed already" : null;
  }
  const { into, forge } = changes.target ?? created.target;
  if (into === created.target.into && forge === created.target.forge) return null;
  if (facts.request !== null) return "its pull request is open";
  return facts.step === "request" && isUncertain ? "its pull request may be open already" : null;
}

/** The names of the options in messages. */
const spoken: Readonly<Record<keyof Changes | "merge", string>> = {
  target: "target",
  branch: "branch name",
  title: "title",
  body: "text",
  tests: "test evidence",
  includeConfiguration: "choice of files",
  leaveOut: "choice of files",
  merge: "merge option",
};

function cannotChange(ship: string, name: keyof typeof spoken, why: string): CaissonError {
  return new CaissonError("conflict", `${ship} ships this work already, and its ${spoken[name]} can no longer change: ${why}`, {
    hint: `Continue with the current options: caisson ship ${ship}. To use other options, cancel it first: caisson ship cancel ${ship}`,
    details: { ship },
  });
}
