import type { SpecView } from "../../../../src/contract/spec/spec-verbs.ts";
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

/** Lists the tasks of each requirement, and the files that they changed. */
export function Coverage({ coverage }: Pick<SpecView, "coverage">) {
  if (coverage.length === 0)
    return <Empty title="No requirements yet">Each requirement appears here with its tasks and the files that they changed.</Empty>;
  return (
    <Table
      label="Requirements"
      columns={[{ name: "Requirement", onPhone: "title" }, { name: "Tasks" }, { name: "Changed" }, { name: "State", onPhone: "beside" }]}
      rows={coverage.map(({ requirement, statement, tasks, changes, state }) => {
        const paths = [...new Set(changes.map(({ path }) => path))];
        const more = paths.length > FILES_SHOWN ? ` and ${paths.length - FILES_SHOWN} more` : "";
        return {
          key: requirement,
          cells: [
            <span key="requirement" className={styles.statement}>
              <code className={styles.id}>{visibleText(requirement)}</code> {visibleText(statement)}
            </span>,
            tasks.length === 0 ? (
              <span key="none" className={styles.quiet}>
                none
              </span>
            ) : (
              visibleText(tasks.join(", "))
            ),
            paths.length === 0 ? "" : `${visibleText(paths.slice(0, FILES_SHOWN).join(", "))}${more}`,
            <Badge key="state" tone={tones[state]}>
              {state}
            </Badge>,
          ],
        };
      })}
    />
  );
}
