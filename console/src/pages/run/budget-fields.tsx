import type { Budgets } from "../../../../src/contract/run/run.ts";
import { Field } from "../../parts/field.tsx";
import styles from "./items.module.css";

const fields = [
  { key: "costUsd", label: "Cost, USD", factor: 1 },
  { key: "tokens", label: "Tokens", factor: 1 },
  { key: "steps", label: "Steps", factor: 1 },
  { key: "timeMs", label: "Minutes", factor: 60_000 },
] as const;

/** Fields for new limits of the whole run. An empty one means 50% more. */
export function BudgetFields({ budgets, onChange }: { budgets: Budgets; onChange(budgets: Budgets): void }) {
  return (
    <div className={styles.budgets}>
      {fields.map(({ key, label, factor }) => (
        <Field
          key={key}
          label={label}
          type="number"
          min={0}
          step="any"
          placeholder="50% more"
          onChange={(event) => {
            const { [key]: _, ...others } = budgets;
            const value = Number(event.target.value) * factor;
            onChange(value > 0 ? { ...others, [key]: key === "costUsd" ? value : Math.ceil(value) } : others);
          }}
        />
      ))}
    </div>
  );
}
