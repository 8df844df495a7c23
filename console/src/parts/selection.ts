/** The selected rows of a list, and the row with the keyboard cursor. Uses ids, because rows come and go. */
export interface Selection {
  readonly current: string | null;
  readonly chosen: ReadonlySet<string>;
  /** The start of a range. */
  readonly anchor: string | null;
}

export const nothingSelected: Selection = { current: null, chosen: new Set(), anchor: null };

export type SelectionStep =
  | { kind: "move"; by: number; extends?: boolean }
  | { kind: "toEnd"; end: "first" | "last" }
  | { kind: "toggle"; id?: string }
  | { kind: "range"; id: string }
  | { kind: "all" }
  | { kind: "none" };

export function step(selection: Selection, ids: readonly string[], action: SelectionStep): Selection {
  const { current, chosen, anchor } = selection;
  switch (action.kind) {
    case "move": {
      const at = current === null ? -1 : ids.indexOf(current);
      const next = ids[at === -1 ? (action.by > 0 ? 0 : ids.length - 1) : clamp(at + action.by, ids.length)] ?? null;
      if (!action.extends || next === null) return { current: next, chosen, anchor: next };
      const from = anchor ?? current ?? next;
      return { current: next, chosen: new Set([...chosen, ...between(ids, from, next)]), anchor: from };
    }
    case "toEnd": {
      const next = (action.end === "first" ? ids[0] : ids.at(-1)) ?? null;
      return { current: next, chosen, anchor: next };
    }
    case "toggle": {
      const id = action.id ?? current;
      if (id === null) return selection;
      const next = new Set(chosen);
      if (!next.delete(id)) next.add(id);
      return { current: id, chosen: next, anchor: id };
    }
    case "range":
      return {
        current: action.id,
        chosen: new Set([...chosen, ...between(ids, anchor ?? action.id, action.id)]),
        anchor: anchor ?? action.id,
      };
    case "all":
      return { current, chosen: new Set(ids), anchor };
    case "none":
      return { current, chosen: new Set(), anchor };
  }
}

/** Removes missing rows from a selection. Returns the same object if none is missing. */
export function withoutGone(selection: Selection, ids: readonly string[]): Selection {
  const { current, chosen, anchor } = selection;
  if (current === null && anchor === null && chosen.size === 0) return selection;
  const there = new Set(ids);
  const isGone = (id: string | null) => id !== null && !there.has(id);
  if (!isGone(current) && !isGone(anchor) && [...chosen].every((id) => there.has(id))) return selection;
  return {
    current: isGone(current) ? null : current,
    chosen: new Set([...chosen].filter((id) => there.has(id))),
    anchor: isGone(anchor) ? null : anchor,
  };
}

function clamp(index: number, length: number): number {
  return Math.max(0, Math.min(length - 1, index));
}

function between(ids: readonly string[], from: string, to: string): string[] {
  const ends = [ids.indexOf(from), ids.indexOf(to)].sort((left, right) => left - right) as [number, number];
  return ids.slice(Math.max(0, ends[0]), ends[1] + 1);
}
