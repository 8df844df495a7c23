import { TriangleAlert } from "lucide-react";
import type { RunView } from "../../../../src/contract/run/run-verbs.ts";
import { ScrollBox } from "../../parts/scroll-box.tsx";
import { visibleLines } from "../../parts/visible-text.ts";
import styles from "./run.module.css";
import type { Timeline } from "./timeline.ts";

/** Explains at the top of the page why a run stopped early. Questions and stops by a person need no banner. */
export function RunBanner({ view, timeline }: { view: RunView; timeline: Timeline }) {
  const reason = reasonOf(view, timeline);
  if (reason === null) return null;
  const { title, text, isBad } = reason;
  return (
    <section className={`${styles.banner} ${isBad ? styles.bad : ""}`} aria-label="Why the run stopped">
      <TriangleAlert aria-hidden="true" />
      <div>
        <strong>{title}</strong>
        {text !== "" && (
          <ScrollBox as="div" className={styles.reason} label="Reason">
            {visibleLines(text)}
          </ScrollBox>
        )}
      </div>
    </section>
  );
}

const endings = {
  error: "The run failed",
  stuck: "The run got stuck",
  max_steps: "The run reached its step limit",
  timeout: "The run reached its time limit",
  budget: "The run used up its budget",
} as const;

/** The timeline shows longer texts in full. */
const REASON_CHARACTERS_MAX = 4_000;

function reasonOf(view: RunView, timeline: Timeline): { title: string; text: string; isBad: boolean } | null {
  if (view.status === "damaged") return { title: "The run log is damaged", text: view.damage ?? "", isBad: true };
  if (view.status === "interrupted")
    return { title: "The run was interrupted", text: "Resume it to continue where it left off.", isBad: true };
  if (view.status === "paused" && view.asked.length === 0)
    return { title: "The run is paused", text: view.paused?.text ?? "", isBad: false };
  if (view.status !== "ended" || view.finish === null || view.finish === "done" || view.finish === "cancelled") return null;
  const ended = timeline.items.findLast((item) => item.kind === "ended");
  return { title: endings[view.finish], text: (ended?.text ?? "").slice(0, REASON_CHARACTERS_MAX), isBad: true };
}
