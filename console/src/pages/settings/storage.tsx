import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { Pruned } from "../../../../src/contract/machine/machine-verbs.ts";
import { useStation } from "../../data/station.tsx";
import { bytes } from "../../parts/amounts.ts";
import { Button } from "../../parts/button.tsx";
import { ChoiceField } from "../../parts/field.tsx";
import { Problem } from "../../parts/problem.tsx";
import { Table } from "../../parts/table.tsx";
import { say, sayProblem } from "../../parts/toasts.tsx";
import styles from "./settings.module.css";

const DAY_MS = 86_400_000;
const ages = [1, 7, 30, 90].map((days) => ({ value: String(days * DAY_MS), label: days === 1 ? "1 day" : `${days} days` }));

/** Shows the disk usage, and what could be removed. Nothing is removed before the user has seen it. */
export default function Storage() {
  const station = useStation();
  const queries = useQueryClient();
  const usage = useQuery({ queryKey: ["usage"], queryFn: ({ signal }) => station.machine.usage({ signal }) });
  const [age, setAge] = useState(String(30 * DAY_MS));
  const [found, setFound] = useState<Pruned | null>(null);
  const prune = async (request: { dryRun: boolean; only?: string[] }) => {
    try {
      const pruned = await station.machine.prune({ olderThanMs: Number(age), ...request });
      if (request.dryRun) return setFound(pruned);
      setFound(null);
      say(`${pruned.things.length} removed, ${bytes(pruned.bytes)} freed.`);
      await queries.invalidateQueries();
    } catch (error) {
      sayProblem(error);
    }
  };
  return (
    <>
      {usage.error !== null && <Problem error={usage.error} />}
      {usage.data !== undefined && (
        <Table
          label="Stored data"
          isNarrow
          columns={[{ name: "Kind" }, { name: "Count" }, { name: "Size" }]}
          rows={usage.data.kinds.map(({ kind, count, bytes: size }) => ({ key: kind, cells: [kind, count, bytes(size)] }))}
        />
      )}
      <div className={styles.line}>
        <ChoiceField label="Unused for" value={age} choices={ages} onChoice={setAge} />
        <Button onClick={() => void prune({ dryRun: true })}>Show what can be removed</Button>
        {found !== null && found.things.length > 0 && (
          <Button look="danger" onClick={() => void prune({ dryRun: false, only: found.things.map(({ id }) => id) })}>
            Remove these {found.things.length}
          </Button>
        )}
      </div>
      {found !== null && (
        <ul>
          {found.things.length === 0 && <li>Nothing to remove.</li>}
          {found.things.map((thing) => (
            <li key={thing.id}>
              {thing.kind} <code>{thing.name ?? thing.id}</code>, {bytes(thing.bytes)}: {thing.why}
            </li>
          ))}
        </ul>
      )}
    </>
  );
}
