import type { AttackReport, AttackVerdict } from "../../contract/machine/attack-report.ts";

type VerdictKind = AttackVerdict["verdict"];

const marks: Record<VerdictKind, string> = { observed: "✓", failed: "✗", declared: "·", unverifiable: "?" };
const SEEN_CHARACTERS = 300;

/** Formats one verdict for people: a line, and a second one if there is something to explain. */
export function verdictText(verdict: AttackVerdict): string {
  const head = `${marks[verdict.verdict]} ${verdict.id}  ${verdict.title}`;
  if (verdict.verdict === "observed") return head;
  return `${head}\n       ${verdict.verdict}: ${verdict.seen.slice(0, SEEN_CHARACTERS)}`;
}

/** Summarizes a report in two lines. */
export function summaryText(report: AttackReport): string {
  const count = (kind: VerdictKind) => report.verdicts.filter((each) => each.verdict === kind).length;
  const counts = `${count("observed")} observed, ${count("declared")} declared, ${count("unverifiable")} unverifiable, ${count("failed")} failed`;
  const seconds = ((Date.parse(report.endedAt) - Date.parse(report.startedAt)) / 1000).toFixed(1);
  const verdict = report.holds
    ? "Every claim that could be tested holds."
    : "Not every claim holds: do not rely on this runtime where a claim failed.";
  return `${report.runtime}: ${counts} (${seconds} s)\n${verdict}`;
}
