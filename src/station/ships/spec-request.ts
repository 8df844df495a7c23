import { CaissonError } from "../../contract/error.ts";
import type { TestEvidence } from "../../contract/ship.ts";
import type { CoverageRow } from "../../contract/spec.ts";
import type { SpecView } from "../../contract/spec-verbs.ts";
import type { SpecVerbs } from "../specs/verbs.ts";
import { testsText } from "./test-evidence.ts";

/** Less than what a ship's body may have: what is around it fits, too. */
const REQUIREMENTS_CHARACTERS_MAX = 12_000;
const IDEA_CHARACTERS_MAX = 4000;
/** Files of one requirement that are named. */
const PATHS_MAX = 20;

/** What of a spec is shipped. */
export type ShippedSpec = Pick<SpecView, "spec" | "title" | "idea" | "coverage"> & { session: string };

/**
 * The spec that is to be shipped, or null when the word stands for something else. Throws `not_found` for the id of
 * none, `conflict` for one that is not done, or that changed nothing.
 */
export async function specToShip(word: string, specs: Pick<SpecVerbs, "get">): Promise<ShippedSpec | null> {
  const found = await specs.get(word).catch((error: unknown) => {
    if (word.startsWith("spec_") || !(error instanceof CaissonError) || error.code !== "not_found") throw error;
    return null;
  });
  if (found === null) return null;
  const { spec, status, session } = found;
  if (status === "planned")
    throw new CaissonError("conflict", `of ${spec} there is a plan alone`, { hint: `Have its tasks done: caisson spec run ${spec}.` });
  if (status !== "done")
    throw new CaissonError("conflict", `${spec} is not done: it is ${status}`, { hint: `\`caisson spec show ${spec}\` tells more.` });
  if (session === null) throw new CaissonError("conflict", `${spec} has no tasks, so that there is nothing to ship`);
  return { ...found, session };
}

/**
 * The body of a spec's pull request. What agents wrote of it stands in a block of plain text: there no forge takes it
 * for a mention of somebody, a link, or an order to close something.
 */
export function specBody({ spec, idea, coverage }: ShippedSpec, { tests, ticket }: { tests: TestEvidence; ticket: string | null }): string {
  const parts = [
    idea.trim().slice(0, IDEA_CHARACTERS_MAX),
    ...(coverage.length === 0 ? [] : ["## Requirements", requirementsBlock(coverage)]),
    ...(ticket === null ? [] : [`Ticket: ${ticket}`]),
    testsText(tests),
    `Spec: ${spec}`,
  ];
  return parts.join("\n\n");
}

function requirementsBlock(coverage: readonly CoverageRow[]): string {
  const rows: string[] = [];
  let room = REQUIREMENTS_CHARACTERS_MAX;
  for (const row of coverage) {
    const text = requirementText(row);
    room -= text.length + 1;
    if (room < 0) break;
    rows.push(text);
  }
  const left = coverage.length - rows.length;
  return ["```text", ...rows, ...(left === 0 ? [] : [`… and ${left} more`]), "```"].join("\n");
}

function requirementText({ requirement, statement, tasks, changes, state }: CoverageRow): string {
  const paths = [...new Set(changes.map(({ path }) => path))];
  const more = paths.length > PATHS_MAX ? ` and ${paths.length - PATHS_MAX} more` : "";
  const changed = paths.length === 0 ? [] : [`  changed: ${paths.slice(0, PATHS_MAX).map(plain).join(", ")}${more}`];
  return [`${plain(requirement)} (${state}): ${plain(statement)}`, ...tasksLine(tasks), ...changed].join("\n");
}

const tasksLine = (tasks: readonly string[]) => (tasks.length === 0 ? [] : [`  by: ${tasks.map(plain).join(", ")}`]);

/** On one line, without what would end the block. */
const plain = (text: string) =>
  text
    .replace(/[\s\p{Cc}\p{Cf}]+/gu, " ")
    .replaceAll("```", "'")
    .trim();
