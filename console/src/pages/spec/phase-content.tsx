import type { WrittenPhase } from "../../../../src/contract/spec.ts";
import type { SpecView } from "../../../../src/contract/spec-verbs.ts";
import { visibleLines, visibleText } from "../../parts/visible-text.ts";
import { phaseText } from "./phase-text.ts";
import styles from "./spec.module.css";

/** What an agent wrote for a phase, as text. */
export function PhaseContent({ phase, data }: { phase: WrittenPhase; data: SpecView["data"] }) {
  const groups = phaseText(phase, data);
  if (groups.length === 0) return <p className={styles.quiet}>Nobody has written it yet.</p>;
  return (
    <div className={styles.content}>
      {groups.map(({ title, lines }) => (
        <section key={title}>
          <h3>{title}</h3>
          <ul>
            {lines.map(({ id, text, notes = [] }, index) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: a line is its place.
              <li key={index}>
                {id !== undefined && <code className={styles.id}>{visibleText(id)}</code>} {visibleLines(text)}
                {notes.map((note) => (
                  <p key={note} className={styles.note}>
                    {visibleLines(note)}
                  </p>
                ))}
              </li>
            ))}
          </ul>
        </section>
      ))}
    </div>
  );
}
