/** The synchronous work for one stream of the log. Nothing else happens in this process until it ends. */
export interface Turn {
  stream: string;
  seq: number;
}

/** Records the current turn outside this process; see `src/station/poison/`. */
export interface TurnMarker {
  begin(turn: Turn): void;
  end(): void;
}

// Module state is enough: a process has one event loop, so it has one turn at a time.
let marker: TurnMarker | null = null;
let current: Turn | null = null;

/** Sets the marker for later turns; null stops marking. Only a station does this. */
export function markTurns(by: TurnMarker | null): void {
  marker = by;
  current = null;
}

/** Runs synchronous work as the turn of a stream. */
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
