import { useSyncExternalStore } from "react";

/** A filter by name, in this browser. */
export interface SavedFilter {
  name: string;
  /** As in the page's address. */
  search: string;
}

const KEY = "caisson.run-filters";
const FILTERS_MAX = 30;
const NAME_CHARACTERS_MAX = 40;
const watchers = new Set<() => void>();
let kept: readonly SavedFilter[] | undefined;

export function useSavedFilters(): readonly SavedFilter[] {
  return useSyncExternalStore((watcher) => {
    watchers.add(watcher);
    return () => void watchers.delete(watcher);
  }, read);
}

/** One of the same name is replaced. */
export function saveFilter({ name, search }: SavedFilter): void {
  const cut = name.trim().slice(0, NAME_CHARACTERS_MAX);
  if (cut === "") return;
  write([...read().filter((each) => each.name !== cut), { name: cut, search }].slice(-FILTERS_MAX));
}

export function forgetFilter(name: string): void {
  write(read().filter((each) => each.name !== name));
}

function read(): readonly SavedFilter[] {
  kept ??= parsed(localStorage.getItem(KEY));
  return kept;
}

function write(filters: readonly SavedFilter[]): void {
  kept = filters;
  localStorage.setItem(KEY, JSON.stringify(filters));
  for (const watcher of watchers) watcher();
}

/** What is kept may be of another version, or anybody's. */
export function parsed(text: string | null): readonly SavedFilter[] {
  try {
    const list: unknown = JSON.parse(text ?? "[]");
    return Array.isArray(list) ? list.filter(isFilter).slice(-FILTERS_MAX) : [];
  } catch {
    return [];
  }
}

function isFilter(value: unknown): value is SavedFilter {
  const { name, search } = (value ?? {}) as Partial<SavedFilter>;
  return typeof name === "string" && typeof search === "string";
}
