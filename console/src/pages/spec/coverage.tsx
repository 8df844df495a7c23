import type { SpecView } from "../../../../src/contract/spec-verbs.ts";
import { Badge, type Tone } from "../../parts/badge.tsx";
import { Empty } from "../../parts/empty.tsx";
import { Table } from "../../parts/table.tsx";
import { visibleText } from "../../parts/visible-text.ts";
import styles from "./spec.module.css";

const FILES_SHOWN = 6;
const tones: Readonly<Record<SpecView["coverage"][number]["state"], Tone>> = {
  missing: "bad",
  planned: "idle",
  unchanged: "warn",
  done: "good",
};

/** Which tasks are for a requirement, and what they really changed. */
export function Coverage({ coverage }: Pick<SpecView, "coverage">) {
  if (coverage.length === 0)
    return <Empty title="No requirements yet">Once there are some, each stands here with its tasks and what they changed.</Empty>;
  return (
    <Table columns={["Requirement", "Tasks", "Changed", "State"]}>
      {coverage.map(({ requirement, statement, tasks, changes, state }) => {
        const paths = [...new Set(changes.map(({ path }) => path))];
        return (
          <tr key={requirement}>
            <td className={styles.statement}>
              <code className={styles.id}>{visibleText(requirement)}</code> {visibleText(statement)}
            </td>
            <td>{tasks.length === 0 ? <span className={styles.quiet}>none</span> : visibleText(tasks.join(", "))}</td>
            <td className={styles.files}>
              {visibleText(paths.slice(0, FILES_SHOWN).join(", "))}
              {paths.length > FILES_SHOWN && ` and ${paths.length - FILES_SHOWN} more`}
            </td>
            <td>
              <Badge tone={tones[state]}>{state}</Badge>
            </td>
          </tr>
        );
      })}
    </Table>
  );
}
