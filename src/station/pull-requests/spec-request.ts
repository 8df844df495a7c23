import { CaissonError } from "../../contract/error/error.ts";
import type { TestEvidence } from "../../contract/ship/ship.ts";
import type { CoverageRow } from "../../contract/spec/spec.ts";
import type { SpecView } from "../../contract/spec/spec-verbs.ts";
import type { SpecVerbs } from "../../verbs/specs.ts";
import { testsText } from "./test-evidence.ts";

/** Smaller than a ship's body may be, which leaves room for the other parts. */
const REQUIREMENTS_CHARACTERS_MAX = 12_000;
const IDEA_CHARACTERS_MAX = 4000;
/** How many files we list per requirement. */
const PATHS_MAX = 20;

/** The parts of a spec that a ship uses. */
export type ShippedSpec = Pick<SpecView, "spec" | "title" | "idea" | "coverage"> & { session: string };

/**
 * Returns the spec to ship, or null if the word does not name a spec. Throws `not_found` for an unknown spec id, and
 * `conflict` if the spec is not done or changed nothing.
 */
export async function specToShip(word: string, specs: Pick<SpecVerbs, "get">): Promise<ShippedSpec | null> {
  const found = await specs.get(word).catch((error: unknown) => {
    if (word.startsWith("spec_") || !(error instanceof CaissonError) || error.code !== "not_found") throw error;
    return null;
  });
  if (found === null) return null;
  const { spec, status, session } = found;
  if (status === "planned")
    throw new CaissonError("conflict", `${spec} is only planned`, { hint: `Run its tasks first: caisson spec run ${spec}.` });
  if (status !== "done")
    throw new CaissonError("conflict", `${spec} is not done: its status is ${status}`, {
      hint: `Run \`caisson spec show ${spec}\` for details.`,
    });
  if (session === null) throw new CaissonError("conflict", `${spec} has no tasks, so there is nothing to ship`);
  return { ...found, session };
}

/**
 * Returns the body of a spec's pull request. Text from agents goes into a plain-text block, where no forge reads it as
 * a mention, a link or a closing keyword.
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

/** Puts text on one line, without the fence that would end the block. */
const plain = (text: string) =>
  text
    .replace(/[\s\p{Cc}\p{Cf}]+/gu, " ")
    .replaceAll("```", "'")
    .trim();
