import { useEffect, useId, useSyncExternalStore } from "react";
import type { AroundNavHandler } from "wouter";

/** Text that a person typed and has not saved. */
interface Unsaved {
  /** What would be lost, as a sentence. */
  text: string;
  /** The query parameters whose change leaves the text, in addition to the path. */
  params: readonly string[];
}

/** A navigation that would lose text: what would be lost, and how to continue. */
interface Leaving {
  texts: readonly string[];
  go(): void;
}

const held = new Map<string, Unsaved>();
const listeners = new Set<() => void>();
let leaving: Leaving | null = null;
let here = "";

/** Asks before the user leaves a page with unsaved text. */
export function useUnsaved(isUnsaved: boolean, { text, params }: Unsaved): void {
  const id = useId();
  const names = params.join(" ");
  useEffect(() => {
    if (!isUnsaved) return;
    held.set(id, { text, params: names.split(" ") });
    tell();
    // When the page itself is closed, the browser asks in its own words.
    const warn = (event: BeforeUnloadEvent) => event.preventDefault();
    addEventListener("beforeunload", warn);
    return () => {
      removeEventListener("beforeunload", warn);
      held.delete(id);
      tell();
    };
  }, [isUnsaved, text, names, id]);
}

/** Discards all unsaved text, after the user decided to. */
export function dropUnsaved(): void {
  held.clear();
  tell();
}

export const useIsUnsaved = () => useSyncExternalStore(subscribe, () => held.size > 0);
export const useLeaving = () => useSyncExternalStore(subscribe, () => leaving);

export function leave(): void {
  const wanted = leaving;
  stay();
  dropUnsaved();
  wanted?.go();
}

export function stay(): void {
  leaving = null;
  tell();
}

/** Guards every navigation within the console. */
export const aroundNavigation: AroundNavHandler = (navigate, to, options) => {
  const go = () => {
    navigate(to, options);
    here = location.href;
  };
  if (!asks(new URL(to, location.href), go)) go();
};

/**
 * Guards the browser's back and forward buttons. We learn of such a navigation afterwards, so we revert it until the
 * user decides.
 */
export function guardHistory(): void {
  here = location.href;
  const back = (event: PopStateEvent) => {
    const from = here;
    here = location.href;
    if (!asks(new URL(location.href), () => history.back(), new URL(from))) return;
    event.stopImmediatePropagation();
    history.pushState(null, "", from);
    here = from;
  };
  // Before the router handles the event, which would show the other page.
  addEventListener("popstate", back, { capture: true });
}

function asks(to: URL, go: () => void, from = new URL(location.href)): boolean {
  const lost = [...held.values()].filter(
    ({ params }) => to.pathname !== from.pathname || params.some((name) => to.searchParams.get(name) !== from.searchParams.get(name)),
  );
  if (lost.length === 0) return false;
  leaving = { texts: lost.map(({ text }) => text), go };
  tell();
  return true;
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function tell(): void {
  for (const listener of listeners) listener();
}
