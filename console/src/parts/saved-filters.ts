import { useSyncExternalStore } from "react";
import { ignoring } from "../../../src/lib/failures.ts";

/** A named filter, stored in this browser. */
export interface SavedFilter {
  name: string;
  /** The filter as in the page's address. */
  search: string;
}

/** The lists with saved filters. */
export type FilteredList = "run" | "sandbox";

const keyOf = (list: FilteredList) => `caisson.${list}-filters`;
const FILTERS_MAX = 30;
const NAME_CHARACTERS_MAX = 40;
const watchers = new Set<() => void>();
const cache = new Map<FilteredList, readonly SavedFilter[]>();

export function useSavedFilters(list: FilteredList): readonly SavedFilter[] {
  return useSyncExternalStore(watch, () => read(list));
}

function watch(watcher: () => void): () => void {
  watchers.add(watcher);
  return () => void watchers.delete(watcher);
}

/** Saves a filter. Replaces one of the same name. */
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
  const known = cache.get(list) ?? parseFilters(localStorage.getItem(keyOf(list)));
  cache.set(list, known);
  return known;
}

function write(list: FilteredList, filters: readonly SavedFilter[]): void {
  cache.set(list, filters);
  localStorage.setItem(keyOf(list), JSON.stringify(filters));
  for (const watcher of watchers) watcher();
}

/** Parses stored filters, which another version or another program may have written. */
function parseFilters(text: string | null): readonly SavedFilter[] {
  const list: unknown = ignoring("another version wrote it", () => JSON.parse(text ?? "[]"));
  return Array.isArray(list) ? list.filter(isFilter).slice(-FILTERS_MAX) : [];
}

function isFilter(value: unknown): value is SavedFilter {
  const { name, search } = (value ?? {}) as Partial<SavedFilter>;
  return typeof name === "string" && typeof search === "string";
}
