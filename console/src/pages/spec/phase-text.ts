import type { SpecPhase, WrittenPhase } from "../../../../src/contract/spec/spec.ts";
import type { SpecView } from "../../../../src/contract/spec/spec-verbs.ts";
import type { Tone } from "../../parts/badge.tsx";

export const phaseTitles: Readonly<Record<SpecPhase, string>> = {
  explore: "Explore",
  prd: "Product",
  requirements: "Requirements",
  design: "Design",
  tasks: "Tasks",
  sync: "Traceability",
  complete: "Work",
};

export type PhaseState = SpecView["phases"][number]["state"];
export const phaseStates: Readonly<Record<PhaseState, { word: string; tone: Tone }>> = {
  missing: { word: "pending", tone: "idle" },
  working: { word: "in progress", tone: "busy" },
  asked: { word: "needs input", tone: "warn" },
  stale: { word: "outdated", tone: "warn" },
  written: { word: "done", tone: "good" },
  failed: { word: "failed", tone: "bad" },
};

export const isWritten = (phase: SpecPhase): phase is WrittenPhase => phase !== "complete";

/** A heading with the lines below it. Groups without lines are not shown. */
export interface TextGroup {
  title: string;
  /** `id` comes before the text, `notes` below it. */
  lines: readonly { id?: string; text: string; notes?: readonly string[] }[];
}

const plain = (title: string, lines: readonly string[]): TextGroup => ({ title, lines: lines.map((text) => ({ text })) });
const words = (title: string, text: string): TextGroup => plain(title, text === "" ? [] : [text]);

type Writers = { [Phase in WrittenPhase]: (data: NonNullable<SpecView["data"][Phase]>) => TextGroup[] };

const writers: Writers = {
  explore: ({ summary, keyFiles, scope, questions }) => [
    words("Summary", summary),
    { title: "Key files", lines: keyFiles.map(({ path, why }) => ({ id: path, text: why })) },
    plain("In scope", scope.inside),
    plain("Out of scope", scope.outside),
    plain("Open questions", questions),
  ],
  prd: ({ problem, goals, stories, metrics, outOfScope }) => [
    words("Problem", problem),
    plain("Goals", goals),
    {
      title: "Stories",
      lines: stories.map(({ id, as, want, so }) => ({ id, text: `As ${as}, I want ${want}${so === "" ? "" : `, so that ${so}`}` })),
    },
    plain(
      "Metrics",
      metrics.map(({ name, target }) => `${name}: ${target}`),
    ),
    plain("Out of scope", outOfScope),
  ],
  requirements: ({ requirements }) => [
    { title: "Requirements", lines: requirements.map(({ id, statement, criteria }) => ({ id, text: statement, notes: criteria })) },
  ],
  design: ({ overview, components, api, data, security }) => [
    words("Overview", overview),
    {
      title: "Components",
      lines: components.map(({ name, does, requirements }) => ({
        id: name,
        text: `${does}${requirements.length === 0 ? "" : ` (${requirements.join(", ")})`}`,
      })),
    },
    words("Interfaces", api),
    words("Data", data),
    words("Security", security),
  ],
  tasks: ({ tasks, criticalPath }) => [
    {
      title: "Tasks",
      lines: tasks.map(({ id, title, description, hours, dependsOn, requirements }) => ({
        id,
        text: title,
        notes: [
          ...(description === "" ? [] : [description]),
          [
            `${hours} h`,
            ...(dependsOn.length === 0 ? [] : [`after ${dependsOn.join(", ")}`]),
            ...(requirements.length === 0 ? [] : [`for ${requirements.join(", ")}`]),
          ].join(" · "),
        ],
      })),
    },
    plain("Critical path", criticalPath.length === 0 ? [] : [criticalPath.join(" → ")]),
  ],
  sync: ({ matrix, gaps, ready }) => [
    {
      title: "Traceability",
      lines: matrix.map(({ requirement, components, tasks }) => ({
        id: requirement,
        text: [...components, ...tasks].join(", "),
      })),
    },
    plain("Gaps", gaps),
    words("Ready", ready ? "yes" : "no"),
  ],
};

/** Returns the text of a phase; empty if it is not written yet. */
export function phaseText(phase: WrittenPhase, data: SpecView["data"]): TextGroup[] {
  const own = data[phase];
  if (own === undefined) return [];
  const write = writers[phase] as (data: unknown) => TextGroup[];
  return write(own).filter(({ lines }) => lines.length > 0);
}
