import { useCallback } from "react";
import { useSearchParams } from "wouter";
import type { Sort } from "./list.tsx";

/**
 * Returns the filters in the address, and a function that changes them: null removes one. Changes replace the page's
 * history entry.
 */
export function useFilterParams(): [URLSearchParams, (changes: Readonly<Record<string, string | null>>) => void] {
  const [params, setParams] = useSearchParams();
  const change = useCallback(
    (changes: Readonly<Record<string, string | null>>) =>
      setParams(
        (before) => {
          const after = new URLSearchParams(before);
          for (const [name, value] of Object.entries(changes)) value === null || value === "" ? after.delete(name) : after.set(name, value);
          return after;
        },
        { replace: true },
      ),
    [setParams],
  );
  return [params, change];
}

export function sortOf(params: URLSearchParams, usual: Sort): Sort {
  const sort = params.get("sort");
  if (sort === null || sort === "") return usual;
  return { by: sort.replace(/^-/, ""), isDown: sort.startsWith("-") };
}

export const sortParam = ({ by, isDown }: Sort): string => `${isDown ? "-" : ""}${by}`;
