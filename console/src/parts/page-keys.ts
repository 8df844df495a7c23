import { useEffect, useRef } from "react";

/** Kinds of `input` that take no letters. */
const WITHOUT_TEXT = new Set(["button", "checkbox", "radio", "range", "submit"]);

/** Whether a key is a page's own: without Ctrl and the like, with no dialog open, and not typed into anything. */
export function isPageKey(event: KeyboardEvent): boolean {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return false;
  return document.querySelector("dialog[open]") === null && !isTyping(event.target);
}

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement) return !WITHOUT_TEXT.has(target.type);
  return target.isContentEditable || target.closest("textarea, select, .xterm, dialog") !== null;
}

/** Calls with each key of the page's own while the component is shown, wherever the focus is. */
export function usePageKeys(onKey: (event: KeyboardEvent) => void): void {
  const latest = useRef(onKey);
  latest.current = onKey;
  useEffect(() => {
    const listen = (event: KeyboardEvent) => {
      if (isPageKey(event)) latest.current(event);
    };
    addEventListener("keydown", listen);
    return () => removeEventListener("keydown", listen);
  }, []);
}
