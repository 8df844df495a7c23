import type { z } from "zod";
import { CaissonError } from "../../contract/error.ts";
import type { TestEvidence } from "../../contract/ship.ts";
import type { NewShipEvent } from "../../contract/ship-event.ts";
import type { ShipFacts } from "../../contract/ship-facts.ts";
import type { StartShip } from "../../contract/ship-verbs.ts";
import { slugOf } from "./branch-name.ts";
import { testsText } from "./test-evidence.ts";

type Created = NonNullable<ShipFacts["created"]>;
type Changes = Omit<Extract<NewShipEvent, { type: "ship.options_changed" }>["data"], "by">;

/** After such a failure the remote may have what was sent. */
const UNCERTAIN: ReadonlySet<string> = new Set(["unavailable", "timeout", "busy", "protocol", "internal"]);

/**
 * The events by which an open ship takes up the options of a second request; none when it has them already. What the
 * request does not name stays. Throws `conflict` for an option that cannot change any more, and names the ship.
 */
export function takeUpOptions(
  ship: string,
  { facts, asked, tests, by }: { facts: ShipFacts; asked: z.output<typeof StartShip>; tests: TestEvidence | null; by: string },
): NewShipEvent[] {
  const { created } = facts;
  if (created === null) throw new CaissonError("internal", `nothing is known of ${ship}`);
  const changes = changesOf(created, asked, tests);
  const names = Object.keys(changes) as (keyof Changes)[];
  const fixed = names.map((name) => [name, whyFixed(name, { facts, created, changes })] as const).find(([, why]) => why !== null);
  if (fixed !== undefined) throw cannotChange(ship, fixed[0], fixed[1] ?? "");
  if (asked.merge === false && facts.isMergeAsked) throw cannotChange(ship, "merge", "it is to be merged as soon as it can be");
  return [
    ...(names.length === 0 ? [] : [{ type: "ship.options_changed" as const, data: { by, ...changes } }]),
    ...(asked.merge === true && !facts.isMergeAsked ? [{ type: "ship.merge_asked" as const, data: { by } }] : []),
  ];
}

/** What was said and is different. */
function changesOf(created: Created, asked: z.output<typeof StartShip>, tests: TestEvidence | null): Changes {
  const target = {
    ...created.target,
    ...(asked.into !== undefined && { into: asked.into }),
    ...(asked.forge !== undefined && { forge: asked.forge }),
    ...(asked.token !== undefined && { token: asked.token }),
    ...(asked.allowPrivate !== undefined && !created.target.remote.startsWith("/") && { allowPrivate: asked.allowPrivate }),
  };
  const branch = {
    kind: asked.kind ?? created.branch.kind,
    ticket: asked.ticket?.replace(/^#/, "") ?? created.branch.ticket,
    slug: asked.title === undefined ? created.branch.slug : slugOf(asked.title),
  };
  const wanted: Required<Changes> = {
    target,
    branch,
    title: asked.title ?? created.title,
    tests: tests ?? created.tests,
    // The text that Caisson wrote says how it was tested.
    body: asked.body ?? (tests === null ? created.body : created.body.replace(testsText(created.tests), () => testsText(tests))),
    includeConfiguration: asked.includeConfiguration ?? created.includeConfiguration,
    leaveOut: asked.leaveOut ?? created.leaveOut,
  };
  const isNew = ([name, value]: [string, unknown]) => JSON.stringify(value) !== JSON.stringify(created[name as keyof Changes]);
  return Object.fromEntries(Object.entries(wanted).filter(isNew));
}

/** Why an option cannot change any more; null: it can. */
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

/** As the options are called. */
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
  return new CaissonError("conflict", `${ship} ships this work already, and its ${spoken[name]} cannot change any more: ${why}`, {
    hint: `Continue with it as it is: caisson ship ${ship}. To ship with other options cancel it first: caisson ship cancel ${ship}`,
    details: { ship },
  });
}
