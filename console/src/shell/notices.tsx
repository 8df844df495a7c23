import { useEffect, useRef } from "react";
import { useThingsAsking } from "../data/inbox.ts";
import { useOpenRuns } from "../data/queries.ts";

/**
 * Puts a dot on the page's icon while something waits for a person, and shows a browser notification for each new
 * question.
 */
export function Notices() {
  const runs = useOpenRuns().data?.runs;
  const things = useThingsAsking().data;
  const questions = [
    ...(runs ?? []).flatMap((view) =>
      view.status === "ended" ? [] : view.asked.map(({ question, text }) => ({ question, text, title: view.name ?? view.title })),
    ),
    ...(things ?? []).map(({ of, seq, text, title }) => ({ question: `${of.id} ${seq}`, text, title })),
  ];
  const waiting = questions.length > 0;
  const known = useRef<Set<string> | null>(null);
  useEffect(() => {
    document.getElementById("favicon")?.setAttribute("href", waiting ? "/favicon-waiting.svg" : "/favicon.svg");
  }, [waiting]);
  useEffect(() => {
    if (runs === undefined || things === undefined) return;
    const before = known.current;
    known.current = new Set(questions.map(({ question }) => question));
    if (before === null || !("Notification" in globalThis) || Notification.permission !== "granted" || !document.hidden) return;
    for (const { question, text, title } of questions) {
      if (!before.has(question)) new Notification(title.slice(0, 80), { body: text.slice(0, 200), tag: question });
    }
  });
  return null;
}
