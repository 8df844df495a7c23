import { useCallback } from "react";
import { useSearchParams } from "wouter";
import type { Sort } from "./list.tsx";

/** Filters live in the address. Null takes one out of it. The page's own entry in the history stays one. */
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
  const given = params.get("sort");
  if (given === null || given === "") return usual;
  return { by: given.replace(/^-/, ""), isDown: given.startsWith("-") };
}

export const sortParam = ({ by, isDown }: Sort): string => `${isDown ? "-" : ""}${by}`;
