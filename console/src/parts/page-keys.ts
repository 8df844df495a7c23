import { useEffect, useRef } from "react";

/** The types of `input` that accept no text. */
const WITHOUT_TEXT = new Set(["button", "checkbox", "radio", "range", "submit"]);

/** Returns whether a key is for the page: no Ctrl or similar, no open dialog, and not typed into a field. */
export function isPageKey(event: KeyboardEvent): boolean {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return false;
  return document.querySelector("dialog[open]") === null && !isTyping(event.target);
}

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement) return !WITHOUT_TEXT.has(target.type);
  return target.isContentEditable || target.closest("textarea, select, .xterm, dialog") !== null;
}

/** Calls the handler with each key for the page while the component is mounted, wherever the focus is. */
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
