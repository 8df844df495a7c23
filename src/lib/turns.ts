/** The synchronous work for one stream of the log: while it lasts, nothing else happens in this process. */
export interface Turn {
  stream: string;
  seq: number;
}

/** Remembers, outside of this process, whose turn it is; see `src/station/poison/`. */
export interface TurnMarker {
  begin(turn: Turn): void;
  end(): void;
}

// A process has one event loop, so one turn at a time: what keeps it is the process's own.
let marker: TurnMarker | null = null;
let current: Turn | null = null;

/** From now on turns are marked; null for no longer. Only a station does so. */
export function markTurns(by: TurnMarker | null): void {
  marker = by;
  current = null;
}

/** Does the synchronous part of some work as the turn of a stream. */
export function duringTurn<Result>(turn: Turn, work: () => Result): Result {
  if (marker === null) return work();
  const outer = current;
  current = turn;
  marker.begin(turn);
  try {
    return work();
  } finally {
    current = outer;
    if (outer === null) marker?.end();
    else marker?.begin(outer);
  }
}
