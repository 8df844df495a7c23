import { Search, X } from "lucide-react";
import { type ReactNode, useRef } from "react";
import { Button } from "./button.tsx";
import styles from "./filters.module.css";
import { usePageKeys } from "./page-keys.ts";

/** A row of filters above a list. */
export function Filters({ children, onClear }: { children: ReactNode; onClear?: (() => void) | undefined }) {
  return (
    <search className={styles.filters}>
      {children}
      {onClear !== undefined && (
        <Button look="plain" icon={<X />} onClick={onClear}>
          Clear
        </Button>
      )}
    </search>
  );
}

/** A search box that `/` focuses from anywhere on the page. */
export function SearchBox({ label, value, onValue }: { label: string; value: string; onValue(value: string): void }) {
  const box = useRef<HTMLInputElement>(null);
  usePageKeys((event) => {
    if (event.key !== "/") return;
    event.preventDefault();
    box.current?.focus();
  });
  return (
    <div className={styles.search}>
      <Search aria-hidden="true" />
      <input
        ref={box}
        type="search"
        aria-label={label}
        placeholder={label}
        value={value}
        spellCheck={false}
        onChange={(event) => onValue(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape") event.currentTarget.blur();
        }}
      />
      <span className={`mono ${styles.key}`}>/</span>
    </div>
  );
}

/** A choice of one value, or any. */
export function FilterChoice({
  label,
  choices,
  value,
  onValue,
}: {
  label: string;
  choices: readonly { value: string; label: string }[];
  value: string | null;
  onValue(value: string | null): void;
}) {
  return (
    <select
      className={`${styles.choice} ${value === null ? "" : styles.isOn}`}
      aria-label={label}
      value={value ?? ""}
      onChange={(event) => onValue(event.target.value === "" ? null : event.target.value)}
    >
      <option value="">{label}</option>
      {choices.map((choice) => (
        <option key={choice.value} value={choice.value}>
          {choice.label}
        </option>
      ))}
    </select>
  );
}
