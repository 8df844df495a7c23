import { type MouseEvent, type RefObject, useCallback, useRef } from "react";
import { useLocation } from "wouter";
import { usePageKeys } from "./page-keys.ts";
import { type Selection, type SelectionStep, step } from "./selection.ts";

const PAGE_ROWS = 10;

/** What the actions of a list need. */
interface ListActions<Item> {
  items: readonly Item[];
  idOf(item: Item): string;
  hrefOf(item: Item): string;
  selection: Selection;
  onSelection(selection: Selection): void;
  onKey?(key: string): boolean;
}

/** Returns the handler for keys in a list. */
export function useListKeys<Item>(props: ListActions<Item>, show: (index: number) => void) {
  const { items, idOf, hrefOf, selection, onSelection, onKey } = props;
  const [, navigate] = useLocation();
  return (event: KeyboardEvent) => {
    // A row's checkbox handles Space itself; the list handles all other keys.
    if (event.target instanceof HTMLInputElement && event.key === " ") return;
    const action = stepOf(event);
    if (action !== null) {
      event.preventDefault();
      const next = step(selection, items.map(idOf), action);
      onSelection(next);
      const index = items.findIndex((item) => idOf(item) === next.current);
      if (index >= 0 && (action.kind === "move" || action.kind === "toEnd")) show(index);
      return;
    }
    const current = items.find((item) => idOf(item) === selection.current);
    if (event.key === "Enter" && current !== undefined && !isPressable(event.target)) navigate(hrefOf(current));
    else if (!event.ctrlKey && !event.metaKey && !event.altKey && onKey?.(event.key)) event.preventDefault();
  };
}

/** Elements that handle Enter themselves. */
const isPressable = (target: EventTarget | null) => target instanceof Element && target.closest("a, button, summary") !== null;

/** Keys that work even if nothing in the list has the focus. Others, such as the arrows, then scroll the page. */
const EVERYWHERE: ReadonlySet<string> = new Set(["j", "k", "J", "K", "x"]);

/** Handles the list's keys wherever the focus is on the page, and moves the focus to the list. */
export function useListKeysEverywhere(list: RefObject<HTMLElement | null>, onKeyDown: (event: KeyboardEvent) => void): void {
  usePageKeys((event) => {
    const here = list.current;
    if (here === null || (event.target instanceof Node && here.contains(event.target))) return;
    if (!EVERYWHERE.has(event.key) && !(event.key === "Enter" && !isPressable(event.target))) return;
    here.focus({ preventScroll: true });
    onKeyDown(event);
  });
}

function stepOf({ key, shiftKey, ctrlKey, metaKey }: KeyboardEvent): SelectionStep | null {
  if (key === "a" && (ctrlKey || metaKey)) return { kind: "all" };
  if (ctrlKey || metaKey) return null;
  const moves: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1, J: 1, K: -1, PageDown: PAGE_ROWS, PageUp: -PAGE_ROWS };
  const by = moves[key];
  if (by !== undefined) return { kind: "move", by, extends: shiftKey };
  if (key === "Home" || key === "End") return { kind: "toEnd", end: key === "Home" ? "first" : "last" };
  if (key === "x" || key === " ") return { kind: "toggle" };
  return key === "Escape" ? { kind: "none" } : null;
}

/** Returns a stable function, so that rows are redrawn only if they change. */
export function useRowClicks<Item>(props: ListActions<Item>): (event: MouseEvent, item: Item) => void {
  const [, navigate] = useLocation();
  const now = useRef(props);
  now.current = props;
  return useCallback(
    (event: MouseEvent, item: Item) => {
      const { items, idOf, hrefOf, selection, onSelection } = now.current;
      const id = idOf(item);
      const target = event.target as Element;
      const isBox = target.closest("input") !== null;
      if (!isBox && target.closest("a, button") !== null) return;
      if (!isBox && !event.shiftKey && !event.ctrlKey && !event.metaKey) return navigate(hrefOf(item));
      onSelection(step(selection, items.map(idOf), event.shiftKey ? { kind: "range", id } : { kind: "toggle", id }));
    },
    [navigate],
  );
}
