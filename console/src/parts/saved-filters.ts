import { useSyncExternalStore } from "react";

/** A filter by name, in this browser. */
export interface SavedFilter {
  name: string;
  /** As in the page's address. */
  search: string;
}

/** The lists that have some. */
export type FilteredList = "run" | "sandbox";

const keyOf = (list: FilteredList) => `caisson.${list}-filters`;
const FILTERS_MAX = 30;
const NAME_CHARACTERS_MAX = 40;
const watchers = new Set<() => void>();
const kept = new Map<FilteredList, readonly SavedFilter[]>();

export function useSavedFilters(list: FilteredList): readonly SavedFilter[] {
  return useSyncExternalStore(watch, () => read(list));
}

function watch(watcher: () => void): () => void {
  watchers.add(watcher);
  return () => void watchers.delete(watcher);
}

/** One of the same name is replaced. */
export function saveFilter(list: FilteredList, { name, search }: SavedFilter): void {
  const cut = name.trim().slice(0, NAME_CHARACTERS_MAX);
  if (cut === "") return;
  write(list, [...read(list).filter((each) => each.name !== cut), { name: cut, search }].slice(-FILTERS_MAX));
}

export function forgetFilter(list: FilteredList, name: string): void {
  write(
    list,
    read(list).filter((each) => each.name !== name),
  );
}

function read(list: FilteredList): readonly SavedFilter[] {
  const known = kept.get(list) ?? parsed(localStorage.getItem(keyOf(list)));
  kept.set(list, known);
  return known;
}

function write(list: FilteredList, filters: readonly SavedFilter[]): void {
  kept.set(list, filters);
  localStorage.setItem(keyOf(list), JSON.stringify(filters));
  for (const watcher of watchers) watcher();
}

/** What is kept may be of another version, or anybody's. */
function parsed(text: string | null): readonly SavedFilter[] {
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
