import type { SpecView } from "../../contract/spec/spec-verbs.ts";
import { bad, bold, dim, good, type Line, line } from "../terminal/line.ts";
import { table } from "../terminal/table.ts";

const marks: Readonly<Record<SpecView["phases"][number]["state"], string>> = {
  missing: "·",
  working: "…",
  asked: "?",
  stale: "~",
  written: "✓",
  failed: "✗",
};
const CHANGES_SHOWN = 5;

/** Formats a spec for people. */
export function specLines(view: SpecView): Line[] {
  return [
    line`${bold(view.title)}`,
    line`${view.spec}${view.name === null ? "" : ` (${view.name})`}  ${statusText(view)}  version ${view.version}`,
    line``,
    ...phaseRows(view),
    ...attemptRows(view),
    ...decisionRows(view),
    ...taskRows(view),
    ...coverageRows(view),
    line``,
    ...nextLines(view),
  ];
}

/** Lists what the user can do next. */
export function nextLines(view: SpecView): Line[] {
  const word = view.name ?? view.spec;
  if (view.asked !== null) {
    const { phase, version } = view.asked;
    return [
      line`${phase} (version ${version}) needs your approval; to read it: caisson spec export ${word}`,
      line`  caisson spec approve ${word} --version ${version}`,
      line`  caisson spec reject ${word} "what must change"`,
    ];
  }
  switch (view.status) {
    case "draft":
      return [line`Next: caisson spec run ${word}`];
    case "running":
    case "retrying":
    case "waiting":
    case "paused":
      return [...mergingLines(view), line`To follow it: caisson spec run ${word}`];
    case "planned":
      return [line`To run the tasks: caisson spec run ${word}`];
    case "failed":
    case "cancelled":
      return [line`${view.ended?.text ?? ""}`, line`To try again: caisson spec resume ${word}`];
    case "done":
      return view.session === null ? [line`Nothing was changed.`] : doneLines(view.session, word);
    default:
      return view.status satisfies never;
  }
}

/** Lists merges in progress, because they may wait for a person. */
function mergingLines({ merges }: SpecView): Line[] {
  return merges.flatMap(({ merge, session, text }) =>
    merge === null || session !== null || (text ?? "") !== "" ? [] : [line`Its tasks are being merged: caisson merge show ${merge}`],
  );
}

function doneLines(session: string, word: string): Line[] {
  return [
    line`The changes are in the session ${session}:`,
    line`  caisson diff ${session}     review the changes`,
    line`  caisson apply ${session}    apply them to your folder`,
    line`  caisson branch ${session}   put them on a branch`,
    line`  caisson ship ${word}     open a pull request`,
  ];
}

function statusText({ status, dueAt }: SpecView): Line {
  if (status === "done" || status === "planned") return good(status);
  if (status === "failed") return bad(status);
  return line`${status}${dueAt === null ? "" : ` until ${dueAt}`}`;
}

function phaseRows({ phases }: SpecView): Line[] {
  return table(phases.map(({ phase, state, version }) => [marks[state], phase, state, version === null ? "" : `version ${version}`]));
}

function attemptRows({ attempts }: SpecView): Line[] {
  if (attempts.length === 0) return [];
  const rows = attempts.flatMap(({ phase, attempt, run, judgement }) => {
    const score = judgement === null ? "at work" : `${judgement.passed ? "passed" : "failed"} with ${judgement.score}`;
    const wrong = judgement === null || judgement.passed ? [] : judgement.checks.filter(({ feedback }) => feedback !== "");
    return [line`  ${phase} ${attempt}: ${score}  ${dim(run ?? "no run")}`, ...wrong.map(({ feedback }) => dim("      ", feedback))];
  });
  return [line``, bold("Attempts"), ...rows];
}

function decisionRows({ decisions }: SpecView): Line[] {
  if (decisions.length === 0) return [];
  const rows = decisions.map(
    ({ phase, version, by, at, approved, text }) =>
      line`  ${at}  ${by} ${approved ? "approved" : "rejected"} ${phase} (version ${version})${text === "" ? "" : `: ${text}`}`,
  );
  return [line``, bold("Decisions"), ...rows];
}

function taskRows({ tasks }: SpecView): Line[] {
  if (tasks.length === 0) return [];
  const rows = tasks.map(({ id, state, title, run, dependsOn }) => [
    ...["", id, state, run ?? "", dependsOn.length === 0 ? title : `${title} (after ${dependsOn.join(", ")})`],
  ]);
  return [line``, bold("Tasks"), ...table(rows)];
}

function coverageRows({ coverage, tasks }: SpecView): Line[] {
  if (coverage.length === 0 || tasks.length === 0) return [];
  const rows = coverage.map(({ requirement, state, tasks: own, changes }) => {
    const paths = [...new Set(changes.map(({ path }) => path))];
    const more = paths.length > CHANGES_SHOWN ? ` and ${paths.length - CHANGES_SHOWN} more` : "";
    return ["", requirement, state, own.join(", "), `${paths.slice(0, CHANGES_SHOWN).join(", ")}${more}`];
  });
  return [line``, bold("Coverage"), ...table(rows)];
}
