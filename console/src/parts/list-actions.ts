import { type MouseEvent, type RefObject, useCallback, useRef } from "react";
import { useLocation } from "wouter";
import { usePageKeys } from "./page-keys.ts";
import { type Selection, type SelectionStep, step } from "./selection.ts";

const PAGE_ROWS = 10;

/** What a list lets its reader do. */
interface ListActions<Item> {
  items: readonly Item[];
  idOf(item: Item): string;
  hrefOf(item: Item): string;
  selection: Selection;
  onSelection(selection: Selection): void;
  onKey?(key: string): boolean;
}

/** What a key in the list does. */
export function useListKeys<Item>(props: ListActions<Item>, show: (index: number) => void) {
  const { items, idOf, hrefOf, selection, onSelection, onKey } = props;
  const [, navigate] = useLocation();
  return (event: KeyboardEvent) => {
    // A checkbox of a row takes its own key, and leaves the list the others.
    if (event.target instanceof HTMLInputElement && event.key === " ") return;
    const taken = stepOf(event);
    if (taken !== null) {
      event.preventDefault();
      const next = step(selection, items.map(idOf), taken);
      onSelection(next);
      const index = items.findIndex((item) => idOf(item) === next.current);
      if (index >= 0 && (taken.kind === "move" || taken.kind === "toEnd")) show(index);
      return;
    }
    const current = items.find((item) => idOf(item) === selection.current);
    if (event.key === "Enter" && current !== undefined && !isPressable(event.target)) navigate(hrefOf(current));
    else if (!event.ctrlKey && !event.metaKey && !event.altKey && onKey?.(event.key)) event.preventDefault();
  };
}

/** Elements that handle Enter themselves. */
const isPressable = (target: EventTarget | null) => target instanceof Element && target.closest("a, button, summary") !== null;

/** The keys that a list has even while nothing in it has the focus; arrows and the like scroll the page then. */
const EVERYWHERE: ReadonlySet<string> = new Set(["j", "k", "J", "K", "x"]);

/** Gives the list its keys wherever the focus is on the page, and then the focus. */
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

/** The same function for as long as the list is there, so that a row is drawn again only when it is another. */
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
