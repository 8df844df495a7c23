import { ChevronDown, ChevronUp } from "lucide-react";
import { Button } from "../../parts/button.tsx";
import { SearchBox } from "../../parts/filters.tsx";
import styles from "./timeline-view.module.css";
import type { Found } from "./use-found.ts";

interface TimelineToolsProps {
  find: string;
  found: Found;
  withQuiet: boolean;
  onChange(changes: Readonly<Record<string, string | null>>): void;
  goTo(row: number): void;
}

/** The search in a run, and the choice between all events and the important ones. */
export function TimelineTools({ find, found, withQuiet, onChange, goTo }: TimelineToolsProps) {
  const { rows, current, setCurrent } = found;
  const move = (by: number) => {
    const next = current === -1 && by < 0 ? rows.length - 1 : (current + by + rows.length) % rows.length;
    setCurrent(next);
    const row = rows[next];
    if (row !== undefined) goTo(row);
  };
  return (
    <search className={styles.tools}>
      <SearchBox
        label="Search in this run"
        value={find}
        onValue={(text) => {
          setCurrent(-1);
          onChange({ find: text });
        }}
      />
      {find !== "" && (
        <>
          <span className={styles.count} aria-live="polite">
            {rows.length === 0 ? "no matches" : `${current === -1 ? "" : `${current + 1} of `}${rows.length}`}
          </span>
          <Button look="plain" label="Previous match" icon={<ChevronUp />} disabled={rows.length === 0} onClick={() => move(-1)} />
          <Button look="plain" label="Next match" icon={<ChevronDown />} disabled={rows.length === 0} onClick={() => move(1)} />
        </>
      )}
      <Button look="plain" isOn={withQuiet} onClick={() => onChange({ all: withQuiet ? null : "1" })}>
        All events
      </Button>
    </search>
  );
}
