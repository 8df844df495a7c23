import type { Station } from "../station.ts";

export interface OwnedView {
  /** Whose everything is that is made through this view. */
  owner: string;
  /** `own`: what belongs to others is not there. */
  sees: "own" | "everything";
}

/** A station as one owner sees it. */
export function ownedStation(station: Station, _view: OwnedView): Station {
  return station;
}
