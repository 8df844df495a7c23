import { useEffect, useRef } from "react";
import { useThingsAsking } from "../station/inbox.ts";
import { useOpenRuns } from "../station/queries.ts";

/** A dot on the page's icon while somebody is waited for, and a word from the browser when a question is new. */
export function Notices() {
  const runs = useOpenRuns().data?.runs;
  const things = useThingsAsking().data;
  const asked = [
    ...(runs ?? []).flatMap((view) =>
      view.status === "ended" ? [] : view.asked.map(({ question, text }) => ({ question, text, title: view.name ?? view.title })),
    ),
    ...(things ?? []).map(({ of, seq, text, title }) => ({ question: `${of.id} ${seq}`, text, title })),
  ];
  const waiting = asked.length > 0;
  const known = useRef<Set<string> | null>(null);
  useEffect(() => {
    document.getElementById("favicon")?.setAttribute("href", waiting ? "/favicon-waiting.svg" : "/favicon.svg");
  }, [waiting]);
  useEffect(() => {
    if (runs === undefined || things === undefined) return;
    const before = known.current;
    known.current = new Set(asked.map(({ question }) => question));
    if (before === null || !("Notification" in globalThis) || Notification.permission !== "granted" || !document.hidden) return;
    for (const { question, text, title } of asked) {
      if (!before.has(question)) new Notification(title.slice(0, 80), { body: text.slice(0, 200), tag: question });
    }
  });
  return null;
}
