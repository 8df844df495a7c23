import type { CoverageRow, DataOf, SpecData, WrittenPhase } from "../../contract/spec/spec.ts";
import { diffLines } from "../../workspace/text-diff.ts";

const CONTEXT_LINES = 3;

const titles: Readonly<Record<WrittenPhase, string>> = {
  explore: "Current state",
  prd: "What is needed",
  requirements: "Requirements",
  design: "Design",
  tasks: "Tasks",
  sync: "Traceability",
};

type Writers = { [Phase in WrittenPhase]: (data: DataOf<Phase>) => string[] };

const writers: Writers = {
  explore: ({ summary, keyFiles, scope, questions }) => [
    ...paragraph(summary),
    ...listSection(
      "Key files",
      keyFiles.map(({ path, why }) => `\`${path}\`${why === "" ? "" : `: ${why}`}`),
    ),
    ...listSection("In scope", scope.inside),
    ...listSection("Out of scope", scope.outside),
    ...listSection("Open questions", questions),
  ],
  prd: ({ problem, goals, stories, metrics, outOfScope }) => [
    ...paragraph(problem),
    ...listSection("Goals", goals),
    ...listSection(
      "Stories",
      stories.map(({ id, as, want, so }) => `**${id}**: as ${as}, I want ${want}${so === "" ? "" : `, so that ${so}`}`),
    ),
    ...listSection(
      "Metrics",
      metrics.map(({ name, target }) => `${name}: ${target}`),
    ),
    ...listSection("Out of scope", outOfScope),
  ],
  requirements: ({ requirements }) =>
    requirements.flatMap(({ id, statement, story, criteria }) => [
      `### ${id}${story === undefined ? "" : ` (${story})`}`,
      "",
      ...paragraph(statement),
      ...(criteria.length === 0 ? [] : [...criteria.map((each) => `- [ ] ${oneLine(each)}`), ""]),
    ]),
  design: ({ overview, components, api, data, security }) => [
    ...paragraph(overview),
    ...listSection(
      "Components",
      components.map(
        ({ name, does, requirements }) => `**${name}**: ${does}${requirements.length === 0 ? "" : ` (${requirements.join(", ")})`}`,
      ),
    ),
    ...section("API", api),
    ...section("Data", data),
    ...section("Security", security),
  ],
  tasks: ({ tasks, criticalPath }) => [
    ...tasks.flatMap(({ id, title, description, hours, dependsOn, requirements }) => [
      `### ${id}: ${oneLine(title)}`,
      "",
      ...paragraph(description),
      `- ${hours} h`,
      ...(dependsOn.length === 0 ? [] : [`- after ${dependsOn.join(", ")}`]),
      ...(requirements.length === 0 ? [] : [`- for ${requirements.join(", ")}`]),
      "",
    ]),
    ...(criticalPath.length === 0 ? [] : [`Critical path: ${criticalPath.join(" → ")}`, ""]),
  ],
  sync: ({ matrix, gaps, ready }) => [
    "| requirement | components | tasks |",
    "| --- | --- | --- |",
    ...matrix.map(
      ({ requirement, components, tasks }) => `| ${cell(requirement)} | ${cell(components.join(", "))} | ${cell(tasks.join(", "))} |`,
    ),
    "",
    ...listSection("Gaps", gaps),
    ready ? "Ready." : "Not ready.",
    "",
  ],
};

/** Renders a spec as Markdown. `coverage` adds the files that its tasks actually changed. */
export function specMarkdown(spec: { title: string; idea: string; data: SpecData; coverage?: readonly CoverageRow[] }): string {
  const lines = [`# ${oneLine(spec.title)}`, "", ...paragraph(spec.idea)];
  for (const phase of Object.keys(writers) as WrittenPhase[]) lines.push(...phaseLines(phase, spec.data));
  const changed = (spec.coverage ?? []).filter(({ changes }) => changes.length > 0);
  if (changed.length > 0)
    lines.push("## Coverage", "", "| requirement | tasks | changes |", "| --- | --- | --- |", ...changed.map(coverageLine), "");
  return `${lines.join("\n").trimEnd()}\n`;
}

function phaseLines(phase: WrittenPhase, data: SpecData): string[] {
  const written = data[phase];
  if (written === undefined) return [];
  const write = writers[phase] as (data: unknown) => string[];
  return [`## ${titles[phase]}`, "", ...write(written)];
}

function coverageLine({ requirement, tasks, changes }: CoverageRow): string {
  const paths = [...new Set(changes.map(({ path }) => path))];
  return `| ${cell(requirement)} | ${cell(tasks.join(", "))} | ${cell(paths.join(", "))} |`;
}

/** Returns the difference of two versions, each line with its sign. Unchanged lines are included only near changes. */
export function specDiff(before: string, after: string): string {
  const pieces = diffLines(before.split("\n"), after.split("\n"));
  if (pieces.every(({ sign }) => sign === " ")) return "";
  return pieces
    .flatMap(({ sign, lines }, index) => {
      if (sign !== " " || lines.length <= 2 * CONTEXT_LINES) return lines.map((each) => `${sign}${each}`);
      const head = index === 0 ? [] : lines.slice(0, CONTEXT_LINES);
      const tail = index === pieces.length - 1 ? [] : lines.slice(-CONTEXT_LINES);
      return [...head.map((each) => ` ${each}`), ...(tail.length === 0 ? [] : ["@@"]), ...tail.map((each) => ` ${each}`)];
    })
    .join("\n")
    .concat("\n");
}

const oneLine = (text: string) => text.replace(/\s+/g, " ").trim();
const cell = (text: string) => oneLine(text).replaceAll("|", "\\|");
const paragraph = (text: string): string[] => (text.trim() === "" ? [] : [text.trim(), ""]);
const section = (title: string, text: string): string[] => (text.trim() === "" ? [] : [`### ${title}`, "", text.trim(), ""]);
const listSection = (title: string, items: readonly string[]): string[] =>
  items.length === 0 ? [] : [`### ${title}`, "", ...items.map((item) => `- ${oneLine(item)}`), ""];
