import type { WrittenPhase } from "../../../../src/contract/spec/spec.ts";
import type { SpecView } from "../../../../src/contract/spec/spec-verbs.ts";
import { visibleLines, visibleText } from "../../parts/visible-text.ts";
import { phaseText } from "./phase-text.ts";
import styles from "./spec.module.css";

/** The text that an agent wrote for a phase. */
export function PhaseContent({ phase, data }: { phase: WrittenPhase; data: SpecView["data"] }) {
  const groups = phaseText(phase, data);
  if (groups.length === 0) return <p className={styles.quiet}>Not written yet.</p>;
  return (
    <div className={styles.content}>
      {groups.map(({ title, lines }) => (
        <section key={title}>
          <h3>{title}</h3>
          <ul>
            {lines.map(({ id, text, notes = [] }, index) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: a line is identified by its index.
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
