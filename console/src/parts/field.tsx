import { type InputHTMLAttributes, type ReactNode, type TextareaHTMLAttributes, useId } from "react";
import styles from "./field.module.css";

interface Around {
  label: string;
  hint?: ReactNode;
  /** What is wrong with the value, as a sentence. */
  problem?: string | undefined;
}

/** A text field. `offers`: suggested values; others can still be typed. */
export function Field({
  label,
  hint,
  problem,
  offers = [],
  ...rest
}: Around & { offers?: readonly string[] } & InputHTMLAttributes<HTMLInputElement>) {
  const id = useId();
  return (
    <FieldFrame {...{ id, label, hint, problem }}>
      <input
        {...rest}
        {...(offers.length > 0 && { list: `${id}-offers` })}
        id={id}
        className={styles.input}
        aria-invalid={problem !== undefined}
        aria-describedby={`${id}-about`}
      />
      {offers.length > 0 && (
        <datalist id={`${id}-offers`}>
          {offers.map((value) => (
            <option key={value} value={value} />
          ))}
        </datalist>
      )}
    </FieldFrame>
  );
}

export function LongField({ label, hint, problem, ...rest }: Around & TextareaHTMLAttributes<HTMLTextAreaElement>) {
  const id = useId();
  return (
    <FieldFrame {...{ id, label, hint, problem }}>
      <textarea {...rest} id={id} className={styles.input} aria-invalid={problem !== undefined} aria-describedby={`${id}-about`} />
    </FieldFrame>
  );
}

export function ChoiceField({
  label,
  hint,
  problem,
  choices,
  value,
  onChoice,
}: Around & { choices: readonly { value: string; label: string }[]; value: string; onChoice(value: string): void }) {
  const id = useId();
  return (
    <FieldFrame {...{ id, label, hint, problem }}>
      <select
        id={id}
        className={styles.input}
        value={value}
        onChange={(event) => onChoice(event.target.value)}
        aria-describedby={`${id}-about`}
      >
        {choices.map((choice) => (
          <option key={choice.value} value={choice.value}>
            {choice.label}
          </option>
        ))}
      </select>
    </FieldFrame>
  );
}

function FieldFrame({ id, label, hint, problem, children }: Around & { id: string; children: ReactNode }) {
  return (
    <div className={styles.field}>
      <label htmlFor={id}>{label}</label>
      {children}
      <div id={`${id}-about`} className={problem === undefined ? styles.hint : styles.problem}>
        {problem ?? hint}
      </div>
    </div>
  );
}
