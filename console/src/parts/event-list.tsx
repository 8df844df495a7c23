import { useState } from "react";
import { Button } from "./button.tsx";
import styles from "./event-list.module.css";
import { Time } from "./time.tsx";
import { visibleText } from "./visible-text.ts";

export interface ListedEvent {
  key: string | number;
  at: string;
  type: string;
  data: unknown;
}

const SHOWN = 200;
const TEXT_MAX = 400;

/** The events of one thing, newest first. Shows the latest of many until the user asks for more. */
export function EventList({ events, label }: { events: readonly ListedEvent[]; label: string }) {
  const [shownCount, setShownCount] = useState(SHOWN);
  return (
    <>
      <ol className={styles.events} aria-label={label}>
        {events
          .slice(-shownCount)
          .toReversed()
          .map(({ key, at, type, data }) => (
            <li key={key}>
              <Time at={at} />
              <span className={styles.type}>{visibleText(type)}</span>
              <code>{visibleText(textOf(data))}</code>
            </li>
          ))}
      </ol>
      {events.length > shownCount && <Button onClick={() => setShownCount(shownCount + SHOWN)}>Show earlier events</Button>}
    </>
  );
}

/** Formats event data as text, without empty values. */
function textOf(data: unknown): string {
  const entries = Object.entries((data ?? {}) as Record<string, unknown>).filter(([, value]) => value !== null && !isEmpty(value));
  const text = entries.map(([key, value]) => `${key} ${typeof value === "string" ? value : JSON.stringify(value)}`).join("  ");
  return text.length > TEXT_MAX ? `${text.slice(0, TEXT_MAX - 1)}…` : text;
}

const isEmpty = (value: unknown) => typeof value === "object" && value !== null && Object.keys(value).length === 0;
