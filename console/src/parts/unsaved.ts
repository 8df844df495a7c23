import { useEffect, useId, useSyncExternalStore } from "react";
import type { AroundNavHandler } from "wouter";

/** Text that a person typed and that is stored nowhere yet. */
interface Unsaved {
  /** What would be lost, as a sentence. */
  text: string;
  /** The parts of the address, beside its path, that lead away from it when they change. */
  params: readonly string[];
}

/** What is lost by a step that somebody wants to take, and how to take it. */
interface Leaving {
  texts: readonly string[];
  go(): void;
}

const held = new Map<string, Unsaved>();
const listeners = new Set<() => void>();
let leaving: Leaving | null = null;
let here = "";

/** Keeps a page from being left unasked while something on it is not saved. */
export function useUnsaved(isUnsaved: boolean, { text, params }: Unsaved): void {
  const id = useId();
  const names = params.join(" ");
  useEffect(() => {
    if (!isUnsaved) return;
    held.set(id, { text, params: names.split(" ") });
    tell();
    // The browser asks with its own words when the page itself is closed.
    const warn = (event: BeforeUnloadEvent) => event.preventDefault();
    addEventListener("beforeunload", warn);
    return () => {
      removeEventListener("beforeunload", warn);
      held.delete(id);
      tell();
    };
  }, [isUnsaved, text, names, id]);
}

/** Lets everything go that is not saved: somebody decided so. */
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

/** Every step within the console goes through here. */
export const aroundNavigation: AroundNavHandler = (navigate, to, options) => {
  const go = () => {
    navigate(to, options);
    here = location.href;
  };
  if (!asks(new URL(to, location.href), go)) go();
};

/** The browser's own way back and forward: it has been taken when we hear of it, so it is taken back until somebody decides. */
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
  // Before the router hears of it, which would show the other page.
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
